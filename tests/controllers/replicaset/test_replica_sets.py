from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from tests.controllers.workloads.makers import replica_sets, replication_controllers
from tests.controllers.workloads.stage import WorkloadStage, names, pods_of, template

SETS = "apps/v1/replicasets"


def replica_set(replicas: int, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    wanted = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": wanted}


def bare_pod(name: str, **labels: str) -> dict[str, Any]:
    made = template(labels)
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, **made["metadata"]}, "spec": made["spec"]}


@pytest.fixture
def stage() -> WorkloadStage:
    return WorkloadStage(replica_sets)


def test_the_desired_number_of_pods_is_created_with_an_owner(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(3))
    stage.work()
    pods = stage.pods()
    assert len(pods) == 3
    for pod in pods:
        assert pod["metadata"]["name"].startswith("web-")
        assert pod["metadata"]["ownerReferences"][0]["name"] == "web"
        assert pod["metadata"]["ownerReferences"][0]["controller"]
    assert stage.get(SETS, "web")["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert sorted(stage.recorded.all) == sorted(f"SuccessfulCreate: Created pod: {name}" for name in names(pods))


def test_terminated_or_deleted_pods_are_replaced(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(2))
    stage.work()
    first, second = stage.pods()
    stage.report(first, "Failed")
    stage.report(second)
    stage.delete("pods", second["metadata"]["name"])
    stage.work()
    active = [pod for pod in stage.pods() if pod["status"]["phase"] == "Pending"]
    assert len(active) == 2
    assert stage.get(SETS, "web")["status"]["terminatingReplicas"] == 1


def test_scaling_down_deletes_the_least_useful_pods(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(3))
    stage.work()
    ready = stage.pods()[1]
    stage.report(ready)
    stage.patch(SETS, "web", {"spec": {"replicas": 1}}, "scale")
    stage.work()
    assert names(stage.pods()) == names([ready])


def test_a_matching_orphan_is_adopted_and_counts(stage: WorkloadStage) -> None:
    stage.create("pods", bare_pod("lonely", app="web"))
    stage.create("pods", bare_pod("foreign", app="db"))
    stage.create(SETS, replica_set(2))
    stage.work()
    assert len(stage.pods(app="web")) == 2
    assert stage.get("pods", "lonely")["metadata"]["ownerReferences"][0]["name"] == "web"
    assert "ownerReferences" not in stage.get("pods", "foreign")["metadata"]


def test_a_pod_that_no_longer_matches_is_released_and_replaced(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(1))
    stage.work()
    (pod,) = names(stage.pods())
    stage.patch("pods", pod, {"metadata": {"labels": {"app": "debug"}}})
    stage.work()
    assert "ownerReferences" not in stage.get("pods", pod)["metadata"]
    assert len(stage.pods(app="web")) == 1


def test_a_pod_is_available_after_min_ready_seconds(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(1, minReadySeconds=10))
    stage.work()
    stage.report(stage.pods()[0])
    stage.work()
    status = stage.get(SETS, "web")["status"]
    assert status["readyReplicas"] == 1
    assert "availableReplicas" not in status
    stage.pass_by(9)
    assert "availableReplicas" not in stage.get(SETS, "web")["status"]
    stage.pass_by(1.1)
    assert stage.get(SETS, "web")["status"]["availableReplicas"] == 1


def test_a_refused_creation_is_reported_and_retried_with_backoff(stage: WorkloadStage) -> None:
    # The pod template of a ReplicaSet is validated less strictly than a pod: a pod of this template is refused.
    stage.create(SETS, replica_set(2, template=template({"app": "web"}, priorityClassName="none-such")))
    stage.work()
    (condition,) = stage.get(SETS, "web")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert "none-such" in condition["message"]
    assert stage.recorded.all[0].startswith("FailedCreate: Error creating: pods ")
    before = len(stage.recorded.all)
    stage.pass_by(60)
    assert len(stage.recorded.all) - before < 15
    assert len(stage.written()) == 1  # the status is written once


def test_a_replica_set_in_deletion_creates_no_pods(stage: WorkloadStage) -> None:
    wanted = replica_set(2)
    wanted["metadata"]["finalizers"] = ["example.com/wait"]
    stage.create(SETS, wanted)
    stage.delete(SETS, "web")
    stage.work()
    assert stage.pods() == []


@pytest.mark.parametrize("replicas", [1, 7, 40])
def test_restarts_of_the_process_never_create_surplus_pods(replicas: int) -> None:
    stage = WorkloadStage(replica_sets, killed_at_every_write=True)
    stage.create(SETS, replica_set(replicas))
    stage.work()
    assert len(stage.pods()) == replicas
    assert max(len(pods_of(there)) for there in stage.states(PODS)) == replicas


def test_a_reconciled_replica_set_is_not_written(stage: WorkloadStage) -> None:
    stage.create(SETS, replica_set(3))
    stage.settle()
    written = len(stage.written())
    stage.start()
    stage.work()
    stage.pass_by(3600)
    assert len(stage.written()) == written


def test_a_replication_controller_behaves_alike() -> None:
    stage = WorkloadStage(replication_controllers)
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template({"app": "web"})}
    head = {"kind": "ReplicationController", "apiVersion": "v1"}
    stage.create("replicationcontrollers", {**head, "metadata": {"name": "web"}, "spec": spec})
    stage.settle()
    assert len(stage.pods()) == 2
    assert stage.pods()[0]["metadata"]["ownerReferences"][0]["kind"] == "ReplicationController"
    assert stage.get("replicationcontrollers", "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
