from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.core import Pod
from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.deployment.decide import size
from ctrlmgr.controllers.workloads.controlled_pods import is_active
from ctrlmgr.controllers.workloads.replica_sets import REPLICA_SETS
from tests.controllers.workloads.makers import deployments, replica_sets
from tests.controllers.workloads.stage import WorkloadStage, names, pods_of, template

DEPLOYMENTS, SETS = "apps/v1/deployments", "apps/v1/replicasets"
LABELS = {"app": "web"}


def deployment(replicas: int, **spec: Any) -> dict[str, Any]:
    wanted = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(LABELS), **spec}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": wanted}


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": template(LABELS, name)}}


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def sizes(stage: WorkloadStage) -> dict[str, int]:
    """Return the numbers of replicas of the ReplicaSets, by revision."""
    mark = "deployment.kubernetes.io/revision"
    return {each["metadata"]["annotations"][mark]: each["spec"]["replicas"] for each in stage.all(SETS)}


def progress(stage: WorkloadStage) -> tuple[str, str]:
    conditions = stage.get(DEPLOYMENTS, "web")["status"]["conditions"]
    (found,) = (each for each in conditions if each["type"] == "Progressing")
    return found["status"], found["reason"]


@pytest.fixture
def stage() -> WorkloadStage:
    return WorkloadStage(replica_sets, deployments)


def test_a_deployment_has_one_replica_set_named_by_the_hash_of_its_template(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(3))
    stage.settle()
    (made,) = stage.all(SETS)
    hash_ = made["metadata"]["labels"]["pod-template-hash"]
    assert made["metadata"]["name"] == f"web-{hash_}"
    assert made["spec"]["selector"]["matchLabels"] == {**LABELS, "pod-template-hash": hash_}
    status = stage.get(DEPLOYMENTS, "web")["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    assert progress(stage) == ("True", "NewReplicaSetAvailable")
    assert stage.get(DEPLOYMENTS, "web")["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("surge", "unavailable", "most", "least"), [(1, 0, 6, 5), (0, 1, 5, 4), ("50%", "50%", 8, 3), (5, 5, 10, 0)]
)
def test_a_rollout_stays_within_its_bounds_at_every_revision(
    surge: int | str, unavailable: int | str, most: int, least: int, killed: bool
) -> None:
    stage = WorkloadStage(replica_sets, deployments, killed_at_every_write=killed)
    stage.create(DEPLOYMENTS, deployment(5, strategy=rolling(surge, unavailable)))
    stage.settle()
    began = stage.log.head().revision
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:2"))
    stage.settle()
    assert {each["spec"]["containers"][0]["image"] for each in stage.pods()} == {"registry.example/app:2"}
    for there in stage.states(PODS, REPLICA_SETS):
        # Check the limits of a Deployment: its ReplicaSets may not want more pods. A slow deletion may exceed them for
        # a moment.
        assert sum(map(size, there[REPLICA_SETS].values())) <= most
        active = [pod for pod in pods_of(there) if is_active(pod)]
        if max((pod.revision for pod in pods_of(there)), default=0) > began:
            assert sum(pod.view(Pod).is_ready for pod in active) >= least


def test_recreate_starts_new_pods_after_the_last_old_pod_is_deleted(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(2, strategy={"type": "Recreate"}))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:2"))
    stage.work()
    assert stage.pods() == []
    first, second = names(stage.pods(going=True))
    stage.delete("pods", first, gracePeriodSeconds=0)
    stage.work()
    assert stage.pods() == []
    stage.delete("pods", second, gracePeriodSeconds=0)
    stage.work()
    assert len(stage.pods()) == 2
    assert sizes(stage) == {"1": 0, "2": 2}


def test_a_deployment_scaled_during_a_rollout_is_scaled_proportionally(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(10, strategy=rolling(2, 1)))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:2"))
    stage.work()
    assert sizes(stage) == {"1": 9, "2": 3}
    stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
    stage.work()
    assert sizes(stage) == {"1": 13, "2": 4}
    stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
    stage.work()
    assert sizes(stage) == {"1": 0, "2": 0}


def test_a_paused_deployment_is_scaled_and_not_rolled_out(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(2))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, **image("registry.example/app:2")["spec"]}})
    stage.settle()
    assert progress(stage) == ("Unknown", "DeploymentPaused")
    stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    stage.settle()
    assert sizes(stage) == {"1": 4}
    stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    stage.settle()
    assert sizes(stage) == {"1": 0, "2": 4}


def test_returning_to_a_template_reuses_its_replica_set(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:2"))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:1"))
    stage.settle()
    assert sizes(stage) == {"2": 0, "3": 1}
    (again,) = (each for each in stage.all(SETS) if each["spec"]["replicas"])
    assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_the_rollback_annotation_of_old_clients_rolls_back(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", image("registry.example/app:2"))
    stage.settle()
    stage.patch(DEPLOYMENTS, "web", {"metadata": {"annotations": {"deprecated.deployment.rollback.to": "1"}}})
    stage.settle()
    found = stage.get(DEPLOYMENTS, "web")
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example/app:1"
    assert "deprecated.deployment.rollback.to" not in found["metadata"]["annotations"]
    assert 'DeploymentRollback: Rolled back deployment "web" to revision 1' in stage.recorded.all


def test_old_replica_sets_beyond_the_limit_are_deleted(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1, revisionHistoryLimit=1))
    for number in range(4):
        stage.settle()
        stage.patch(DEPLOYMENTS, "web", image(f"registry.example/app:{number + 2}"))
    stage.settle()
    assert sizes(stage) == {"4": 0, "5": 1}


def test_a_stalled_rollout_times_out_and_recovers(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1, progressDeadlineSeconds=60))
    stage.work()
    stage.pass_by(50)
    assert progress(stage) == ("True", "ReplicaSetUpdated")
    stage.pass_by(12)
    assert progress(stage) == ("False", "ProgressDeadlineExceeded")
    written = len(stage.written())
    stage.pass_by(600)
    assert len(stage.written()) == written
    stage.settle()
    assert progress(stage) == ("True", "NewReplicaSetAvailable")


def test_a_name_in_use_counts_as_a_collision(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1))
    stage.settle()
    (first,) = stage.all(SETS)
    stage.delete(DEPLOYMENTS, "web", propagationPolicy="Orphan")
    stage.patch(
        SETS,
        first["metadata"]["name"],
        {"metadata": {"labels": {"app": "other"}, "finalizers": None, "ownerReferences": None}},
    )
    for each in stage.all(DEPLOYMENTS):
        stage.patch(DEPLOYMENTS, each["metadata"]["name"], {"metadata": {"finalizers": None}})
    stage.create(DEPLOYMENTS, deployment(1))
    stage.settle()
    assert stage.get(DEPLOYMENTS, "web")["status"]["collisionCount"] == 1
    assert len(stage.all(SETS)) == 2


def test_the_deployment_reports_the_failure_of_its_replica_set(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1, template=template(LABELS, priorityClassName="none-such")))
    stage.work()
    conditions = {each["type"]: each for each in stage.get(DEPLOYMENTS, "web")["status"]["conditions"]}
    assert conditions["ReplicaFailure"]["reason"] == "FailedCreate"


def test_a_reconciled_deployment_is_not_written(stage: WorkloadStage) -> None:
    stage.create(DEPLOYMENTS, deployment(1))
    stage.settle()
    written = len(stage.written())
    stage.start()
    stage.pass_by(3600)
    assert len(stage.written()) == written
