"""Tests of the Job controller: it creates pods, counts them and removes their finalizers, and finishes Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.controllers.job import decide, pod_tracking
from ctrlmgr.controllers.job.indexes import FAILURES, IGNORED_FAILURES, INDEX
from ctrlmgr.controllers.job.pod_of_job import name_prefix
from ctrlmgr.controllers.job.view import TRACKING
from tests.controllers.job.stage import COLLECTION, POD_COLLECTION, JobStage

COMPLETE = [("SuccessCriteriaMet", "True", "CompletionsReached"), ("Complete", "True", "CompletionsReached")]


def _failed(reason: str) -> list[tuple[str, str, str]]:
    return [("FailureTarget", "True", reason), ("Failed", "True", reason)]


@pytest.fixture
def stage() -> JobStage:
    return JobStage()


def test_a_job_runs_pods_within_its_parallelism_until_enough_succeed(stage: JobStage) -> None:
    stage.job(completions=3, parallelism=2)
    assert stage.counts() == (2, 0, 0)
    for succeeded in range(1, 4):
        stage.run()
        stage.end(stage.running()[0])
        stage.settle()
        assert stage.counts() == (min(2, 3 - succeeded), succeeded, 0)
    assert stage.conditions() == COMPLETE
    assert stage.status()["completionTime"]
    assert stage.tracked() == []
    assert stage.recorded.reasons() == ["SuccessfulCreate"] * 3 + ["Completed"]


def test_pods_have_the_jobs_template_and_a_finalizer(stage: JobStage) -> None:
    stage.job()
    [pod] = stage.pods()
    assert pod.name.startswith("job-")
    assert pod.metadata.finalizers == [TRACKING]
    assert pod.labels["batch.kubernetes.io/job-name"] == "job"
    [owner] = pod.metadata.owner_references or []
    assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == ("Job", "job", True, True)
    assert stage.status()["uncountedTerminatedPods"] == {}


def test_a_work_queue_ends_when_one_pod_succeeded_and_none_runs(stage: JobStage) -> None:
    stage.job(parallelism=3)
    stage.run()
    first, second, third = stage.running()
    stage.end(first)
    stage.settle()
    assert stage.counts() == (2, 1, 0)
    stage.end(second, 1)
    stage.end(third)
    stage.settle()
    assert stage.counts() == (0, 2, 1)
    assert stage.conditions() == COMPLETE


def test_changes_of_pods_are_batched(stage: JobStage) -> None:
    stage.job(completions=2, parallelism=2)
    stage.run()
    stage.work()
    written = len(stage.written())
    for pod in stage.running():
        stage.end(pod)
    stage.pass_by(0.09)
    assert len(stage.written()) == written
    stage.pass_by(0.02)
    assert stage.conditions() == COMPLETE


def test_a_failed_pod_is_replaced_after_a_backoff(stage: JobStage) -> None:
    stage.job()
    stage.run()
    stage.end(stage.running()[0], 1, ago=0)
    stage.settle()
    stage.pass_by(6)
    assert stage.counts() == (0, 0, 1)
    assert len(stage.pods()) == 1
    stage.settle()
    assert stage.counts() == (1, 0, 1)
    stage.end(stage.running()[0], 1, ago=0)
    stage.settle()
    stage.pass_by(16)
    assert len(stage.pods()) == 2
    stage.settle()
    assert len(stage.pods()) == 3


def test_too_many_failures_fail_the_job(stage: JobStage) -> None:
    stage.job(backoffLimit=1, completions=3, parallelism=3)
    stage.run()
    for pod in stage.running():
        stage.bind(pod)
    first, second, _ = stage.running()
    stage.end(first, 1)
    stage.end(second, 1)
    stage.settle()
    assert stage.conditions() == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert stage.counts() == (0, 0, 3)  # pods that were still running count as failed
    assert stage.status()["terminating"] == 1
    stage.take_away()
    assert stage.conditions() == _failed("BackoffLimitExceeded")
    assert stage.recorded.events[-1] == (
        "Warning",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert stage.tracked() == []


def test_restarts_of_containers_count_toward_the_backoff_limit(stage: JobStage) -> None:
    stage.job(restarts="OnFailure", backoffLimit=3, completions=2, parallelism=2)
    one, other = stage.running()
    stage.restart(one, 1)
    stage.restart(other, 1)
    stage.settle()
    assert stage.conditions() == []
    stage.restart(other, 2)
    stage.settle()
    assert stage.conditions() == _failed("BackoffLimitExceeded")


def test_a_deadline_fails_the_job(stage: JobStage) -> None:
    stage.job(activeDeadlineSeconds=30)
    stage.pass_by(26)
    assert stage.conditions() == []
    stage.pass_by(2)
    stage.settle()
    assert stage.conditions() == _failed("DeadlineExceeded")
    assert stage.counts() == (0, 0, 1)


def test_indexed_pods_have_their_index(stage: JobStage) -> None:
    stage.job(completionMode="Indexed", completions=3, parallelism=2)
    pods = stage.running()
    assert [pod.annotations[INDEX] for pod in pods] == [pod.labels[INDEX] for pod in pods] == ["0", "1"]
    spec = pods[1].to_dict()["spec"]
    assert spec["hostname"] == "job-1"
    assert pods[1].name.startswith("job-1-")
    assert spec["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {
                "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"},
            },
        }
    ]


def test_the_lowest_indexes_are_assigned_first_and_stored_compressed(stage: JobStage) -> None:
    stage.job(completionMode="Indexed", completions=5, parallelism=3)
    stage.run()
    for index in (1, 2):
        stage.end(stage.index(index))
    stage.settle()
    assert stage.status()["completedIndexes"] == "1,2"
    assert [pod.annotations[INDEX] for pod in stage.running()] == ["0", "3", "4"]
    stage.end(stage.index(0), 1)
    stage.end(stage.index(3))
    stage.settle()
    assert stage.status()["completedIndexes"] == "1-3"
    assert [pod.annotations[INDEX] for pod in stage.running()] == ["0", "4"]
    for index in (0, 4):
        stage.end(stage.index(index))
    stage.settle()
    assert (stage.status()["completedIndexes"], stage.conditions()) == ("0-4", COMPLETE)
    assert stage.counts() == (0, 5, 1)


def test_an_indexed_job_can_be_scaled(stage: JobStage) -> None:
    stage.job(completionMode="Indexed", completions=2, parallelism=2)
    stage.patch(f"{COLLECTION}/job", {"spec": {"completions": 4, "parallelism": 4}})
    stage.settle()
    assert len(stage.running()) == 4
    stage.end(stage.index(3))
    stage.settle()
    stage.patch(f"{COLLECTION}/job", {"spec": {"completions": 2, "parallelism": 2}})
    stage.settle()
    assert [pod.annotations[INDEX] for pod in stage.running()] == ["0", "1"]
    assert stage.counts() == (2, 0, 0)


def test_a_long_name_is_shortened_for_the_index() -> None:
    assert name_prefix("job", 3) == "job-3-"
    assert name_prefix("n" * 63, 12) == "n" * 54 + "-12-"


def test_each_index_has_a_backoff_limit(stage: JobStage) -> None:
    stage.job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    assert stage.status()["failedIndexes"] == ""
    stage.end(stage.index(0), 1)
    stage.settle()
    assert stage.index(0).annotations[FAILURES] == "1"
    assert stage.tracked() == sorted(pod.name for pod in stage.running())
    stage.end(stage.index(0), 1)
    stage.settle()
    assert stage.status()["failedIndexes"] == "0"
    assert [pod.annotations[INDEX] for pod in stage.running()] == ["1"]
    stage.end(stage.index(1))
    stage.settle()
    assert stage.conditions() == _failed("FailedIndexes")


def test_a_failed_pod_is_kept_until_its_successor_has_the_failure_count(stage: JobStage) -> None:
    stage.job(completionMode="Indexed", completions=1, parallelism=1, backoffLimitPerIndex=3)
    stage.end(stage.index(0), 1, ago=0)
    stage.settle()
    assert len(stage.tracked()) == 1  # the failed pod, whose index waits for its back-off
    stage.pass_by(10)
    stage.settle()
    assert stage.tracked() == [stage.index(0).name]
    assert stage.counts() == (1, 0, 1)


def test_too_many_failed_indexes_fail_the_job(stage: JobStage) -> None:
    limits: dict[str, Any] = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    stage.job(completionMode="Indexed", completions=4, parallelism=4, **limits)
    stage.end(stage.index(0), 1)
    stage.settle()
    assert stage.conditions() == []
    stage.end(stage.index(2), 1)
    stage.settle()
    assert stage.conditions() == _failed("MaxFailedIndexesExceeded")
    assert stage.status()["failedIndexes"] == "0,2"


def test_a_failure_policy_ignores_counts_or_fails(stage: JobStage) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    stage.job(completions=2, parallelism=2, backoffLimit=0, podFailurePolicy={"rules": rules})
    stage.end(stage.running()[0], 137, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    stage.settle()
    assert stage.counts() == (2, 0, 0)
    failed = stage.running()[0]
    stage.end(failed, 42)
    stage.settle()
    assert stage.conditions() == _failed("PodFailurePolicy")
    message = f"Container c for pod a/{failed.name} failed with exit code 42 matching FailJob rule at index 1"
    assert stage.recorded.events[-1] == ("Warning", "PodFailurePolicy", message)


def test_ignored_failures_of_an_index_are_counted_separately(stage: JobStage) -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [9]}}]
    options: dict[str, Any] = {"backoffLimitPerIndex": 0, "podFailurePolicy": {"rules": rules}}
    stage.job(completionMode="Indexed", completions=1, parallelism=1, **options)
    stage.end(stage.index(0), 9)
    stage.settle()
    annotations = stage.index(0).annotations
    assert (annotations[FAILURES], annotations[IGNORED_FAILURES]) == ("0", "1")
    assert stage.counts() == (1, 0, 0)


def test_a_success_policy_completes_the_job(stage: JobStage) -> None:
    policy = {"rules": [{"succeededIndexes": "1,2", "succeededCount": 1}]}
    stage.job(completionMode="Indexed", completions=4, parallelism=4, successPolicy=policy)
    for pod in stage.running():
        stage.bind(pod)
    stage.end(stage.index(0))
    stage.settle()
    assert stage.conditions() == []
    stage.end(stage.index(2))
    stage.settle()
    assert stage.conditions() == [("SuccessCriteriaMet", "True", "SuccessPolicy")]
    assert stage.counts() == (0, 2, 0)  # a pod that is stopped now has not failed
    stage.take_away()
    assert stage.conditions()[1:] == [("Complete", "True", "SuccessPolicy")]


def test_a_suspended_job_runs_no_pods_and_keeps_its_counts(stage: JobStage) -> None:
    stage.job(completions=3, parallelism=2, activeDeadlineSeconds=100)
    stage.end(stage.running()[0])
    stage.settle()
    stage.patch(f"{COLLECTION}/job", {"spec": {"suspend": True}})
    stage.settle()
    assert stage.counts() == (0, 1, 0)
    assert stage.conditions() == [("Suspended", "True", "JobSuspended")]
    assert "startTime" not in stage.status()
    stage.pass_by(500)
    stage.patch(f"{COLLECTION}/job", {"spec": {"suspend": False}})
    stage.settle()
    assert stage.counts() == (2, 1, 0)
    assert stage.conditions() == [("Suspended", "False", "JobResumed")]
    assert stage.recorded.reasons().count("Suspended") == stage.recorded.reasons().count("Resumed") == 1


def test_a_job_created_suspended_starts_when_it_is_resumed(stage: JobStage) -> None:
    stage.job(suspend=True)
    assert stage.pods() == []
    assert "startTime" not in stage.status()
    stage.patch(f"{COLLECTION}/job", {"spec": {"suspend": False}})
    stage.settle()
    assert stage.counts() == (1, 0, 0)
    assert "startTime" in stage.status()


def test_terminating_pods_are_replaced_after_their_end(stage: JobStage) -> None:
    stage.job(podReplacementPolicy="Failed", completions=1)
    [pod] = stage.running()
    stage.bind(pod)
    stage.run()
    stage.remove(pod)
    stage.settle()
    assert (stage.counts(), stage.status()["terminating"]) == ((0, 0, 0), 1)
    stage.end(stage.pods()[0], 137)
    stage.settle()
    assert (stage.counts(), stage.status()["terminating"]) == ((1, 0, 1), 0)


def test_deleted_pods_count_as_failed(stage: JobStage) -> None:
    stage.job(completions=1)
    stage.remove(stage.running()[0])
    stage.settle()
    assert stage.counts() == (0, 0, 1)
    assert stage.pods() == []
    stage.pass_by(12)
    assert stage.counts() == (1, 0, 1)


def test_a_lower_parallelism_deletes_the_least_advanced_pods(stage: JobStage) -> None:
    stage.job(completions=6, parallelism=3)
    ready = stage.running()[1]
    stage.run(ready)
    stage.patch(f"{COLLECTION}/job", {"spec": {"parallelism": 1}})
    stage.settle()
    assert [pod.name for pod in stage.running()] == [ready.name]
    assert stage.counts() == (1, 0, 0)  # a deleted pod has not failed


def test_a_job_of_another_controller_is_ignored(stage: JobStage) -> None:
    stage.job(managedBy="example.com/other")
    assert stage.pods() == []
    assert stage.status() == {}


def test_a_matching_orphan_is_adopted_and_gets_the_finalizer(stage: JobStage) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "free", "labels": {"mine": "1"}}
    stage.create(POD_COLLECTION, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    template = {"metadata": {"labels": {"mine": "1"}}, "spec": {**pod, "restartPolicy": "Never"}}
    spec = {"manualSelector": True, "selector": {"matchLabels": {"mine": "1"}}, "template": template, "parallelism": 1}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": spec}
    stage.create(COLLECTION, body)
    stage.settle()
    assert stage.tracked() == ["free"]
    stage.patch(f"{POD_COLLECTION}/free", {"metadata": {"labels": {"mine": "2"}}})
    stage.settle()
    released = stage.stored(PODS, "free", "a")
    assert released is not None
    assert (released.metadata.owner_references, released.metadata.finalizers) == (None, None)
    assert len(stage.tracked()) == 1


@pytest.mark.parametrize("propagation", ["Orphan", "Background"])
def test_no_finalizer_outlives_its_job(stage: JobStage, propagation: str) -> None:
    stage.job(completions=2, parallelism=2)
    stage.delete(f"{COLLECTION}/job", propagationPolicy=propagation)
    if propagation == "Orphan":
        stage.patch(f"{COLLECTION}/job", {"metadata": {"finalizers": None}})
    stage.work()
    assert len(stage.pods()) == 2
    assert stage.tracked() == []


def test_a_pod_with_a_finalizer_and_no_job_loses_the_finalizer(stage: JobStage) -> None:
    pod = {"containers": [{"name": "c", "image": "i"}]}
    for name, owner in (("orphan", []), ("foreign", [_owner("apps/v1", "ReplicaSet")])):
        metadata = {"name": name, "finalizers": [TRACKING], "ownerReferences": owner}
        stage.create(POD_COLLECTION, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    stage.work()
    assert stage.tracked() == ["foreign"]


def _owner(api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "x", "controller": True}


def test_a_refused_status_write_is_retried_with_backoff(stage: JobStage) -> None:
    """While the replacement of a failed pod waits, no pod counts as active, so a ready pod makes the status invalid.

    Kubernetes behaves in the same way: `manageJob` then returns no active pods, and the API refuses a status with more
    ready than active pods.
    """
    stage.job(completions=2, parallelism=2)
    stage.run()
    stage.settle()
    stage.end(stage.running()[0], 1, ago=0)
    before = stage.status()
    stage.pass_by(1)
    for _ in range(8):
        stage.pass_by(1)
    assert stage.status() == before
    assert 1 <= stage.controller.queue.num_requeues(Key("a", "job")) <= 4
    stage.pass_by(20)
    stage.settle()
    assert stage.counts() == (2, 0, 1)


def test_a_reconciled_job_is_not_written(stage: JobStage) -> None:
    stage.job(completions=2, parallelism=2, activeDeadlineSeconds=100_000)
    written = len(stage.written())
    for _ in range(50):
        stage.pass_by(10)
    assert len(stage.written()) == written


def test_many_pods_are_created_and_counted_in_batches(stage: JobStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "AT_ONCE", 5)
    monkeypatch.setattr(pod_tracking, "AT_ONCE", 4)
    stage.create(COLLECTION, _body(completions=13, parallelism=13))
    stage.work()
    assert len(stage.pods()) == 5
    for _ in range(2):
        stage.settle()
    assert len(stage.pods()) == 13
    for pod in stage.pods():
        stage.end(pod)
    stage.work()
    stage.pass_by(1)
    assert stage.counts()[1] == 4
    for _ in range(3):
        stage.settle()
    assert stage.counts() == (0, 13, 0)
    assert stage.conditions() == COMPLETE
    assert stage.tracked() == []
    assert stage.status()["uncountedTerminatedPods"] == {}


def _body(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"template": template, **spec},
    }
