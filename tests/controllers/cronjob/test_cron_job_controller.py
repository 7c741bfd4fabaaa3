"""Tests of the CronJob controller: it creates each Job once on schedule, and deletes finished Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.cronjob import Options
from ctrlmgr.controllers.cronjob.controller import build
from ctrlmgr.controllers.cronjob.decide import surplus
from ctrlmgr.controllers.cronjob.view import JOBS, CronJobSpec
from ctrlmgr.manager import Controller
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CRON_JOBS = Resource("batch", "cronjobs")
COLLECTION = "/apis/batch/v1/namespaces/a/cronjobs"
JOB_COLLECTION = "/apis/batch/v1/namespaces/a/jobs"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
MINUTE = 60


class CronJobStage(WorkedStage):
    """A cluster with the CronJob controller; its clock starts at midnight on 2026-01-01."""

    def __init__(self) -> None:
        self.recorded = RecordedEvents()
        super().__init__(self._controller)
        self.namespace("a")

    def _controller(self, stage: WorkedStage) -> Controller:
        return build(StageContext(stage, recorded=self.recorded), Options())

    def cron(self, schedule: str = "*/5 * * * *", **spec: Any) -> None:
        job = {"metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}}, "spec": {"template": TEMPLATE}}
        body = {"schedule": schedule, "jobTemplate": job, **spec}
        self.create(
            COLLECTION, {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron"}, "spec": body}
        )
        self.work()

    def status(self) -> dict[str, Any]:
        found = self.stored(CRON_JOBS, "cron", "a")
        assert found is not None
        return dict(found.to_dict().get("status") or {})

    def active(self) -> list[str]:
        return [each["name"] for each in self.status().get("active") or ()]

    def jobs(self) -> list[str]:
        return self.names(JOBS, "a")

    def finish(self, name: str, outcome: str = "Complete") -> None:
        at = format_time_seconds(self.clock.now())
        ended = {"type": outcome, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
        target = "SuccessCriteriaMet" if outcome == "Complete" else "FailureTarget"
        before = {**ended, "type": target}
        status: dict[str, Any] = {"conditions": [before, ended], "startTime": at}
        if outcome == "Complete":
            status["completionTime"] = at
        self.patch(f"{JOB_COLLECTION}/{name}/status", {"status": status})
        self.work()


@pytest.fixture
def stage() -> CronJobStage:
    return CronJobStage()


def _name(stage: WorkedStage) -> str:
    return f"cron-{stage.clock.now() // 60_000_000}"


def test_a_job_is_created_at_its_scheduled_time(stage: CronJobStage) -> None:
    stage.cron()
    stage.pass_by(5 * MINUTE)
    assert stage.jobs() == []  # the controller runs a tenth of a second later
    stage.pass_by(0.1)
    name = _name(stage)
    assert stage.jobs() == stage.active() == [name]
    job = stage.stored(JOBS, name, "a")
    assert job is not None
    assert job.labels["l"] == "1"
    assert job.annotations == {
        "n": "1",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:05:00Z",
    }
    assert [(each.kind, each.name, each.controller) for each in job.metadata.owner_references or ()] == [
        ("CronJob", "cron", True)
    ]
    assert stage.status()["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert stage.recorded.events == [("Normal", "SuccessfulCreate", f"Created job {name}")]


def test_the_scheduled_time_is_annotated_in_the_time_zone(stage: CronJobStage) -> None:
    stage.cron("0 2 * * *", timeZone="Europe/Berlin")
    stage.pass_by(60 * MINUTE + 0.1)
    [name] = stage.jobs()
    job = stage.stored(JOBS, name, "a")
    assert job is not None
    assert job.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-01-01T02:00:00+01:00"


def test_a_process_that_starts_late_creates_only_the_latest_run(stage: CronJobStage) -> None:
    stage.cron()
    stage.clock.step(3 * 60 * MINUTE + 30)
    stage.start()
    stage.work()
    assert stage.jobs() == [_name(stage)]


def test_more_than_a_hundred_missed_runs_cause_a_warning(stage: CronJobStage) -> None:
    stage.cron()
    stage.clock.step(600 * MINUTE)
    stage.start()
    stage.work()
    assert stage.recorded.reasons() == ["TooManyMissedTimes", "SuccessfulCreate"]


def test_a_run_past_its_deadline_is_skipped(stage: CronJobStage) -> None:
    stage.cron(suspend=True, startingDeadlineSeconds=20)
    stage.clock.step(5 * MINUTE + 30)
    stage.patch(f"{COLLECTION}/cron", {"spec": {"suspend": False}})
    stage.work()
    assert stage.jobs() == []
    assert stage.recorded.events == []  # runs before the deadline do not count as missed
    stage.pass_by(4 * MINUTE + 30.1)
    assert len(stage.jobs()) == 1


def test_a_suspended_cron_job_creates_no_jobs(stage: CronJobStage) -> None:
    stage.cron(suspend=True)
    stage.pass_by(30 * MINUTE)
    assert stage.jobs() == []


def test_forbid_waits_for_the_previous_job(stage: CronJobStage) -> None:
    stage.cron(concurrencyPolicy="Forbid")
    stage.pass_by(5 * MINUTE + 0.1)
    [first] = stage.jobs()
    stage.pass_by(5 * MINUTE)
    assert stage.jobs() == [first]
    assert stage.recorded.reasons()[-1] == "JobAlreadyActive"
    stage.finish(first)
    assert stage.jobs() == [first, _name(stage)]


def test_replace_deletes_the_previous_job(stage: CronJobStage) -> None:
    stage.cron(concurrencyPolicy="Replace")
    stage.pass_by(5 * MINUTE + 0.1)
    [first] = stage.jobs()
    stage.pass_by(5 * MINUTE)
    assert stage.jobs() == stage.active() == [_name(stage)]
    assert stage.recorded.events[1:] == [
        ("Normal", "SuccessfulDelete", f"Deleted job {first}"),
        ("Normal", "SuccessfulCreate", f"Created job {_name(stage)}"),
    ]


def test_allow_runs_jobs_concurrently(stage: CronJobStage) -> None:
    stage.cron()
    for _ in range(3):
        stage.pass_by(5 * MINUTE + 0.1)
    assert len(stage.jobs()) == 3
    assert stage.active() == stage.jobs()


def test_a_finished_job_leaves_the_active_list(stage: CronJobStage) -> None:
    stage.cron()
    stage.pass_by(5 * MINUTE + 0.1)
    [name] = stage.jobs()
    stage.clock.step(7)
    stage.finish(name)
    assert stage.active() == []
    assert stage.status()["lastSuccessfulTime"] == "2026-01-01T00:05:07Z"
    message = f"Saw completed job: {name}, condition: Complete"
    assert stage.recorded.events[-1] == ("Normal", "SawCompletedJob", message)


def test_a_missing_job_leaves_the_active_list(stage: CronJobStage) -> None:
    stage.cron()
    stage.pass_by(5 * MINUTE + 0.1)
    [name] = stage.jobs()
    stage.delete(f"{JOB_COLLECTION}/{name}", propagationPolicy="Background")
    stage.work()
    assert stage.active() == []
    assert stage.recorded.events[-1] == ("Normal", "MissingJob", f"Active job went missing: {name}")


def test_the_history_is_limited(stage: CronJobStage) -> None:
    stage.cron(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for outcome in ("Complete", "Failed", "Complete"):
        stage.pass_by(5 * MINUTE + 0.1)
        stage.finish(stage.jobs()[-1], outcome)
    assert stage.jobs() == [_name(stage)]


def test_a_created_but_unrecorded_job_counts_as_the_run(stage: CronJobStage) -> None:
    stage.cron()
    stage.pass_by(5 * MINUTE + 0.1)
    [name] = stage.jobs()
    stage.patch(f"{COLLECTION}/cron/status", {"status": {"active": None, "lastScheduleTime": None}})
    stage.work()
    assert stage.jobs() == stage.active() == [name]
    assert stage.recorded.reasons() == ["SuccessfulCreate", "UnexpectedJob", "SuccessfulCreate"]


def test_a_foreign_job_of_the_same_name_is_not_adopted(stage: CronJobStage) -> None:
    stage.cron()
    name = f"cron-{stage.clock.now() // 60_000_000 + 5}"
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": TEMPLATE}}
    stage.create(JOB_COLLECTION, body)
    stage.pass_by(5 * MINUTE + 0.1)
    assert stage.jobs() == [name]
    assert stage.active() == []


def test_a_new_schedule_waits_for_its_next_run(stage: CronJobStage) -> None:
    stage.cron("0 0 1 1 *")
    stage.clock.step(30 * MINUTE)
    stage.patch(f"{COLLECTION}/cron", {"spec": {"schedule": "20,40 * * * *"}})
    stage.work()
    assert stage.jobs() == []  # under the old schedule, 00:20 has passed
    stage.pass_by(10 * MINUTE + 0.1)
    assert stage.jobs() == [_name(stage)]


def test_a_schedule_without_a_next_run_is_reported_once_per_reconcile(stage: CronJobStage) -> None:
    stage.cron("59 23 31 2 *")
    [event] = stage.recorded.events
    expected = "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"
    assert event == ("Warning", "InvalidSchedule", expected)
    stage.pass_by(1000 * MINUTE)
    assert len(stage.recorded.events) == 1


def test_an_idle_cron_job_writes_nothing_and_reconciles_once_per_run(stage: CronJobStage) -> None:
    stage.cron("0 0 * * *", concurrencyPolicy="Forbid")
    stage.pass_by(24 * 60 * MINUTE + 0.1)
    written = len(stage.written())
    for _ in range(50):
        stage.pass_by(60)
    assert len(stage.written()) == written


def test_a_process_that_crashes_after_each_write_creates_each_job_once(stage: CronJobStage) -> None:
    stage.cron()
    for _ in range(6):
        stage.clock.step(5 * MINUTE)
        for _ in range(4):
            stage.start()
            stage.hear()
            stage.controller.process_next(timeout=0)
    assert len(stage.jobs()) == 6
    assert stage.active() == stage.jobs()


def test_the_oldest_surplus_jobs_are_deleted() -> None:
    def job(name: str, started: str | None, outcome: str) -> Object:
        status = {"conditions": [{"type": outcome, "status": "True"}], **({"startTime": started} if started else {})}
        return Object.from_dict(
            {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name, "namespace": "a"}, "status": status}
        )

    jobs = [
        job("c", "2026-01-01T00:00:03Z", "Complete"),
        job("a", "2026-01-01T00:00:01Z", "Complete"),
        job("d", None, "Complete"),
        job("b", "2026-01-01T00:00:01Z", "Complete"),
        job("f", "2026-01-01T00:00:01Z", "Failed"),
    ]
    gone = surplus(CronJobSpec(successful_jobs_history_limit=1, failed_jobs_history_limit=1), jobs)
    assert [each.name for each in gone] == ["a", "b", "c"]
    assert surplus(CronJobSpec(), jobs) == []


def test_the_name_of_the_job_prevents_duplicates(stage: CronJobStage) -> None:
    stage.cron()
    stage.pass_by(5 * MINUTE + 0.1)
    assert stage.log.get(JOBS, Key("a", "cron-29453765")) is not None
