"""One reconcile of a Job: creates or deletes pods, writes the status, and removes finalizers of counted pods.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`syncJob` and the functions that it calls). The modules
`decide` and `pod_tracking` make the decisions. If a reconcile is interrupted, the order of its writes allows the next
reconcile to detect and finish the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.job.decide import COMPLETE, SUSPENDED, Plan, completed, condition, ending, plan, until_deadline
from ctrlmgr.controllers.job.job_metrics import (
    CREATED,
    DELETED,
    RECONCILING,
    TRACKED,
    note_counted,
    note_created,
    note_finished,
    note_released,
)
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.pod_of_job import desired_pod
from ctrlmgr.controllers.job.pod_tracking import TrackingUpdate, counted, finished, track, with_condition
from ctrlmgr.controllers.job.view import TRACKING, JobCondition, JobPod, JobStatus
from ctrlmgr.controllers.workloads.controller_ref_manager import Owner
from ctrlmgr.controllers.workloads.pod_control import PodControl, in_batches
from ctrlmgr.errors import ApiError, CtrlmgrError, NotFound

BATCH_PERIOD: Final = 100_000
"""The number of microseconds for which changes of pods are combined in a batch. Kubernetes combines the changes of one
second (`syncJobBatchPeriod`).
"""


class Pods(NamedTuple):
    """The numbers of active, ready and terminating pods after the writes, and the first error."""

    active: int
    ready: int
    terminating: int
    failure: CtrlmgrError | None = None


class Run:
    """Performs a reconcile of one Job."""

    def __init__(self, snapshot: JobSnapshot, owner: Owner, client: EngineClient, recorder: Recorder) -> None:
        """Create an instance that makes the writes that `snapshot` requires, for the Job in `owner`."""
        self._snapshot = snapshot
        self._owner = owner
        self._object = owner.object
        self._client = client
        self._recorder = recorder
        self._control = PodControl(owner, client, recorder)
        self._written = snapshot.status
        self.flushed = False
        """Whether the reconcile has written the Job's status. After the status was written, the caller may store the
        new backoff.
        """
        self.action = RECONCILING
        """The action of this reconcile, as a label of metrics."""
        self.failure: CtrlmgrError | None = None
        """The first error that prevented the creation or deletion of a pod. The other writes of the reconcile were
        made.
        """
        self._again: list[int] = []

    def reconcile(self) -> float | None:
        """Run the reconcile; return the seconds until the next reconcile.

        The result is None if only a change triggers the next reconcile. Raises an error if the status cannot be written
        or a finalizer cannot be removed.
        """
        snapshot = self._snapshot
        status = _started(snapshot)
        end = ending(snapshot)
        if end is not None:
            pods = self._end()
            end = end if pods.active == 0 else None
        else:
            self._note_deadline()
            pods, is_managed = self._go_on()
            end = completed(snapshot, pods.active)
            if end is None and is_managed:
                status = self._with_suspension(status)
        status = replace(status, active=pods.active, ready=pods.ready, terminating=pods.terminating)
        self._count(track(snapshot, status, end), pods)
        self.failure = pods.failure
        return min(self._again) / 1_000_000 if self._again else None

    def _note_deadline(self) -> None:
        left = until_deadline(self._snapshot)
        if left is not None:
            self._again.append(left)

    # Pods.

    def _end(self) -> Pods:
        """Delete the active pods; these pods keep their finalizers until they are counted."""
        return self._delete(self._snapshot.active, release=False)

    def _go_on(self) -> tuple[Pods, bool]:
        """Create or delete pods of the Job.

        The method also returns whether the Job's pods are managed. The pods of a Job that is being deleted are not
        managed.
        """
        snapshot = self._snapshot
        if snapshot.is_deleted:
            return Pods(len(snapshot.active), snapshot.ready, snapshot.terminating), False
        planned = plan(snapshot)
        self.action = DELETED if planned.delete else CREATED if planned.create else TRACKED
        if planned.wait:
            self._again.append(max(planned.wait, BATCH_PERIOD))
            # Kubernetes 1.36.2 reports 0 active pods here. If an active pod is ready, the API refuses the update, so
            # nothing is counted until the backoff ends (kubernetes/kubernetes#139428, fixed in later patch releases).
            return Pods(0, snapshot.ready, snapshot.terminating), True
        if planned.delete or not planned.create:
            return self._delete(planned.delete, release=planned.release), True
        return self._create(planned), True

    def _create(self, planned: Plan) -> Pods:
        snapshot = self._snapshot
        template: dict[str, Any] = self._object.to_dict()["spec"]["template"]

        def create(number: int) -> None:
            self._control.create(desired_pod(template, self._owner, snapshot, planned.create[number]))

        made, failure = in_batches(len(planned.create), create)
        note_created(snapshot, made, 0 if failure is None else 1)
        return Pods(len(snapshot.active) + made, snapshot.ready, snapshot.terminating, failure)

    def _delete(self, pods: Sequence[JobPod], *, release: bool) -> Pods:
        snapshot = self._snapshot
        deleted, deleted_ready, failure = 0, 0, None
        for pod in pods:
            try:
                if release:
                    self._release(pod)
                self._control.delete(pod.object)
            except ApiError as error:
                failure = failure or error
            else:
                deleted += 1
                deleted_ready += pod.is_ready
        left = len(snapshot.active) - deleted
        return Pods(left, snapshot.ready - deleted_ready, snapshot.terminating + deleted, failure)

    def _release(self, pod: JobPod) -> None:
        """Remove the finalizer from a pod; if the pod was already deleted, do nothing."""
        if not pod.is_tracked:
            return
        try:
            self._client.patch(pod.object, released(pod.object))
        except NotFound:
            return

    # Status.

    def _with_suspension(self, status: JobStatus) -> JobStatus:
        """Return the status with the condition Suspended, and record an Event if the condition changed.

        A resumed Job gets a new start time, so the active deadline counts from the resumption.
        """
        now = self._snapshot.now
        if self._snapshot.spec.is_suspended:
            desired = condition(SUSPENDED, now, "JobSuspended", "Job suspended")
            status, is_new = with_condition(status, desired)
            if is_new:
                self._tell(NORMAL, "Suspended", "Job suspended")
            return replace(status, start_time=None)
        desired = condition(SUSPENDED, now, "JobResumed", "Job resumed", "False")
        status, is_new = with_condition(status, desired)
        if not is_new:
            return status
        self._tell(NORMAL, "Resumed", "Job resumed")
        return replace(status, start_time=format_time_seconds(now))

    def _count(self, tracked: TrackingUpdate, pods: Pods) -> None:
        """Write the ended pods to the status, remove the finalizers of these pods, and write the new counts."""
        held = {pod.uid for pod in self._snapshot.pods if pod.is_tracked}
        if tracked.status != self._snapshot.status:
            self._flush(tracked.status)
        failure: CtrlmgrError | None = None
        note_released(self._snapshot, tracked.release)
        for pod in tracked.release:
            try:
                self._release(pod)
            except ApiError as error:
                failure = failure or error
            else:
                held.discard(pod.uid)
        status = counted(tracked.status, held)
        ended = finished(status, tracked, pods.terminating) if failure is None else None
        if (ended or status) != tracked.status:
            self._flush(ended or status)
        if failure is not None:
            raise failure
        if ended is not None and tracked.final is not None:
            self._tell_of_the_end(ended, tracked.final)

    def _flush(self, status: JobStatus) -> None:
        fields = {**self._object.to_dict(), "status": msgspec.to_builtins(status)}
        self._object = self._client.update(Object.from_dict(fields), "status")
        note_counted(self._snapshot, self._written, status)
        self._written = status
        self.flushed = True

    def _tell_of_the_end(self, status: JobStatus, final: JobCondition) -> None:
        note_finished(self._snapshot, final)
        completions = self._snapshot.spec.completions
        if final.type != COMPLETE:
            self._tell(WARNING, final.reason, final.message)
            return
        if completions is not None and status.succeeded > completions:
            message = "Too many succeeded pods running after completion count reached"
            self._tell(WARNING, "TooManySucceededPods", message)
        self._tell(NORMAL, "Completed", "Job completed")

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._recorder.event(self._owner.object, type_, reason, message)


def _started(snapshot: JobSnapshot) -> JobStatus:
    """Return the status with a start time, or without a start time if the Job is suspended."""
    status = replace(snapshot.status, uncounted_terminated_pods=snapshot.uncounted)
    if status.start_time is None and not snapshot.spec.is_suspended:
        return replace(status, start_time=format_time_seconds(snapshot.now))
    return status


def released(pod: Object) -> dict[str, Any]:
    """Return the patch that removes the finalizer from a pod."""
    return {"metadata": {"uid": pod.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]}}
