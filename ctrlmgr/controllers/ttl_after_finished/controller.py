"""The TTL-after-finished controller: deletes a finished Job after its `ttlSecondsAfterFinished`.

Guarantees, all as in Kubernetes (`pkg/controller/ttlafterfinished`):
- A Job finishes when its condition Complete or Failed is True; its finish time is the condition's lastTransitionTime.
- A Job is deleted with foreground propagation, so its pods are deleted first. The precondition of the deletion is the
  Job's resourceVersion. Therefore the deletion fails if the TTL was raised at the last moment.
- The controller ignores Jobs without `ttlSecondsAfterFinished`, and Jobs that are already being deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.ttl_after_finished import DESCRIPTOR, Options
from ctrlmgr.controllers.workloads.workload_metrics import job_deletion_seconds
from ctrlmgr.errors import NotFound, TerminalError
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

JOBS: Final = Resource("batch", "jobs")

_FINISHED: Final = ("Complete", "Failed")


class _Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    ttl: int | None = msgspec.field(default=None, name="ttlSecondsAfterFinished")


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[_Condition] | None = None


class _Job(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


def desired_deletion(job: Object) -> int | None:
    """Return the time when `job` must be deleted, in microseconds since 1970.

    The result is None if the Job must not be deleted in its current state. Raises `TerminalError` if a finished Job has
    no finish time.
    """
    view = job.view(_Job)
    finished = next(
        (each for each in view.status.conditions or () if each.type in _FINISHED and each.status == "True"), None
    )
    if job.is_terminating or view.spec.ttl is None or finished is None:
        return None
    if not finished.last_transition_time:
        raise TerminalError(f"unable to find the time when the Job {job.key} finished")
    return parse_time(finished.last_transition_time) + view.spec.ttl * 1_000_000


class TTLAfterFinished:
    """Reconciles Jobs."""

    def __init__(self, jobs: Lister, *, clock: Clock) -> None:
        """Create a reconciler that reads Jobs from `jobs`.

        The times in conditions are compared with the time of `clock`.
        """
        self._jobs = jobs
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Delete the Job if its time to live is over, otherwise requeue the Job.

        Raises the errors of `client` if the deletion fails.
        """
        job = self._jobs.get(key)
        due = desired_deletion(job) if job is not None else None
        if job is None or due is None:
            return None
        left = due - self._clock.now()
        if left > 0:
            return Result(requeue_after=left / 1_000_000)
        try:
            client.delete(job, "Foreground")
        except NotFound:
            log.debug("job already deleted", job=str(key))
            return None
        job_deletion_seconds.observe((self._clock.now() - due) / 1_000_000)
        return None


def _finished(change: Change) -> Iterable[Key]:
    """Return the key of a finished Job that has `ttlSecondsAfterFinished`."""
    job = change.new
    if job is None or job.is_terminating or job.view(_Job).spec.ttl is None:
        return ()
    return (job.key,)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    jobs = context.informers.informer(JOBS)
    reconciler = TTLAfterFinished(jobs.lister, clock=context.clock)
    workers = options.concurrent_ttl_after_finished_syncs
    return assemble(DESCRIPTOR, context, reconciler, [Watch(jobs, _finished)], workers=workers)
