"""Tests of a pod from admission to deletion: priorities, generations, grace periods, field selectors."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.api.object import Object
from ctrlmgr.errors import Forbidden
from ctrlmgr.kinds.core.pod.strategy import PodStrategy
from ctrlmgr.kinds.core.pod.warnings import pod_warnings
from tests.kinds.stage import Stage, staged

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
def test_a_priority_is_set_from_its_class(
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
def test_a_given_priority_must_equal_its_classs(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(Forbidden) as refused:
        create(staged("v1/pods", LOW), spec)
    assert str(refused.value) == f'pods "x" is forbidden: {problem}'


def test_an_update_without_a_priority_keeps_it() -> None:
    stage = staged("v1/pods", LOW)
    pod = create(stage, {"priorityClassName": "low"})
    changed = stage.update(pod, {"spec": {"priority": None, "preemptionPolicy": None, "tolerations": None}})
    assert changed["spec"] == pod["spec"]


def test_a_pod_gets_the_topology_labels_of_its_node() -> None:
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


def test_selectable_fields_of_a_pod() -> None:
    stage = staged("v1/pods")
    pod = create(stage, {"nodeName": "n", "hostNetwork": True, "serviceAccountName": "s", "restartPolicy": "Never"})
    status = {"phase": "Running", "podIP": "10.0.0.1", "nominatedNodeName": "m"}
    strategy = PodStrategy()
    found = strategy.selectable(Object.from_dict({**pod, "status": status}))
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


def test_the_ephemeral_containers_subresource_changes_nothing_else() -> None:
    stage = staged("v1/pods")
    pod = create(stage)
    ephemeral = [{"name": "e", "image": "i:1"}]
    changes = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n", "ephemeralContainers": ephemeral}}
    changed = stage.update(pod, changes, "ephemeralcontainers")
    assert changed["spec"].pop("ephemeralContainers")[0]["imagePullPolicy"] == "IfNotPresent"
    assert changed["spec"] == pod["spec"]
    assert "labels" not in changed["metadata"]
    assert changed["metadata"]["generation"] == 2


def test_resize_changes_only_resources() -> None:
    stage = staged("v1/pods")
    pod = create(stage, {"containers": [{**CONTAINERS[0], "resources": {"requests": {"cpu": "1"}}}]})
    resized = [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}]
    changed = stage.update(pod, {"spec": {"containers": resized, "nodeName": "n"}}, "resize")
    expected = {**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": "2"}}}
    assert changed["spec"] == {**pod["spec"], "containers": [expected]}
    assert changed["metadata"]["generation"] == 2


def test_a_pod_with_pod_level_resources_is_resized() -> None:
    stage = staged("v1/pods")
    pod = create(stage, {"containers": CONTAINERS, "resources": {"requests": {"cpu": "1"}}})
    changed = stage.update(pod, {"spec": {"resources": {"requests": {"cpu": "2"}}, "nodeName": "n"}}, "resize")
    assert changed["spec"] == {**pod["spec"], "resources": {"requests": {"cpu": "2"}}}
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


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OLD_NODE = {"matchExpressions": [{"key": "beta.kubernetes.io/arch", "operator": "Exists"}]}
ALPHA = "seccomp.security.alpha.kubernetes.io/pod"


@pytest.mark.parametrize(
    ("template", "warnings"),
    [
        (
            {"spec": {"overhead": {"memory": "1m"}}},
            ['overhead[memory]: fractional byte value "1m" is invalid, must be an integer'],
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": -1}},
            ["terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"],
        ),
        (
            {"spec": {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": OLD_NODE}]}}}},
            [
                f"affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].key: beta.kubernetes.io/arch is "
                'deprecated since v1.14; use "kubernetes.io/arch" instead'
            ],
        ),
        (
            {"spec": {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {}}]}}}},
            [
                f"affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.labelSelector: a null labelSelector results "
                "in matching no pod"
            ],
        ),
        (
            {"spec": {"topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}]}},
            [
                "topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since "
                'v1.17; use "topology.kubernetes.io/zone" instead',
                "topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        ({"spec": {"imagePullSecrets": [{}]}}, ['imagePullSecrets[0].name: invalid empty name ""']),
        (
            {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostIP": "10.0.0.1"}]}]}},
            [
                "containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:1 Protocol: "
                "HostIP:10.0.0.1}"
            ],
        ),
        (
            {
                "spec": {
                    "containers": [
                        {
                            "name": "c",
                            "ports": [
                                {"containerPort": 1, "hostPort": 8},
                                {"containerPort": 1, "hostPort": 8, "hostIP": "10.0.0.1"},
                            ],
                        }
                    ]
                }
            },
            ["containers[0].ports[1]: dangerously ambiguous port definition with template.spec.containers[0].ports[0]"],
        ),
    ],
)
def test_templates_cause_warnings(template: dict[str, Any], warnings: list[str]) -> None:
    assert pod_warnings(template, Path("template")) == [f"template.spec.{each}" for each in warnings]


def test_deprecated_annotations_cause_warnings() -> None:
    profiles = {ALPHA: "x", "container.seccomp.security.alpha.kubernetes.io/c": "x"}
    apparmor = {"container.apparmor.security.beta.kubernetes.io/c": "x"}
    critical = {"scheduler.alpha.kubernetes.io/critical-pod": ""}
    metadata = {"annotations": {**profiles, **apparmor, **critical}}
    instead = 'use the "{}" field instead'
    field = f"non-functional in v1.27+; {instead.format('seccompProfile')}"
    expected = [
        f"scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; {instead.format('priorityClassName')}",
        f"{ALPHA}]: {field}",
        f"container.seccomp.security.alpha.kubernetes.io/c]: {field}",
        "container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; "
        + instead.format("appArmorProfile"),
    ]
    found = pod_warnings({"metadata": metadata, "spec": {"containers": CONTAINERS}}, Path("template"))
    assert found == [f"template.metadata.annotations[{each}" for each in expected]


def test_a_status_write_keeps_fields_unknown_to_old_kubelets() -> None:
    stage = staged("v1/pods")
    owners = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
    pod = create(stage, ownerReferences=owners)
    conditions = [{"type": "Ready", "status": "True"}]
    said = {
        "qosClass": "BestEffort",
        "observedGeneration": 1,
        "conditions": [{**conditions[0], "observedGeneration": 1}],
    }
    known = stage.update(pod, {"status": said}, "status")
    unsaid = {"qosClass": None, "observedGeneration": None, "conditions": conditions}
    kept = stage.update(known, {"metadata": {"ownerReferences": None}, "status": unsaid}, "status")
    assert (kept["status"], kept["metadata"]) == (known["status"], known["metadata"])


def test_non_canonical_addresses_cause_warnings() -> None:
    stage = staged("v1/pods")
    pod = create(stage)
    stage.update(pod, {"status": {"podIPs": [{"ip": "FD00::1"}]}}, "status")
    canonical = 'should be in RFC 5952 canonical format ("fd00::1")'
    assert stage.warnings == [f'status.podIPs[0].ip: IPv6 address "FD00::1" {canonical}']


def test_fields_of_disabled_gates_are_not_stored() -> None:
    stage = staged("v1/pods")
    container = {**CONTAINERS[0], "lifecycle": {"stopSignal": "SIGTERM"}}
    made = create(stage, {"containers": [container], "os": {"name": "linux"}, "schedulingGroup": {"podGroupName": "g"}})
    assert "lifecycle" not in made["spec"]["containers"][0]
    assert "schedulingGroup" not in made["spec"]
