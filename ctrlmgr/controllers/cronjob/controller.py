"""The CronJob controller: creates the Jobs of CronJobs when they are due, and limits the history of finished Jobs.

Guarantees, as in Kubernetes (`pkg/controller/cronjob`):
- A scheduled run of a CronJob has one Job. The name of a run's Job works as a lock: if a Job with that name exists,
  this Job counts as the run's Job.
- The controller does not poll: a CronJob is reconciled when the CronJob or one of its Jobs changes, and just after its
  next run is due.
- Decisions are based on the status in the log, not in the cache, so that a recent write is not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.cronjob import DESCRIPTOR, Options
from ctrlmgr.controllers.cronjob.decide import (
    desired_job,
    look_after_change,
    reference_to_job,
    surplus,
    take_stock,
    take_turn,
    without,
)
from ctrlmgr.controllers.cronjob.view import API_VERSION, CRON_JOBS, JOBS, CronJob
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, is_controlled_by
from ctrlmgr.controllers.workloads.workload_metrics import cron_job_skew
from ctrlmgr.errors import AlreadyExists, ApiError, NamespaceTerminating, NotFound
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.batch.cron_schedule import MalformedSchedule
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.workqueue import WorkQueue

log = structlog.get_logger(__name__)

_OWNER_INDEX: Final = "cron job"
_SECOND: Final = 1_000_000


class CronJobReconciler:
    """Reconciles CronJobs."""

    def __init__(self, jobs: Lister, event_log: EventLog, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that lists `jobs`, reads CronJobs from `event_log`, and records with `recorder`."""
        self._jobs = jobs
        self._log = event_log
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Create and delete the Jobs that are due, and requeue the CronJob for its next run.

        Raises the errors of `client` if a write fails.
        """
        obj = self._log.get(CRON_JOBS, key)
        if obj is None:
            return None
        turn = _JobReconcile(obj, self._log, self._recorder, client)
        jobs = [job for job in self._jobs.by_index(_OWNER_INDEX, key.name) if job.namespace == key.namespace]
        try:
            again = turn.take(jobs, self._clock.now())
        except ApiError:
            turn.write_status()  # Even after an error, keep the changes that were made.
            raise
        turn.write_status()
        return None if again is None else Result(requeue_after=again / _SECOND)


class _JobReconcile:
    """One reconcile of a CronJob."""

    def __init__(self, obj: Object, event_log: EventLog, recorder: Recorder, client: EngineClient) -> None:
        self._object = obj
        self._cron = obj.view(CronJob)
        self._status = self._cron.status
        self._log = event_log
        self._recorder = recorder
        self._client = client

    def take(self, jobs: list[Object], now: int) -> int | None:
        """Create the Job of a due run, and delete old Jobs.

        Return the microseconds until the next reconcile; None if only a change triggers the next reconcile.
        """
        for job in surplus(self._cron.spec, jobs):
            self._delete(job)
        stock = take_stock(self._status, jobs, lambda each: self._get(each.name) is not None)
        self._status = stock.status
        turn = take_turn(self._cron, self._status, now)
        for type_, reason, message in (*stock.events, *turn.events):
            self._tell(type_, reason, message)
        if turn.run is None:
            return turn.again
        if self._cron.spec.concurrency_policy == "Replace":
            self._replace()
        started = self._start(turn.run)
        if started is None:
            return None
        self._status = replace(
            self._status,
            active=[*(self._status.active or ()), reference_to_job(started)],
            last_schedule_time=format_time_seconds(turn.run),
        )
        return turn.again

    def write_status(self) -> None:
        """Write the CronJob's status if it has changed."""
        if self._status == self._cron.status:
            return
        fields = {**self._object.to_dict(), "status": msgspec.to_builtins(self._status)}
        self._client.update(Object.from_dict(fields), "status")

    def _start(self, run: int) -> Object | None:
        """Create the Job of a run and return it, or return the existing Job.

        Return None if the status lists the existing Job already or if another owner controls that Job.
        """
        desired = Object.from_dict(desired_job(self._cron, run))
        job: Object | None
        try:
            job = self._client.create(desired)
        except NamespaceTerminating:
            raise
        except AlreadyExists:
            job = self._found(desired.name)
            if job is None:
                return None
        except ApiError as error:
            self._tell(WARNING, "FailedCreate", f"Error creating job: {error}")
            raise
        self._tell(NORMAL, "SuccessfulCreate", f"Created job {job.name}")
        created = parse_time(job.metadata.creation_timestamp or format_time_seconds(run))
        cron_job_skew.observe((created - run) / _SECOND)
        return job

    def _found(self, name: str) -> Object | None:
        job = self._get(name)
        if job is None:
            raise NotFound(f'jobs.batch "{name}" not found')
        known = any(each.uid == job.uid for each in self._status.active or ())
        return job if is_controlled_by(job, self._object) and not known else None

    def _replace(self) -> None:
        for reference in self._status.active or ():
            job = self._get(reference.name)
            if job is None:
                error = NotFound(f'jobs.batch "{reference.name}" not found')
                self._tell(WARNING, "FailedGet", f"Get job: {error}")
                raise error
            if not self._delete(job):
                raise ApiError(f"could not replace job {job.key}")

    def _delete(self, job: Object) -> bool:
        try:
            self._client.delete(job)
        except ApiError as error:
            self._tell(WARNING, "FailedDelete", f"Deleted job: {error}")
            return False
        self._status = without(self._status, job.uid)
        self._tell(NORMAL, "SuccessfulDelete", f"Deleted job {job.name}")
        return True

    def _get(self, name: str) -> Object | None:
        return self._log.get(JOBS, Key(self._object.namespace, name))

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(self._object, type_, reason, message)


class CronJobChanges:
    """Maps changes of CronJobs and Jobs to the CronJobs to reconcile."""

    def __init__(self, cron_jobs: Lister, recorder: Recorder, *, clock: Clock) -> None:
        """Create the mapping, which looks up the owners of Jobs in `cron_jobs`."""
        self._cron_jobs = cron_jobs
        self._recorder = recorder
        self._clock = clock
        self.queue: WorkQueue[Key] | None = None
        """The queue in which a CronJob whose schedule has changed waits for its next run."""

    def of_cron_job(self, change: Change) -> Iterable[Key]:
        """Return the key of a CronJob that must be reconciled now.

        If the CronJob's schedule has changed, the CronJob is enqueued for its next run instead.
        """
        if change.old is not None and change.new is not None:
            before, after = change.old.view(CronJob).spec, change.new.view(CronJob).spec
            if (before.schedule, before.time_zone) != (after.schedule, after.time_zone):
                self._reschedule(change.new, change.revision)
                return ()
        return (change.object.key,)

    def _reschedule(self, obj: Object, revision: int) -> None:
        cron = obj.view(CronJob)
        try:
            wait = look_after_change(cron, self._clock.now())
        except MalformedSchedule:
            message = f"unparseable schedule for cronjob: {cron.spec.schedule}"
            self._recorder.event(obj, WARNING, "UnParseableCronJobSchedule", message)
            return
        assert self.queue is not None, "the controller is there before there are changes"
        self.queue.add_after(obj.key, wait / _SECOND, (revision,))

    def of_job(self, change: Change) -> Iterable[Key]:
        """Return the keys of the CronJobs that own or owned a Job."""
        found = (self._owner(obj) for obj in (change.old, change.new) if obj is not None)
        return dict.fromkeys(key for key in found if key is not None)

    def _owner(self, job: Object) -> Key | None:
        reference = controller_of(job)
        if reference is None or (reference.api_version, reference.kind) != (API_VERSION, "CronJob"):
            return None
        cron = self._cron_jobs.get(Key(job.namespace, reference.name))
        return cron.key if cron is not None and cron.uid == reference.uid else None


def _by_owner(job: Object) -> Iterable[str]:
    return (each.name for each in job.metadata.owner_references or () if each.controller)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    jobs, cron_jobs = context.informers.informer(JOBS), context.informers.informer(CRON_JOBS)
    jobs.add_index(_OWNER_INDEX, _by_owner)
    recorder = context.recorder(DESCRIPTOR)
    changes = CronJobChanges(cron_jobs.lister, recorder, clock=context.clock)
    controller = assemble(
        DESCRIPTOR,
        context,
        CronJobReconciler(jobs.lister, context.event_log, recorder, clock=context.clock),
        [Watch(cron_jobs, changes.of_cron_job), Watch(jobs, changes.of_job)],
        workers=options.concurrent_cron_job_syncs,
    )
    changes.queue = controller.queue
    return controller
