from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from tests.controllers.workloads.makers import stateful_sets
from tests.controllers.workloads.stage import WorkloadStage, names, pods_of, template

SETS, REVISIONS, CLAIMS = "apps/v1/statefulsets", "apps/v1/controllerrevisions", "persistentvolumeclaims"
LABELS = {"app": "db"}


def stateful_set(replicas: int, **spec: Any) -> dict[str, Any]:
    wanted = {"selector": {"matchLabels": LABELS}, "serviceName": "db", "template": template(LABELS), **spec}
    head = {"kind": "StatefulSet", "apiVersion": "apps/v1", "metadata": {"name": "db"}}
    return {**head, "spec": {"replicas": replicas, **wanted}}


def claims(**policy: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made: dict[str, Any] = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": spec}]}
    return {**made, "persistentVolumeClaimRetentionPolicy": policy} if policy else made


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": template(LABELS, name)}}


def images(stage: WorkloadStage) -> list[str]:
    return [pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in stage.pods()]


@pytest.fixture
def stage() -> WorkloadStage:
    return WorkloadStage(stateful_sets)


def test_pods_are_created_one_after_the_other_with_their_identity(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(3))
    for count in (1, 2, 3):
        stage.work()
        assert names(stage.pods()) == [f"db-{number}" for number in range(count)]
        stage.report(stage.pods()[-1])
    stage.work()
    pod = stage.get("pods", "db-1")
    assert pod["spec"]["hostname"] == "db-1"
    assert pod["spec"]["subdomain"] == "db"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    (revision,) = names(stage.all(REVISIONS))
    assert pod["metadata"]["labels"]["controller-revision-hash"] == revision
    status = stage.get(SETS, "db")["status"]
    assert (status["replicas"], status["readyReplicas"], status["currentReplicas"]) == (3, 3, 3)
    assert status["currentRevision"] == status["updateRevision"] == revision


def test_pods_are_deleted_from_the_highest_ordinal_one_at_a_time(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(3))
    stage.settle()
    stage.patch(SETS, "db", {"spec": {"replicas": 1}})
    stage.work()
    assert names(stage.pods(going=True)) == ["db-2"]
    stage.end_all()
    stage.work()
    assert names(stage.pods(going=True)) == ["db-1"]


def test_parallel_management_does_not_wait(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(3, podManagementPolicy="Parallel", ordinals={"start": 5}))
    stage.work()
    assert names(stage.pods()) == ["db-5", "db-6", "db-7"]
    stage.run_all()
    stage.patch(SETS, "db", {"spec": {"replicas": 0}})
    stage.work()
    assert names(stage.pods(going=True)) == ["db-5", "db-6", "db-7"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_terminated_pod_is_recreated(stage: WorkloadStage, phase: str) -> None:
    stage.create(SETS, stateful_set(1))
    stage.settle()
    (before,) = stage.pods()
    stage.report(before, phase)
    stage.settle()
    (after,) = stage.pods()
    assert after["metadata"]["name"] == "db-0"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize("killed", [False, True])
def test_an_update_proceeds_from_the_highest_ordinal_to_the_lowest(killed: bool) -> None:
    stage = WorkloadStage(stateful_sets, killed_at_every_write=killed)
    stage.create(SETS, stateful_set(3))
    stage.settle()
    stage.patch(SETS, "db", image("registry.example/app:2"))
    seen = [images(stage)]
    for _ in range(40):
        stage.work()
        stage.run_all()
        if images(stage) != seen[-1] and len(images(stage)) == 3:
            seen.append(images(stage))
    assert seen == [["1", "1", "1"], ["1", "1", "2"], ["1", "2", "2"], ["2", "2", "2"]]
    status = stage.get(SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_no_revision_has_two_pods_of_one_name_or_two_unavailable_pods() -> None:
    stage = WorkloadStage(stateful_sets, killed_at_every_write=True)
    stage.create(SETS, stateful_set(4))
    stage.settle()
    began = stage.log.head().revision
    stage.patch(SETS, "db", image("registry.example/app:2"))
    stage.settle()
    for there in stage.states(PODS):
        pods = pods_of(there)
        assert len({pod.name for pod in pods}) == len(pods)
        if pods and max(pod.revision for pod in pods) > began:
            assert sum(not pod.is_terminating for pod in pods) >= 3


def test_pods_below_the_partition_keep_the_old_revision(stage: WorkloadStage) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    stage.create(SETS, stateful_set(3, updateStrategy=rolling))
    stage.settle()
    stage.patch(SETS, "db", image("registry.example/app:2"))
    stage.settle()
    assert images(stage) == ["1", "1", "2"]
    stage.delete("pods", "db-0")
    stage.settle()
    assert images(stage) == ["1", "1", "2"]


def test_on_delete_updates_a_pod_when_it_is_deleted(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(2, updateStrategy={"type": "OnDelete"}))
    stage.settle()
    stage.patch(SETS, "db", image("registry.example/app:2"))
    stage.settle()
    assert images(stage) == ["1", "1"]
    stage.delete("pods", "db-0")
    stage.settle()
    assert images(stage) == ["2", "1"]


def test_a_rollback_reuses_the_old_revision_and_history_is_limited(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(1, revisionHistoryLimit=1))
    for tag in ("2", "3", "4", "1", "4"):
        stage.settle()
        stage.patch(SETS, "db", image(f"registry.example/app:{tag}"))
    stage.settle()
    numbers = sorted(each["revision"] for each in stage.all(REVISIONS))
    assert numbers == [5, 6]


def test_a_pod_gets_its_claim_before_its_creation_and_reuses_it(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(2, **claims()))
    stage.settle()
    assert names(stage.all(CLAIMS)) == ["data-db-0", "data-db-1"]
    volumes = stage.get("pods", "db-1")["spec"]["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]
    before = stage.get(CLAIMS, "data-db-1")["metadata"]["uid"]
    stage.patch(SETS, "db", {"spec": {"replicas": 1}})
    stage.settle()
    stage.patch(SETS, "db", {"spec": {"replicas": 2}})
    stage.settle()
    assert stage.get(CLAIMS, "data-db-1")["metadata"]["uid"] == before


@pytest.mark.parametrize(
    ("deleted", "scaled", "kept", "away"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)
def test_claims_are_owned_as_the_retention_policy_says(
    stage: WorkloadStage, deleted: str, scaled: str, kept: list[str], away: list[str]
) -> None:
    stage.create(SETS, stateful_set(2, **claims(whenDeleted=deleted, whenScaled=scaled)))
    stage.settle()
    stage.patch(SETS, "db", {"spec": {"replicas": 1}})
    stage.work()  # the pod is terminating, and still exists

    def owners(name: str) -> list[str]:
        return [each["kind"] for each in stage.get(CLAIMS, name)["metadata"].get("ownerReferences") or ()]

    assert (owners("data-db-0"), owners("data-db-1")) == (kept, away)


def test_a_pod_waits_for_the_deletion_of_its_predecessors_claim(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(2, **claims(whenDeleted="Retain", whenScaled="Delete")))
    stage.settle()
    stage.patch(SETS, "db", {"spec": {"replicas": 1}})
    stage.settle()  # no garbage collector runs here, so the claim of db-1 remains
    stage.patch(SETS, "db", {"spec": {"replicas": 2}})
    stage.settle()
    assert names(stage.pods()) == ["db-0"]
    stage.patch(CLAIMS, "data-db-1", {"metadata": {"finalizers": None}})
    stage.delete(CLAIMS, "data-db-1")
    stage.patch(SETS, "db", {"metadata": {"labels": {"look": "again"}}})
    stage.settle()
    assert names(stage.pods()) == ["db-0", "db-1"]


def test_edited_labels_are_restored(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(1))
    stage.settle()
    stage.patch("pods", "db-0", {"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": "edited"}}})
    stage.settle()
    assert stage.get("pods", "db-0")["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert "SuccessfulUpdate: Update Pod db-0 in StatefulSet db successful" in stage.recorded.all


def test_creations_emit_kubernetes_events(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(1, **claims()))
    stage.settle()
    assert stage.recorded.all == [
        "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
    ]


def test_a_terminating_claim_is_reported_as_a_failure_to_create_the_pod(stage: WorkloadStage) -> None:
    metadata = {"name": "data-db-0", "finalizers": ["example.com/slow"]}
    body = {**claims()["volumeClaimTemplates"][0], "metadata": metadata}
    stage.create(CLAIMS, {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **body})
    stage.delete(CLAIMS, "data-db-0")
    stage.create(SETS, stateful_set(1, **claims()))
    stage.work()
    message = "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
    assert stage.recorded.all[0] == f"FailedCreate: {message}"


def test_a_refused_pod_is_reported_and_retried_with_backoff(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(1, template=template(LABELS, priorityClassName="none-such")))
    stage.work()
    assert stage.recorded.all[0].startswith("FailedCreate: Create Pod db-0 in StatefulSet db failed error: ")
    before = len(stage.recorded.all)
    stage.pass_by(60)
    assert len(stage.recorded.all) - before < 15


def test_a_reconciled_stateful_set_is_not_written(stage: WorkloadStage) -> None:
    stage.create(SETS, stateful_set(2, **claims()))
    stage.settle()
    written = len(stage.written())
    stage.start()
    stage.pass_by(3600)
    assert len(stage.written()) == written
