from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.ttl_after_finished import Options
from ctrlmgr.controllers.ttl_after_finished.controller import JOBS, build, desired_deletion
from ctrlmgr.errors import TerminalError
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

COLLECTION = "/apis/batch/v1/namespaces/a/jobs"
START = "2026-01-01T00:00:00Z"
START_US = 1_767_225_600_000_000


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), Options())


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    return stage


def finished(type: str = "Complete", status: str = "True", at: str | None = START) -> dict[str, Any]:
    return {"type": type, "status": status, **({"lastTransitionTime": at} if at else {})}


def job(ttl: int | None, *conditions: dict[str, Any], **metadata: Any) -> Object:
    head = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a", "namespace": "a", **metadata}}
    spec = {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    return Object.from_dict({**head, "spec": spec, "status": {"conditions": list(conditions)}})


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        pytest.param(job(30, finished()), 30, id="complete"),
        pytest.param(job(30, finished("Failed")), 30, id="failed"),
        pytest.param(job(0, finished()), 0, id="at once"),
        pytest.param(job(30, finished("Suspended", "False"), finished()), 30, id="a condition among others"),
        pytest.param(job(None, finished()), None, id="no TTL"),
        pytest.param(job(30), None, id="still running"),
        pytest.param(job(30, finished(status="False")), None, id="a condition that is not true"),
        pytest.param(job(30, finished("FailureTarget")), None, id="about to fail"),
        pytest.param(job(30, finished(), deletionTimestamp=START), None, id="on its way out"),
    ],
)
def test_the_time_of_deletion_of_a_job(job: Object, seconds: int | None) -> None:
    assert desired_deletion(job) == (None if seconds is None else START_US + seconds * 1_000_000)


def test_a_job_without_a_finish_time_is_kept() -> None:
    with pytest.raises(TerminalError, match="unable to find the time when the Job a/a finished"):
        desired_deletion(job(30, finished(at=None)))


def create(stage: WorkedStage, ttl: int | None) -> None:
    container = {"name": "c", "image": "i"}
    spec: dict[str, Any] = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    stage.create(COLLECTION, {"metadata": {"name": "job"}, "spec": spec})


def finish(stage: WorkedStage) -> None:
    now = START
    conditions = [finished("SuccessCriteriaMet", at=now), finished("Complete", at=now)]
    status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}
    stage.patch(f"{COLLECTION}/job/status", {"status": status})


def is_going(stage: WorkedStage) -> bool:
    found = stage.stored(JOBS, "job", "a")
    return found is None or found.is_terminating


def test_an_expired_job_is_deleted_in_the_foreground(stage: WorkedStage) -> None:
    late = "ttl_after_finished_controller_job_deletion_duration_seconds_sum"
    before = REGISTRY.get_sample_value(late) or 0.0
    create(stage, 30)
    stage.pass_by(100)
    finish(stage)
    stage.clock.set(START_US + 101_000_000)
    assert not is_going(stage)
    stage.work()
    assert (REGISTRY.get_sample_value(late) or 0.0) - before == pytest.approx(71)
    found = stage.stored(JOBS, "job", "a")
    assert found is not None
    assert (found.is_terminating, found.metadata.finalizers) == (True, ["foregroundDeletion"])


def test_a_job_is_reconciled_at_its_expiration(stage: WorkedStage) -> None:
    create(stage, 30)
    finish(stage)
    stage.work()
    stage.pass_by(29.9)
    assert not is_going(stage)
    stage.pass_by(0.1)
    assert is_going(stage)


def test_a_ttl_raised_at_the_last_moment_counts(stage: WorkedStage) -> None:
    create(stage, 30)
    finish(stage)
    stage.work()
    stage.clock.step(31)
    stage.patch(f"{COLLECTION}/job", {"spec": {"ttlSecondsAfterFinished": 60}})
    assert stage.controller.process_next(timeout=0), "it is due, and the cache does not know yet"
    assert not is_going(stage)
    stage.pass_by(28)
    assert not is_going(stage)
    stage.pass_by(2)
    assert is_going(stage)


def test_a_job_without_a_ttl_is_kept(stage: WorkedStage) -> None:
    create(stage, None)
    finish(stage)
    stage.work()
    stage.pass_by(1e6)
    assert stage.written() == []


def test_a_job_deleted_meanwhile_is_no_failure(stage: WorkedStage) -> None:
    create(stage, 0)
    finish(stage)
    stage.hear()
    stage.delete(f"{COLLECTION}/job", propagationPolicy="Background")
    assert stage.controller.process_next(timeout=0)
    assert not stage.controller.process_next(timeout=0)
    assert stage.written() == []
