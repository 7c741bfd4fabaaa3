"""Tests of how bindings and evictions of pods are decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.errors import ApiError, BadRequest, Conflict, Forbidden, InternalError, TooManyRequests, UnknownError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.kinds.core.pod.subresources import MOST_DISRUPTED, bind, evict
from tests.kinds.stage import NOW, Stage, merged, staged

ZONE = "topology.kubernetes.io/zone"
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {ZONE: "z", "other": "o"}}}
TARGET = {"target": {"kind": "Node", "name": "n"}}
LABELS = {"app": "a"}


def a_pod(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    stage = staged("v1/pods")
    pod = stage.create({"metadata": {"name": "p", "labels": LABELS}, "spec": spec})
    return {**merged(pod, changes or {})}


def test_a_binding_assigns_a_pod_to_a_node() -> None:
    stage, pod = staged("v1/pods", NODE), a_pod({"status": {"nominatedNodeName": "m"}})
    binding = {"metadata": {"name": "p", "annotations": {"x": "y"}, "labels": {"l": "m"}}, **TARGET}
    bind(stage.context(), pod, binding)
    assert pod["spec"]["nodeName"] == "n"
    assert pod["metadata"]["annotations"] == {"x": "y"}
    assert pod["metadata"]["labels"] == {**LABELS, "l": "m"}
    assert pod["metadata"]["generation"] == 1
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort", "conditions": [condition]}


@pytest.mark.parametrize(
    ("changes", "binding", "error", "problem"),
    [
        ({}, {"metadata": {"name": "q"}, **TARGET}, BadRequest, "name in URL does not match name in Binding object"),
        ({}, {"target": {"kind": "Node"}}, InternalError, "target.name: Required value"),
        (
            {},
            {"target": {"kind": "Pod", "name": "n"}},
            InternalError,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        (
            {"spec": {"nodeName": "m"}},
            TARGET,
            Conflict,
            'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "m"',
        ),
        (
            {"metadata": {"deletionTimestamp": NOW}},
            TARGET,
            Conflict,
            'Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be assigned to a host',
        ),
        (
            {"spec": {"schedulingGates": [{"name": "g"}]}},
            TARGET,
            Conflict,
            'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates',
        ),
        (
            {},
            {"metadata": {"uid": "other"}, **TARGET},
            Conflict,
            'Operation cannot be fulfilled on pods "p": StorageError: invalid object, Code: 4, Key: '
            "/pods/default/p, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            "precondition: other, UID in object meta: uid-1",
        ),
    ],
)
def test_invalid_bindings_are_refused(
    changes: dict[str, Any], binding: dict[str, Any], error: type[ApiError], problem: str
) -> None:
    with pytest.raises(error) as refused:
        bind(staged("v1/pods").context(), a_pod(changes), binding)
    assert str(refused.value).endswith(problem)


def a_budget(name: str = "b", spec: Mapping[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default", "generation": 1, "resourceVersion": "7"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}, **(spec or {})},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 1,
            "currentHealthy": 2,
            "desiredHealthy": 1,
            **status,
        },
    }


READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
RUNNING = {"status": {"phase": "Running"}}


def evicted(stage: Stage, changes: Mapping[str, Any], eviction: Mapping[str, Any] | None = None) -> Any:
    return evict(stage.context(), Object.from_dict(a_pod(changes)), dict(eviction or {}))


def test_an_eviction_sets_a_condition_and_uses_the_budget() -> None:
    stage = staged("v1/pods", a_budget(disruptedPods={"q": NOW}), a_budget("other", {"selector": {}}))
    result = evicted(stage, READY, {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 3}})
    assert result.options == {"gracePeriodSeconds": 3}
    assert result.pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": NOW,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    budget = result.budget
    assert (budget.type, budget.object.name, budget.expected) == (EventType.MODIFIED, "b", 7)
    status = budget.object.to_dict()["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"q": NOW, "p": NOW}
    assert [each["reason"] for each in status["conditions"]] == ["InsufficientPods"]


@pytest.mark.parametrize(
    ("budgets", "changes"),
    [
        pytest.param((), READY, id="no budget"),
        pytest.param((a_budget(disruptionsAllowed=0),), {"status": {"phase": "Succeeded"}}, id="ended"),
        pytest.param((a_budget(disruptionsAllowed=0),), {"status": {"phase": "Pending"}}, id="not begun"),
        pytest.param(
            (a_budget(disruptionsAllowed=0),), merged(READY, {"metadata": {"deletionTimestamp": NOW}}), id="going"
        ),
        pytest.param((a_budget(spec={"selector": {"matchLabels": {"app": "b"}}}),), READY, id="of others"),
        pytest.param((a_budget(spec={"selector": None}),), READY, id="of nobody"),
        pytest.param((a_budget(disruptionsAllowed=0),), RUNNING, id="ill while enough are well"),
        pytest.param(
            (a_budget(spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"}, currentHealthy=0, disruptionsAllowed=0),),
            RUNNING,
            id="ill and may always go",
        ),
    ],
)
def test_evictions_that_use_no_budget(budgets: tuple[dict[str, Any], ...], changes: dict[str, Any]) -> None:
    assert evicted(staged("v1/pods", *budgets), changes).budget is None


@pytest.mark.parametrize(
    ("status", "changes", "cause", "seconds"),
    [
        pytest.param(
            {"disruptionsAllowed": 0},
            READY,
            "The disruption budget b needs 1 healthy pods and has 2 currently",
            0,
            id="used up",
        ),
        pytest.param(
            {"disruptionsAllowed": 0, "currentHealthy": 0},
            RUNNING,
            "The disruption budget b needs 1 healthy pods and has 0 currently",
            0,
            id="ill while too few are well",
        ),
        pytest.param(
            {"observedGeneration": 0},
            READY,
            "The disruption budget b is still being processed by the server.",
            10,
            id="not observed yet",
        ),
    ],
)
def test_evictions_above_the_budget_must_wait(
    status: dict[str, Any], changes: dict[str, Any], cause: str, seconds: int
) -> None:
    with pytest.raises(TooManyRequests) as refused:
        evicted(staged("v1/pods", a_budget(**status)), changes)
    assert str(refused.value) == "Cannot evict pod as it would violate the pod's disruption budget."
    details = refused.value.details
    assert details is not None
    assert [(each.reason, each.message) for each in details.causes] == [("DisruptionBudget", cause)]
    assert details.retry_after_seconds == seconds


MANY = {f"q{number}": NOW for number in range(MOST_DISRUPTED + 1)}


@pytest.mark.parametrize(
    ("budgets", "eviction", "error", "problem"),
    [
        (
            (a_budget("a"), a_budget("b")),
            {},
            UnknownError,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ),
        (
            (a_budget(disruptionsAllowed=-1),),
            {},
            Forbidden,
            'poddisruptionbudget.policy "b" is forbidden: pdb disruptions allowed is negative',
        ),
        (
            (a_budget(disruptedPods=MANY),),
            {},
            Forbidden,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ),
        ((), {"metadata": {"name": "q"}}, BadRequest, "name in URL does not match name in Eviction object"),
    ],
)
def test_invalid_evictions_are_refused(
    budgets: tuple[dict[str, Any], ...], eviction: dict[str, Any], error: type[ApiError], problem: str
) -> None:
    with pytest.raises(error) as refused:
        evicted(staged("v1/pods", *budgets), READY, eviction)
    assert str(refused.value).endswith(problem)


def test_a_dry_run_uses_no_budget() -> None:
    stage = staged("v1/pods", a_budget())
    pod = Object.from_dict(a_pod(READY))
    for result in (
        evict(stage.context(dry_run=True), pod, {}),
        evict(stage.context(), pod, {"deleteOptions": {"dryRun": ["All"]}}),
    ):
        assert (result.budget, result.pod["status"]) == (None, pod.to_dict()["status"])
