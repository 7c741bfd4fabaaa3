"""A pod from its admission to its end: priorities, generations, grace periods, and what it can be found by."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.errors import Forbidden
from ctrlmgr.resources.strategies.pod import PodStrategy
from tests.resources.strategies.stage import Stage, staged

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
CONTAINERS = [{"name": "c", "image": "i:1"}]


def priority_class(name: str, value: int, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value, **rest}


LOW, HIGH = priority_class("low", 10), priority_class("high", 20, preemptionPolicy="Never")
DEFAULTS = (priority_class("old", 30, globalDefault=True), priority_class("lowest", 5, globalDefault=True))
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {ZONE: "z", "other": "o"}}}


def create(stage: Stage, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return stage.create({"metadata": metadata, "spec": {"containers": CONTAINERS, **(spec or {})}})


@pytest.mark.parametrize(
    ("classes", "spec", "expected"),
    [
        ((), {}, (0, "PreemptLowerPriority", None)),
        ((LOW, HIGH), {"priorityClassName": "high"}, (20, "Never", "high")),
        ((LOW, HIGH), {"priorityClassName": "low", "priority": 10}, (10, "PreemptLowerPriority", "low")),
        (DEFAULTS, {}, (5, "PreemptLowerPriority", "lowest")),
        (
            (),
            {"priorityClassName": "system-node-critical"},
            (2000001000, "PreemptLowerPriority", "system-node-critical"),
        ),
    ],
)
def test_a_priority_comes_from_its_class(
    classes: tuple[dict[str, Any], ...], spec: dict[str, Any], expected: tuple[int, str, str | None]
) -> None:
    made = create(staged("v1/pods", *classes), spec)["spec"]
    assert (made["priority"], made["preemptionPolicy"], made.get("priorityClassName")) == expected


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priorityClassName": "low", "priority": 11},
            "the integer value of priority (11) must not be provided in pod spec; priority admission controller "
            "computed 10 from the given PriorityClass name",
        ),
        (
            {"priorityClassName": "low", "preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
            "controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
    ],
)
def test_a_priority_is_not_for_the_author_to_say(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(Forbidden) as refused:
        create(staged("v1/pods", LOW), spec)
    assert str(refused.value) == f'pods "x" is forbidden: {problem}'


def test_an_update_without_a_priority_keeps_it() -> None:
    stage = staged("v1/pods", LOW)
    pod = create(stage, {"priorityClassName": "low"})
    changed = stage.update(pod, {"spec": {"priority": None, "preemptionPolicy": None, "tolerations": None}})
    assert changed["spec"] == pod["spec"]


def test_a_pod_is_labelled_as_its_node_is() -> None:
    stage = staged("v1/pods", NODE)
    assert create(stage, {"nodeName": "n"}, labels={"a": "b"})["metadata"]["labels"] == {"a": "b", ZONE: "z"}
    assert "labels" not in create(stage, {"nodeName": "m"})["metadata"]


def test_a_generation_counts_changes_of_the_spec() -> None:
    stage = staged("v1/pods")
    pod = create(stage)
    labelled = stage.update(pod, {"metadata": {"labels": {"a": "b"}}})
    running = stage.update(labelled, {"status": {"phase": "Running"}}, "status")
    changed = stage.update(running, {"spec": {"activeDeadlineSeconds": 5}})
    generations = [each["metadata"]["generation"] for each in (pod, labelled, running, changed)]
    assert generations == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "expected"),
    [
        ({}, "Pending", None, 0),
        ({}, "Running", 10, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 0}, "Running", None, 0),
        ({"nodeName": "n"}, "Running", 7, 7),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({"nodeName": "n"}, "Failed", 7, 0),
    ],
)
def test_grace_periods(spec: dict[str, Any], phase: str, asked: int | None, expected: int) -> None:
    stage = staged("v1/pods")
    pod = stage.update(create(stage, spec), {"status": {"phase": phase}}, "status")
    assert PodStrategy().grace_period(Object.from_dict(pod), asked) == expected


def test_what_a_pod_can_be_found_by() -> None:
    stage = staged("v1/pods")
    pod = create(stage, {"nodeName": "n", "hostNetwork": True, "serviceAccountName": "s", "restartPolicy": "Never"})
    status = {"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "m"}
    strategy = PodStrategy()
    found = strategy.selectable(Object.from_dict(stage.update(pod, {"status": status}, "status")))
    assert found == {
        "spec.nodeName": "n",
        "spec.host": "n",
        "spec.restartPolicy": "Never",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "s",
        "spec.hostNetwork": "true",
        "status.phase": "Running",
        "status.podIP": "10.0.0.1",
        "status.nominatedNodeName": "m",
    }
    assert found.keys() <= set(strategy.fields)


def test_ephemeral_containers_change_nothing_else() -> None:
    stage = staged("v1/pods")
    pod = create(stage)
    ephemeral = [{"name": "e", "image": "i:1"}]
    changes = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n", "ephemeralContainers": ephemeral}}
    changed = stage.update(pod, changes, "ephemeralcontainers")
    assert changed["spec"].pop("ephemeralContainers")[0]["imagePullPolicy"] == "IfNotPresent"
    assert changed["spec"] == pod["spec"]
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 2


def test_a_resize_changes_resources_and_nothing_else() -> None:
    stage = staged("v1/pods")
    pod = create(stage, {"containers": [{**CONTAINERS[0], "resources": {"requests": {"cpu": "1"}}}]})
    resized = [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}]
    changed = stage.update(pod, {"spec": {"containers": resized, "nodeName": "n"}}, "resize")
    expected = {**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": "2"}}}
    assert changed["spec"] == {**pod["spec"], "containers": [expected]}
    assert changed["metadata"]["generation"] == 2


AFFINITY = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        (
            {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
        ),
        (
            {"affinity": {"podAffinity": AFFINITY}},
            [
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: "
                "a null labelSelector results in matching no pod"
            ],
        ),
        (
            {"volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]},
            ["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}]},
            ['spec.imagePullSecrets[1].name: duplicate name "a"'],
        ),
        (
            {"containers": [{**CONTAINERS[0], "env": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}]},
            ['spec.containers[0].env[1]: hides previous definition of "a", which may be dropped when using apply'],
        ),
        (
            {"containers": [{**CONTAINERS[0], "resources": {"requests": {"memory": "1500m"}}}]},
            [
                'spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, '
                "must be an integer"
            ],
        ),
        (
            {"containers": [{**CONTAINERS[0], "ports": [{"containerPort": 1}, {"containerPort": 1}]}]},
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
        ),
        (
            {"containers": [{**CONTAINERS[0], "ports": [{"containerPort": 1, "hostPort": 8}, {"containerPort": 1}]}]},
            ["spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
        ),
    ],
)
def test_warnings(spec: dict[str, Any], warnings: list[str]) -> None:
    stage = staged("v1/pods")
    create(stage, spec)
    assert stage.warnings == warnings


def test_odd_addresses_are_warned_of() -> None:
    stage = staged("v1/pods")
    pod = create(stage)
    stage.update(pod, {"status": {"podIPs": [{"ip": "FD00::1"}]}}, "status")
    canonical = 'should be in RFC 5952 canonical format ("fd00::1")'
    assert stage.warnings == [f'status.podIPs[0].ip: IPv6 address "FD00::1" {canonical}']
