"""Decides for a CronJob which Jobs are active, which Jobs to delete, and whether to create a Job now.

Source: Kubernetes' `pkg/controller/cronjob/cronjob_controllerv2.go` and `utils.go`. All times in this module are in
microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.cronjob.due_runs import MANY, InvalidSchedule, missed_runs, next_look
from ctrlmgr.controllers.cronjob.schedule import SECOND, next_run
from ctrlmgr.controllers.cronjob.view import (
    API_VERSION,
    CronJob,
    CronJobSpec,
    CronJobStatus,
    JobView,
    oldest_first,
    outcome_of,
)
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.batch.cron_schedule import MalformedSchedule, location_problem, parse_schedule

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TZ_PAGE: Final = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


class Event(NamedTuple):
    """An Event about the CronJob."""

    type: str
    reason: str
    message: str


class ReconciledStatus(NamedTuple):
    """The status that matches the existing Jobs, and the Events about differences from the old status."""

    status: CronJobStatus
    events: Sequence[Event] = ()


class NextRun(NamedTuple):
    """The run (scheduled time) for which a Job must be created, and the microseconds until the next reconcile.

    If no Job must be created, the run is None. If only a change triggers the next reconcile, the microseconds are None.
    """

    events: Sequence[Event] = ()
    run: int | None = None
    again: int | None = None


def surplus(spec: CronJobSpec, jobs: Sequence[Object]) -> list[Object]:
    """Return the oldest finished Jobs, which exceed the history limits; the oldest Job is first."""
    gone: list[Object] = []
    limits = (("Complete", spec.successful_jobs_history_limit), ("Failed", spec.failed_jobs_history_limit))
    for outcome, limit in limits:
        ended = [job for job in jobs if outcome_of(job) == outcome]
        if limit is not None and len(ended) > limit:
            gone += oldest_first(ended)[: len(ended) - limit]
    return gone


def without(status: CronJobStatus, uid: str) -> CronJobStatus:
    """Return the status with a Job removed from the active Jobs."""
    return replace(status, active=[each for each in status.active or () if each.uid != uid] or None)


def take_stock(
    status: CronJobStatus, jobs: Iterable[Object], exists: Callable[[ObjectReference], bool]
) -> ReconciledStatus:
    """Return the status in which only running Jobs are active.

    The function `exists` returns whether a Job exists that is in the status, but not in `jobs`. A running Job that the
    status does not contain only causes an Event, because this CronJob did not start the Job.
    """
    events: list[Event] = []
    listed: set[str] = set()
    for job in jobs:
        listed.add(job.uid)
        is_active = any(each.uid == job.uid for each in status.active or ())
        outcome = outcome_of(job)
        if not outcome:
            if not is_active:
                message = f"Saw a job that the controller did not create or forgot: {job.name}"
                events.append(Event(WARNING, "UnexpectedJob", message))
            continue
        if is_active:
            status = without(status, job.uid)
            events.append(Event(NORMAL, "SawCompletedJob", f"Saw completed job: {job.name}, condition: {outcome}"))
        if outcome == "Complete":
            status = _with_success(status, job)
    for each in status.active or ():
        if each.uid not in listed and not exists(each):
            status = without(status, each.uid)
            events.append(Event(NORMAL, "MissingJob", f"Active job went missing: {each.name}"))
    return ReconciledStatus(status, events)


def _with_success(status: CronJobStatus, job: Object) -> CronJobStatus:
    at, last = job.view(JobView).status.completion_time, status.last_successful_time
    is_later = at is not None and (last is None or parse_time(at) > parse_time(last))
    return replace(status, last_successful_time=at) if is_later else status


def take_turn(cron: CronJob, status: CronJobStatus, now: int) -> NextRun:
    """Return the run for which a Job must be created; `status` is the result of `take_stock`."""
    spec = cron.spec
    if cron.metadata.deletion_timestamp is not None:
        return NextRun()
    if spec.time_zone is not None and (problem := location_problem(spec.time_zone)):
        return NextRun([Event(WARNING, "UnknownTimeZone", f"invalid timeZone: {quote(spec.time_zone)}: {problem}")])
    if spec.suspend:
        return NextRun()
    events: list[Event] = []
    if "TZ" in spec.schedule:
        message = f"CRON_TZ or TZ used in schedule {quote(spec.schedule)} is not officially supported"
        events.append(Event(WARNING, "UnsupportedSchedule", f"{message}, see {_TZ_PAGE} for more details"))
    try:
        runs = next_run(parse_schedule(zoned_schedule(spec)))
    except MalformedSchedule as error:
        message = f"unparseable schedule: {quote(spec.schedule)} : {error}"
        return NextRun([*events, Event(WARNING, "UnparseableSchedule", message)])
    deadline = spec.starting_deadline_seconds
    since = cron.counts_from if deadline is None else max(cron.counts_from, now - deadline * SECOND)
    try:
        missed = missed_runs(runs, since, now)
    except InvalidSchedule as error:
        return NextRun([*events, Event(WARNING, "InvalidSchedule", f"invalid schedule: {spec.schedule} : {error}")])
    again = next_look(runs, cron.counts_from, now)
    if missed.latest is None:
        return NextRun(events, again=again)
    if missed.number > MANY:
        message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        events.append(Event(WARNING, "TooManyMissedTimes", message))
    return _due(cron, status, missed.latest, now, events, again)


def _due(cron: CronJob, status: CronJobStatus, run: int, now: int, events: list[Event], again: int) -> NextRun:
    deadline = cron.spec.starting_deadline_seconds
    if deadline is not None and run + deadline * SECOND < now:
        message = f"Missed scheduled time to start a job: {_rfc1123(run)}"
        return NextRun([*events, Event(WARNING, "MissSchedule", message)], again=again)
    name = job_name(cron, run)
    if run == cron.last_scheduled or any(each.name == name for each in status.active or ()):
        return NextRun(events, again=again)
    if cron.spec.concurrency_policy == "Forbid" and status.active:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return NextRun([*events, Event(NORMAL, "JobAlreadyActive", message)], again=again)
    return NextRun(events, run, again)


def look_after_change(cron: CronJob, now: int) -> int:
    """Return the microseconds until the reconcile that follows a change of the schedule.

    Raises `MalformedSchedule` if the schedule cannot be parsed.
    """
    return next_look(next_run(parse_schedule(zoned_schedule(cron.spec))), cron.counts_from, now)


def zoned_schedule(spec: CronJobSpec) -> str:
    """Return the schedule with its time zone, in the format of the library robfig/cron."""
    if "TZ" in spec.schedule or spec.time_zone is None or location_problem(spec.time_zone):
        return spec.schedule
    return f"TZ={spec.time_zone} {spec.schedule}"


def job_name(cron: CronJob, run: int) -> str:
    """Return the name of a run's Job.

    The name of a run's Job contains the scheduled time in minutes since 1970, so the Job is created only once.
    """
    return f"{cron.metadata.name}-{run // (60 * SECOND)}"


def desired_job(cron: CronJob, run: int) -> dict[str, Any]:
    """Return the Job of a run."""
    template, owner = cron.spec.job_template, cron.metadata
    annotations = {**(template.metadata.annotations or {}), SCHEDULED_AT: _rfc3339(run, cron.spec.time_zone)}
    reference = {
        "apiVersion": API_VERSION,
        "kind": "CronJob",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: dict[str, Any] = {
        "name": job_name(cron, run),
        "namespace": owner.namespace,
        "annotations": annotations,
        "ownerReferences": [reference],
    }
    if template.metadata.labels:
        metadata["labels"] = dict(template.metadata.labels)
    return {"kind": "Job", "apiVersion": API_VERSION, "metadata": metadata, "spec": dict(template.spec)}


def reference_to_job(job: Object) -> ObjectReference:
    """Return the reference to an active Job, as the CronJob's status contains it."""
    return ObjectReference("Job", job.namespace, job.name, job.uid, API_VERSION, str(job.revision))


def _moment(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def _rfc3339(at: int, zone: str | None) -> str:
    place = UTC if zone in (None, "", "UTC", "Local") else ZoneInfo(zone)
    return _moment(at).astimezone(place).isoformat(timespec="seconds").replace("+00:00", "Z")


def _rfc1123(at: int) -> str:
    return format_datetime(_moment(at))
