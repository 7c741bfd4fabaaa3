"""Counts the ended pods of a Job; each pod is counted only once.

A pod has a finalizer until it is counted. When a pod has ended, three steps follow. First, the uid of the pod is
written into the Job's status. Second, the controller removes the finalizer of the pod. Third, the uid is removed from
the status, and the count of pods is increased. After an interruption, the state of the Job and its pods shows which
steps were completed. If a pod of an Indexed Job succeeds, the pod's index in the status is sufficient, and the uid is
not written.

Guarantees: at most 500 uids are in the Job's status at a time. A Job finishes only when its status contains no uids and
none of its pods is terminating.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`trackJobStatusAndRemoveFinalizers`, KEP-2307).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from ctrlmgr.controllers.job.decide import COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET, condition
from ctrlmgr.controllers.job.indexes import by_completion_index, completion_index
from ctrlmgr.controllers.job.job_policies import judge
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.view import JobCondition, JobPod, JobStatus, Uncounted

AT_ONCE: Final = 500
"""The maximum number of uids in a Job's status (`MaxUncountedPods`)."""


class TrackingUpdate(NamedTuple):
    """The status to write first, the pods whose finalizers are removed next, and the Job's final condition."""

    status: JobStatus
    release: Sequence[JobPod]
    final: JobCondition | None
    is_partial: bool
    """Whether there are more pods to count than fit into the Job's status."""


def track(snapshot: JobSnapshot, status: JobStatus, end: JobCondition | None) -> TrackingUpdate:
    """Return the writes that count ended pods, based on `status`, whose other fields already have the new values.

    The argument `end` is the condition that determines how the Job ends. The condition is None if the Job continues or
    cannot end yet.
    """
    held = {pod.uid for pod in snapshot.pods if pod.is_tracked}
    uncounted = EndedPods(counted(status, held), snapshot)
    release: list[JobPod] = []
    is_partial = False
    for pod in by_completion_index(snapshot.pods) if snapshot.spec.is_indexed else snapshot.pods:
        if not pod.is_tracked or not _may_be_released(snapshot, pod, end):
            continue
        release.append(pod)
        uncounted.add(pod, end)
        if len(uncounted) >= AT_ONCE:
            is_partial = True
            break
    return TrackingUpdate(_with_interim(uncounted.status(), end), release, final(end, snapshot.now), is_partial)


def _may_be_released(snapshot: JobSnapshot, pod: JobPod, end: JobCondition | None) -> bool:
    """Return whether a pod's finalizer may be removed (`canRemoveFinalizer`)."""
    if snapshot.is_deleted or end is not None or pod.phase == "Succeeded":
        return True
    if not snapshot.has_failed(pod):
        return False
    index = completion_index(pod.annotations)
    kept = snapshot.delayed.get(index) if index is not None else None
    return kept is None or kept.uid != pod.uid


class EndedPods:
    """Collects ended pods that are not counted yet."""

    def __init__(self, status: JobStatus, snapshot: JobSnapshot) -> None:
        """Create a collection that starts with the uncounted pods in `status`."""
        known = status.uncounted_terminated_pods or Uncounted()
        self._status = status
        self._snapshot = snapshot
        self._before = snapshot.uncounted
        self._succeeded = list(known.succeeded or ())
        self._failed = list(known.failed or ())
        self._indexes: list[int] = []

    def __len__(self) -> int:
        return len(self._indexes) + len(self._succeeded) + len(self._failed)

    def add(self, pod: JobPod, end: JobCondition | None) -> None:
        """Add a pod whose finalizer will be removed.

        If the Job fails, a pod that has not ended is added as failed.
        """
        snapshot = self._snapshot
        failed_before = pod.uid in (self._before.failed or ())
        if pod.phase == "Succeeded" and not failed_before:
            self._add_success(pod)
        elif snapshot.has_failed(pod) or (end is not None and end.type != SUCCESS_CRITERIA_MET):
            placed = not snapshot.spec.is_indexed or snapshot.index_of(pod) is not None
            if not failed_before and placed and judge(snapshot.spec.pod_failure_policy, pod).counts:
                self._failed.append(pod.uid)

    def _add_success(self, pod: JobPod) -> None:
        snapshot = self._snapshot
        if not snapshot.spec.is_indexed:
            if pod.uid not in (self._before.succeeded or ()):
                self._succeeded.append(pod.uid)
            return
        index = snapshot.index_of(pod)
        if index is not None and not snapshot.counted_indexes.has(index):
            self._indexes.append(index)

    def status(self) -> JobStatus:
        """Return the Job's status, in which all added pods are recorded."""
        status = replace(
            self._status, uncounted_terminated_pods=Uncounted(self._succeeded or None, self._failed or None)
        )
        if not self._snapshot.spec.is_indexed:
            return status
        succeeded = self._snapshot.succeeded_indexes.with_indexes(self._indexes)
        failed = self._snapshot.failed_indexes
        return replace(
            status,
            succeeded=succeeded.total,
            completed_indexes=str(succeeded),
            failed_indexes=None if failed is None else str(failed),
        )


def _with_interim(status: JobStatus, end: JobCondition | None) -> JobStatus:
    """Return the Job's status with the new interim condition, which determines how the Job will end."""
    if end is None or end.type not in (FAILURE_TARGET, SUCCESS_CRITERIA_MET) or status.true(end.type) is not None:
        return status
    return replace(status, conditions=[*(status.conditions or ()), end])


def final(end: JobCondition | None, now: int) -> JobCondition | None:
    """Return the final condition that follows an interim condition."""
    if end is None:
        return None
    if end.type == SUCCESS_CRITERIA_MET:
        return condition(COMPLETE, now, end.reason, end.message)
    return condition(FAILED, now, end.reason, end.message)


def counted(status: JobStatus, held: Collection[str]) -> JobStatus:
    """Return the Job's status, in which the pods without the finalizer are counted.

    The argument `held` contains the uids of pods that still have the finalizer. Source:
    `cleanUncountedPodsWithoutFinalizers`.
    """
    known = status.uncounted_terminated_pods or Uncounted()
    succeeded, failed = _still(known.succeeded, held), _still(known.failed, held)
    return replace(
        status,
        succeeded=status.succeeded + len(known.succeeded or ()) - len(succeeded),
        failed=status.failed + len(known.failed or ()) - len(failed),
        uncounted_terminated_pods=Uncounted(succeeded or None, failed or None),
    )


def _still(uids: Iterable[str] | None, held: Collection[str]) -> list[str]:
    return [uid for uid in uids or () if uid in held]


def finished(status: JobStatus, tracked: TrackingUpdate, terminating: int) -> JobStatus | None:
    """Return the final status of the Job; None if some pods are not counted yet or are terminating."""
    known = status.uncounted_terminated_pods or Uncounted()
    if tracked.final is None or tracked.is_partial or known.succeeded or known.failed or terminating:
        return None
    status, _ = with_condition(status, tracked.final)
    if tracked.final.type == COMPLETE:
        status = replace(status, completion_time=tracked.final.last_transition_time)
    return status


def with_condition(status: JobStatus, desired: JobCondition) -> tuple[JobStatus, bool]:
    """Return the Job's status with a condition added, and whether this changed the status (`ensureJobConditionStatus`).

    A condition with the status False is added only if the Job already has a condition of that type.
    """
    conditions = list(status.conditions or ())
    for place, old in enumerate(conditions):
        if old.type == desired.type:
            if (old.status, old.reason, old.message) == (desired.status, desired.reason, desired.message):
                return status, False
            conditions[place] = desired
            return replace(status, conditions=conditions), True
    if desired.status == "False":
        return status, False
    return replace(status, conditions=[*conditions, desired]), True
