"""Tests of KubeSchedulerConfiguration: what it changes, and the messages about what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr.controllers.scheduler import Options
from ctrlmgr.controllers.scheduler.configuration import read_configuration
from ctrlmgr.controllers.scheduler.controller import build
from ctrlmgr.errors import SettingsError
from ctrlmgr.scheduling.cycle import enough
from ctrlmgr.scheduling.profile import FILTERS, WEIGHTS
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
RATIO = "RequestedToCapacityRatio"


def written(folder: Path, **fields: Any) -> Path:
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump({**HEAD, **fields}))
    return file


def arguments(name: str, **fields: Any) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": fields}]}


class ConfiguredScheduler(SchedulerCluster):
    """A cluster whose scheduler has a configuration."""

    def __init__(self, folder: Path, *profiles: dict[str, Any]) -> None:
        self.file = written(folder, profiles=[*profiles])
        super().__init__()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options(scheduler_config=str(self.file)))


def test_without_profiles_the_default_profile_is_used(tmp_path: Path) -> None:
    (profile,) = read_configuration(written(tmp_path)).profiles
    assert (profile.scheduler_name, profile.filters, profile.weights) == (
        "default-scheduler",
        frozenset(FILTERS),
        WEIGHTS,
    )
    assert profile.has_all_filters
    assert profile.preempts


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "scheduler.md").read_text()
    file = tmp_path / "example.yaml"
    file.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    plain, packing = read_configuration(file).profiles
    assert plain.weights == WEIGHTS
    assert packing.weights == {
        **{name: weight for name, weight in WEIGHTS.items() if name != "NodeResourcesBalancedAllocation"},
        "NodeResourcesFit": 10,
    }
    assert packing.strategy.type == "MostAllocated"


def test_pods_choose_a_profile_by_their_scheduler_name(tmp_path: Path) -> None:
    most = {
        "schedulerName": "packing",
        **arguments("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu"}]}),
    }
    cluster = ConfiguredScheduler(tmp_path, {"schedulerName": "default-scheduler"}, most)
    cluster.node("small")
    cluster.node("large", cpu="8")
    cluster.pod("p", schedulerName="packing")
    cluster.pod("q")
    cluster.pod("r", schedulerName="unknown")
    assert cluster.places() == {"p": "small", "q": "large", "r": ""}


def test_a_disabled_plugin_refuses_no_node(tmp_path: Path) -> None:
    cluster = ConfiguredScheduler(tmp_path, {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}})
    cluster.node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster.pod("p")
    assert cluster.places() == {"p": "n"}


def test_without_preemption_no_pod_is_deleted(tmp_path: Path) -> None:
    cluster = ConfiguredScheduler(tmp_path, {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}})
    cluster.important("high", 100)
    cluster.node("n")
    cluster.pod("low", cpu="2")
    cluster.places()
    cluster.pod("high", cpu="2", priorityClassName="high")
    assert cluster.places() == {"low": "n", "high": ""}
    assert cluster.recorded("FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu."]


def test_the_added_affinity_applies_to_all_pods(tmp_path: Path) -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["two"]}]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cluster = ConfiguredScheduler(tmp_path, arguments("NodeAffinity", addedAffinity=added))
    cluster.node("one", cpu="8")
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    assert "1 node(s) didn't match scheduler-enforced node affinity" in cluster.recorded("FailedScheduling")[0]
    cluster.node("two")
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "two"}


def test_default_constraints_spread_the_pods_of_a_service(tmp_path: Path) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spread = arguments("PodTopologySpread", defaultConstraints=[constraint], defaultingType="List")
    cluster = ConfiguredScheduler(tmp_path, spread)
    service = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}
    cluster.stage.create("/api/v1/namespaces/a/services", service)
    cluster.node("one", cpu="8")
    cluster.node("two", cpu="8", taints=[{"key": "k", "effect": "NoSchedule"}])
    for name in "pq":
        cluster.pod(name, labels={"app": "x"})
    assert sorted(cluster.places().values()) == ["", "one"]
    assert "1 node(s) didn't match pod topology spread constraints" in cluster.recorded("FailedScheduling")[0]


def test_plugin_weights_decide(tmp_path: Path) -> None:
    weights = {
        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity", "weight": 1}]},
        "multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 7}]},
    }
    (profile,) = read_configuration(written(tmp_path, profiles=[{"plugins": weights}])).profiles
    assert profile.weights == {"NodeAffinity": 1}
    (profile,) = read_configuration(written(tmp_path, profiles=[{"plugins": {**weights, "score": {}}}])).profiles
    assert profile.weights == {**WEIGHTS, "NodeResourcesFit": 7}


def test_a_profiles_percentage_of_nodes_takes_precedence(tmp_path: Path) -> None:
    profiles = [{"schedulerName": "a", "percentageOfNodesToScore": 30}, {"schedulerName": "b"}]
    found = read_configuration(written(tmp_path, profiles=profiles, percentageOfNodesToScore=70)).profiles
    assert [each.percentage for each in found] == [30, 70]
    assert [enough(1000, each.percentage) for each in found] == [300, 700]
    assert (enough(1000), enough(99, 1), enough(1000, 1)) == (420, 99, 100)


def point(utilization: int, score: int) -> dict[str, int]:
    return {"utilization": utilization, "score": score}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        ({"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
            "podMaxBackoffSeconds: Invalid value: 4: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            'profiles[1].schedulerName: Duplicate value: "profiles[0].schedulerName"',
        ),
        ({"profiles": [{"schedulerName": "a"}, {}]}, "profiles[1].schedulerName: Required value"),
        ({"extender": []}, "Object contains unknown field `extender`"),
        (
            {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}]},
            'creating profile for scheduler name "default-scheduler": FilterPlugin "Mine" does not exist',
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodePorts"}]}}}]},
            'plugin "NodePorts" does not extend ScorePlugin plugin',
        ),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultBinder"}]}}}]},
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}}]},
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
    ],
)
def test_configuration_errors_equal_kube_schedulers(tmp_path: Path, fields: Any, problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_configuration(written(tmp_path, **fields))
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("plugin", "fields", "problem"),
    [
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "Best"}},
            'scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", '
            '"RequestedToCapacityRatio"',
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            "resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": RATIO}},
            "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
            "RequestedToCapacityRatio",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": RATIO, "requestedToCapacityRatio": {"shape": [point(5, 1), point(5, 11)]}}},
            "shape[1].utilization: Invalid value: 5: values must be sorted in increasing order",
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": RATIO, "requestedToCapacityRatio": {"shape": [point(5, 11)]}}},
            "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        ),
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["a/b"]},
            "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            "hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
            "minCandidateNodesAbsolute",
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"maxSkew": 0, "topologyKey": "zone"}], "defaultingType": "List"},
            "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{"topologyKey": "zone"}]},
            'defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            "bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            "resources[0].weight: Invalid value: 2: must be 1",
        ),
    ],
)
def test_arguments_are_checked(tmp_path: Path, plugin: str, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_configuration(written(tmp_path, profiles=[arguments(plugin, **fields)]))
    assert "profiles[0].pluginConfig[0].args." in str(raised.value)
    assert problem in str(raised.value)
