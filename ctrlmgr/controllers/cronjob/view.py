"""Typed views of a CronJob and its Jobs, with the fields that the CronJob controller reads.

Guarantees: fields that these types do not declare stay unchanged in the object's body. The views read a null list as an
empty list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import Resource
from ctrlmgr.clock import parse_time

JOBS: Final = Resource("batch", "jobs")
CRON_JOBS: Final = Resource("batch", "cronjobs")
API_VERSION: Final = "batch/v1"


class JobTemplate(msgspec.Struct, frozen=True, gc=False):
    """The API type batch/v1 JobTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = {}


class CronJobSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The API type batch/v1 CronJobSpec."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplate = JobTemplate()
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The API type batch/v1 CronJobStatus, in Go's field order and with Go's `omitempty`."""

    active: list[ObjectReference] | None = None
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(msgspec.Struct, frozen=True, gc=False):
    """The fields of a batch/v1 CronJob that the controller reads."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()

    @property
    def last_scheduled(self) -> int | None:
        """The scheduled time of the CronJob's last run, in microseconds since 1970; None if there was no run."""
        text = self.status.last_schedule_time
        return parse_time(text) if text else None

    @property
    def counts_from(self) -> int:
        """The time after which missed runs count: the last run or, if there was none, the CronJob's creation."""
        last, created = self.last_scheduled, self.metadata.creation_timestamp
        return last if last is not None else (parse_time(created) if created else 0)


class _JobCondition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class _JobStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    conditions: list[_JobCondition] | None = None
    start_time: str | None = None
    completion_time: str | None = None


class JobView(msgspec.Struct, frozen=True, gc=False):
    """The fields of a CronJob's batch/v1 Job that the controller reads."""

    status: _JobStatus = _JobStatus()

    @property
    def outcome(self) -> str:
        """The string `Complete` or `Failed` if the Job has finished, otherwise an empty string."""
        over = (each.type for each in self.status.conditions or () if each.status == "True")
        return next((each for each in over if each in ("Complete", "Failed")), "")


def outcome_of(job: Object) -> str:
    """Return the outcome of a Job: `Complete`, `Failed`, or an empty string if the Job has not finished."""
    return job.view(JobView).outcome


def oldest_first(jobs: Sequence[Object]) -> list[Object]:
    """Return Jobs sorted by start time, then name; Jobs that have not started are last."""

    def order(job: Object) -> tuple[bool, int, str]:
        started = job.view(JobView).status.start_time
        return not started, parse_time(started) if started else 0, job.name

    return sorted(jobs, key=order)
