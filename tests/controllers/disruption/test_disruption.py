from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.disruption.controller import build
from ctrlmgr.manager import Controller
from tests.controllers.workloads.makers import deployments, replica_sets
from tests.controllers.workloads.stage import WorkloadStage, names, template

BUDGETS, DEPLOYMENTS, SETS = "policy/v1/poddisruptionbudgets", "apps/v1/deployments", "apps/v1/replicasets"
LABELS = {"app": "web"}


def disruption(stage: WorkloadStage) -> Controller:
    return build(stage.context, NoOptions())


@pytest.fixture(params=[False, True], ids=["", "killed"])
def stage(request: pytest.FixtureRequest) -> WorkloadStage:
    return WorkloadStage(deployments, replica_sets, disruption, killed_at_every_write=request.param)


def budget(name: str = "pdb", **spec: Any) -> dict[str, Any]:
    head = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": name}}
    return {**head, "spec": {"selector": {"matchLabels": LABELS}, **spec}}


def workload(kind: str, replicas: int, name: str = "web") -> dict[str, Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS)}
    return {"kind": kind, "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": spec}


def counts(stage: WorkloadStage, name: str = "pdb") -> tuple[int, int, int, int]:
    status = stage.get(BUDGETS, name)["status"]
    fields = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    first, second, third, fourth = (status[field] for field in fields)
    return first, second, third, fourth


def condition(stage: WorkloadStage) -> dict[str, Any]:
    (found,) = stage.get(BUDGETS, "pdb")["status"]["conditions"]
    return dict(found)


def evict(stage: WorkloadStage, name: str) -> int:
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}}
    return stage.send("POST", stage.path("pods", name, "eviction"), body).code


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"minAvailable": 2}, (5, 2, 5, 3), id="a number"),
        pytest.param({"minAvailable": "50%"}, (5, 3, 5, 2), id="a share is rounded up"),
        pytest.param({"maxUnavailable": 2}, (5, 3, 5, 2), id="how many may be away"),
        pytest.param({"maxUnavailable": "30%"}, (5, 3, 5, 2), id="a share of those is rounded up, too"),
        pytest.param({"maxUnavailable": 9}, (5, 0, 5, 5), id="more than there are"),
        pytest.param({"minAvailable": "100%"}, (5, 5, 5, 0), id="all"),
        pytest.param({"minAvailable": 9}, (5, 9, 5, 0), id="more than there are to be"),
    ],
)
def test_budgets_count_healthy_pods(stage: WorkloadStage, spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    stage.create(DEPLOYMENTS, workload("Deployment", 5))
    stage.settle()
    stage.create(BUDGETS, budget(**spec))
    stage.settle()
    assert counts(stage) == expected
    allowed = expected[-1] > 0
    assert condition(stage)["status"] == str(allowed)
    assert condition(stage)["reason"] == ("SufficientPods" if allowed else "InsufficientPods")
    assert stage.get(BUDGETS, "pdb")["status"]["observedGeneration"] == 1


def test_evictions_use_the_budget_and_new_pods_restore_it(stage: WorkloadStage) -> None:
    stage.create(SETS, workload("ReplicaSet", 3))
    stage.settle()
    stage.create(BUDGETS, budget(minAvailable=2))
    stage.settle()
    first, second, _ = names(stage.pods())
    assert evict(stage, first) == 201
    assert evict(stage, second) == 429
    stage.work()
    assert counts(stage) == (4, 2, 2, 0)
    assert evict(stage, second) == 429
    stage.settle()
    assert counts(stage) == (3, 2, 3, 1)
    assert "disruptedPods" not in stage.get(BUDGETS, "pdb")["status"]
    assert evict(stage, second) == 201


def test_an_eviction_without_a_deletion_expires_after_two_minutes(stage: WorkloadStage) -> None:
    stage.create(SETS, workload("ReplicaSet", 3))
    stage.settle()
    stage.create(BUDGETS, budget(maxUnavailable=1))
    stage.settle()
    name = names(stage.pods())[0]
    stage.patch(BUDGETS, "pdb", {"status": {"disruptedPods": {name: stage.now()}, "disruptionsAllowed": 0}}, "status")
    stage.pass_by(60)
    assert counts(stage) == (3, 2, 2, 0)
    stage.pass_by(61)
    assert counts(stage) == (3, 2, 3, 1)
    assert "NotDeleted: Pod was expected by PDB shop/shop to be deleted but it wasn't" in stage.recorded.all


def test_pods_without_a_controller_are_reported_and_counted_for_absolute_numbers(stage: WorkloadStage) -> None:
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "alone", "labels": LABELS}}
    stage.create("pods", {**pod, "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]}})
    stage.create(BUDGETS, budget(maxUnavailable=1))
    stage.settle()
    assert counts(stage) == (0, 0, 1, 0)
    (recorded,) = {each for each in stage.recorded.all if each.startswith("UnmanagedPods")}
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in recorded
    stage.patch(BUDGETS, "pdb", {"spec": {"maxUnavailable": None, "minAvailable": 0}})
    stage.settle()
    assert counts(stage) == (1, 0, 1, 1)


@pytest.mark.parametrize(
    ("api_version", "kind", "problem"),
    [
        ("example.com/v1", "Thing", 'no matches for kind "Thing" in version "example.com/v1"'),
        ("apps/v1", "DaemonSet", "daemonsets.apps does not implement the scale subresource"),
        ("apps/v1", "StatefulSet", 'found no controllers for pod "odd"'),
    ],
)
def test_pods_that_cannot_be_counted_allow_no_disruptions(
    stage: WorkloadStage, api_version: str, kind: str, problem: str
) -> None:
    stage.create(SETS, workload("ReplicaSet", 2))
    stage.settle()
    stage.create(BUDGETS, budget(maxUnavailable="50%"))
    stage.settle()
    assert counts(stage)[-1] == 1
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "odd", "labels": LABELS, "ownerReferences": [owner]}}
    stage.create("pods", {**pod, "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}]}})
    stage.work()
    assert counts(stage)[-1] == 0
    assert (condition(stage)["reason"], condition(stage)["message"]) == ("SyncFailed", problem)
    message = f"CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: {problem}"
    assert message in stage.recorded.all
    before = stage.log.head().revision
    stage.pass_by(600)
    assert stage.log.head().revision == before


def test_the_disruption_target_of_a_kept_pod_is_removed_after_two_minutes(stage: WorkloadStage) -> None:
    stage.create(SETS, workload("ReplicaSet", 1))
    stage.settle()
    (pod,) = stage.pods()
    mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    conditions = [*pod["status"]["conditions"], {**mark, "lastTransitionTime": stage.now()}]
    stage.patch("pods", pod["metadata"]["name"], {"status": {"conditions": conditions}}, "status")
    stage.pass_by(119)
    assert stage.get("pods", pod["metadata"]["name"])["status"]["conditions"][-1]["status"] == "True"
    stage.pass_by(2)
    found = stage.get("pods", pod["metadata"]["name"])["status"]["conditions"][-1]
    assert (found["type"], found["status"]) == ("DisruptionTarget", "False")


def test_a_pod_of_two_budgets_is_reported_and_not_evicted(stage: WorkloadStage) -> None:
    stage.create(BUDGETS, budget("one", minAvailable=0))
    stage.create(BUDGETS, budget("two", minAvailable=0))
    stage.create(SETS, workload("ReplicaSet", 1))
    stage.settle()
    (name,) = names(stage.pods())
    assert evict(stage, name) == 500
    recorded = f'Pod "shop"/"{name}" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
    assert f"MultiplePodDisruptionBudgets: {recorded}" in stage.recorded.all
