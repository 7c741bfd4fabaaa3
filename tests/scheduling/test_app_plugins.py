"""Tests of the scheduler plugins that an app declares."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr import App
from ctrlmgr.api.object import Object
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.cycle import FAILED, Decision, decide
from ctrlmgr.scheduling.profile import DEFAULT

CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def of(kind: str, name: str, **fields: Any) -> Object:
    head = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "ns" if kind == "Pod" else ""}}
    return Object.from_wire(json.dumps({**head, **fields}).encode())


POD = PodInfo.of(of("Pod", "p", spec={"containers": [{"name": "a"}]}))


def decided(plugins: SchedulerPlugins) -> Decision:
    nodes = [NodeInfo.of(of("Node", name, status={"allocatable": CAPACITY})) for name in ("a", "b")]
    return decide(POD, Cluster(nodes), profile=DEFAULT.with_plugins(plugins))


def test_a_filter_refuses_a_node_with_its_reason() -> None:
    plugins = SchedulerPlugins()

    @plugins.filter
    def only_b(pod: PodInfo, node: NodeInfo) -> str | None:
        return None if node.name == "b" else "node(s) were not b"

    decision = decided(plugins)
    assert decision.best == ["b"]
    assert decision.refusals["a"].plugin == "only_b"
    assert decision.refusals["a"].reasons == ("node(s) were not b",)


def test_a_score_counts_with_its_weight() -> None:
    plugins = SchedulerPlugins()

    @plugins.score(weight=3)
    def prefer_a(pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.name == "a" else 99

    decision = decided(plugins)
    assert decision.best == ["a"]
    assert (decision.scores.of("a")["prefer_a"], decision.scores.of("b")["prefer_a"]) == (300, 297)


def test_an_error_in_a_filter_fails_only_the_decision() -> None:
    plugins = SchedulerPlugins()

    @plugins.filter
    def broken(pod: PodInfo, node: NodeInfo) -> str | None:
        raise KeyError("zone")

    decision = decided(plugins)
    assert (decision.reason, decision.message) == (FAILED, "running \"broken\" filter plugin: 'zone'")
    assert decision.plugins == {"broken"}


@pytest.mark.parametrize("found", [101, -1, "1"])
def test_a_score_out_of_range_fails_the_decision(found: Any) -> None:
    plugins = SchedulerPlugins()

    @plugins.score
    def wild(pod: PodInfo, node: NodeInfo) -> int:
        return found  # type: ignore[no-any-return]  # decoded JSON

    decision = decided(plugins)
    problem = f"returns an invalid score {found}, it should in the range of [0, 100] after normalizing"
    assert (decision.best, decision.reason, decision.message) == ([], FAILED, f'plugin "wild" {problem}')


def test_the_plugins_of_several_apps_all_run() -> None:
    apps = [App("one"), App("two")]

    @apps[0].scheduler.filter
    def not_a(pod: PodInfo, node: NodeInfo) -> str | None:
        return "node(s) were a" if node.name == "a" else None

    @apps[1].scheduler.filter
    def not_b(pod: PodInfo, node: NodeInfo) -> str | None:
        return "node(s) were b" if node.name == "b" else None

    decision = decided(SchedulerPlugins.union([app.scheduler for app in apps]))
    assert decision.message.startswith("0/2 nodes are available: 1 node(s) were a, 1 node(s) were b.")


def test_an_invalid_declaration_is_an_error() -> None:
    plugins = SchedulerPlugins()

    async def waits(pod: PodInfo, node: NodeInfo) -> str | None:
        return None

    def alone(pod: PodInfo) -> str | None:
        return None

    def twice(pod: PodInfo, node: NodeInfo) -> str | None:
        return None

    plugins.filter(twice)
    for function in (waits, alone, twice):
        with pytest.raises(TypeError, match=f"scheduler plugin {function.__name__}"):
            plugins.filter(function)  # type: ignore[arg-type]  # the test passes unsuitable functions
    with pytest.raises(TypeError, match="weight must be a whole number above 0, not 0"):
        plugins.score(weight=0)
