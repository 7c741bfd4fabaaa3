"""Tests of the metrics of workload controllers, with kube-controller-manager's names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.controllers.workloads.workload_metrics import note_sorting
from tests.controllers.cronjob.test_cron_job_controller import CronJobStage
from tests.controllers.horizontal_pod_autoscaler.scaled import AutoscalerStage
from tests.controllers.job.stage import COLLECTION, JobStage

JOB = "job_controller_"
AUTOSCALER = "horizontal_pod_autoscaler_controller_"
Since = Callable[..., float]


def sample(name: str, labels: dict[str, str]) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def since() -> Since:
    """Return a function that returns how much a metric series has increased since the first call of the function."""
    first: dict[str, float] = {}

    def rise(name: str, **labels: str) -> float:
        now = sample(name, labels)
        return now - first.setdefault(f"{name} {sorted(labels.items())}", now)

    return rise


def test_the_metrics_of_a_job_that_fails_once_and_completes(since: Since) -> None:
    plain = {"completion_mode": "NonIndexed"}

    def counted() -> dict[str, float]:
        created = {"result": "success", "action": "pods_created"}
        return {
            "new": since(f"{JOB}job_pods_creation_total", reason="new", status="succeeded"),
            "again": since(
                f"{JOB}job_pods_creation_total", reason="recreate_terminating_or_failed", status="succeeded"
            ),
            "succeeded": since(f"{JOB}job_pods_finished_total", result="succeeded", **plain),
            "failed": since(f"{JOB}job_pods_finished_total", result="failed", **plain),
            "finished": since(f"{JOB}jobs_finished_total", result="succeeded", reason="CompletionsReached", **plain),
            "held": since(f"{JOB}terminated_pods_tracking_finalizer_total", event="add"),
            "let go": since(f"{JOB}terminated_pods_tracking_finalizer_total", event="delete"),
            "syncs": since(f"{JOB}job_syncs_total", **plain, **created),
            "timed": since(f"{JOB}job_sync_duration_seconds_count", **plain, **created),
        }

    counted()
    stage = JobStage()
    stage.job(completions=2, parallelism=2)
    stage.end(stage.running()[0], 1)
    stage.settle()
    stage.pass_by(10)
    for pod in stage.running():
        stage.end(pod)
    stage.settle()
    assert stage.counts() == (0, 2, 1)
    assert counted() == {
        "new": 2,
        "again": 1,
        "succeeded": 2,
        "failed": 1,
        "finished": 1,
        "held": 3,
        "let go": 3,
        "syncs": 2,
        "timed": 2,
    }


def test_indexes(since: Since) -> None:
    def counted() -> list[float]:
        name, limit = f"{JOB}job_finished_indexes_total", {"backoffLimit": "perIndex"}
        return [since(name, status="succeeded", **limit), since(name, status="failed", **limit)]

    counted()
    stage = JobStage()
    stage.job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=0)
    stage.end(stage.index(0), 1)
    stage.end(stage.index(1))
    stage.settle()
    assert counted() == [1, 1]


def test_rules_for_failed_pods(since: Since) -> None:
    def counted() -> float:
        return since(f"{JOB}pod_failures_handled_by_failure_policy_total", action="FailJob")

    counted()
    stage = JobStage()
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    stage.job(podFailurePolicy={"rules": rules})
    stage.end(stage.running()[0], 42)
    stage.settle()
    assert counted() == 1


def test_jobs_of_other_controllers(since: Since) -> None:
    name, label = f"{JOB}jobs_by_external_controller_total", {"controller_name": "example.com/queue"}
    since(name, **label)
    stage = JobStage()
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
    stage.create(COLLECTION, {**body, "spec": {"template": template, "managedBy": "example.com/queue"}})
    stage.settle()
    assert since(name, **label) == 1


def test_the_delay_of_a_cron_jobs_job(since: Since) -> None:
    name = "cronjob_controller_job_creation_skew_duration_seconds"

    def counted() -> list[float]:
        return [since(f"{name}_count"), since(f"{name}_bucket", le="1.0")]

    counted()
    stage = CronJobStage()
    stage.cron()
    stage.pass_by(301)
    assert counted() == [1, 1]


def test_autoscalers(since: Since) -> None:
    def counted() -> list[float]:
        up, none = {"action": "scale_up", "error": "none"}, {"action": "none", "error": "internal"}
        found = []
        for labels in (up, none):
            found.append(since(f"{AUTOSCALER}reconciliations_total", **labels))
            found.append(since(f"{AUTOSCALER}reconciliation_duration_seconds_count", **labels))
            found.append(since(f"{AUTOSCALER}metric_computation_total", metric_type="Resource", **labels))
            found.append(
                since(f"{AUTOSCALER}metric_computation_duration_seconds_count", metric_type="Resource", **labels)
            )
        return found

    counted()
    stage = AutoscalerStage()
    stage.web(2)
    stage.autoscaler()
    stage.next_period()
    assert counted() == [0, 0, 0, 0, 1, 1, 1, 1]
    stage.measures.cpu = [1000, 1000]
    stage.next_period()
    assert counted() == [1, 1, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("ready", "chosen", "observed"),
    [
        pytest.param([1000, 2500], [2500, 1000], [2.0, 1.0], id="parts of the youngest's age are cut off, as in Go"),
        pytest.param([], [], [], id="none is ready"),
        pytest.param([0, 500], [500], [], id="one has just been made"),
    ],
)
def test_the_age_of_deleted_pods(since: Since, ready: list[int], chosen: list[int], observed: list[float]) -> None:
    name = "replicaset_controller_sorting_deletion_age_ratio"

    def counted() -> tuple[float, float]:
        return since(f"{name}_count"), since(f"{name}_sum")

    counted()
    note_sorting(ready, chosen)
    assert counted() == (len(observed), sum(observed))
