"""Records the metrics of Jobs: reconciles, finished Jobs, and pods.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`recordJobPodFinished`, `recordJobFinished`,
`recordJobPodsCreationTotal`, `recordFinishedPodWithTrackingFinalizer`, `recordJobPodFailurePolicyActions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.job.decide import COMPLETE
from ctrlmgr.controllers.job.indexes import Intervals
from ctrlmgr.controllers.job.job_policies import judge
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.view import TRACKING, Job, JobCondition, JobPod, JobStatus
from ctrlmgr.controllers.workloads.workload_metrics import (
    FAILED,
    SUCCEEDED,
    job_finished_indexes,
    job_pods_creation,
    job_pods_finished,
    job_sync_seconds,
    job_syncs,
    jobs_by_external_controller,
    jobs_finished,
    pod_failures_handled,
    terminated_pods_tracked,
)
from ctrlmgr.informer import Change

RECONCILING: Final = "reconciling"
TRACKED: Final = "tracking"
CREATED: Final = "pods_created"
DELETED: Final = "pods_deleted"
"""The values of the label `action`, one for each action of a reconcile."""

_ENDED: Final = ("Succeeded", "Failed")


def note_sync(snapshot: JobSnapshot, action: str, seconds: float, *, failed: bool) -> None:
    """Count a reconcile of a Job."""
    labels = (_mode(snapshot), "error" if failed else "success", action)
    job_syncs.labels(*labels).inc()
    job_sync_seconds.labels(*labels).observe(seconds)


def note_created(snapshot: JobSnapshot, made: int, missed: int) -> None:
    """Count the pods that were created, and the creations that failed."""
    reason = "new"
    if snapshot.spec.waits_for_the_end and snapshot.failed:
        reason = "recreate_failed"
    elif snapshot.failed or snapshot.terminating:
        reason = "recreate_terminating_or_failed"
    for status, count in ((SUCCEEDED, made), (FAILED, missed)):
        if count:
            job_pods_creation.labels(reason, status).inc(count)


def note_counted(snapshot: JobSnapshot, before: JobStatus, after: JobStatus) -> None:
    """Count the pods and indexes that have ended according to a status that was written."""
    mode, succeeded = _mode(snapshot), after.succeeded - before.succeeded
    if snapshot.spec.is_indexed:
        limit = "global" if snapshot.spec.backoff_limit_per_index is None else "perIndex"
        succeeded = _gained(snapshot, before.completed_indexes, after.completed_indexes)
        job_finished_indexes.labels(SUCCEEDED, limit).inc(succeeded)
        failed = _gained(snapshot, before.failed_indexes, after.failed_indexes)
        if snapshot.spec.backoff_limit_per_index is not None:
            job_finished_indexes.labels(FAILED, limit).inc(failed)
    job_pods_finished.labels(mode, SUCCEEDED).inc(max(0, succeeded))
    job_pods_finished.labels(mode, FAILED).inc(max(0, after.failed - before.failed))


def _gained(snapshot: JobSnapshot, before: str | None, after: str | None) -> int:
    """Return the number of indexes that were added to a list; if the list became shorter, return 0."""
    size = snapshot.completions
    return max(0, Intervals.parse(after or "", size).total - Intervals.parse(before or "", size).total)


def note_released(snapshot: JobSnapshot, pods: Iterable[JobPod]) -> None:
    """Count the actions of the pod failure policy for those pods whose finalizer is removed."""
    for pod in pods:
        action = judge(snapshot.spec.pod_failure_policy, pod).action if snapshot.has_failed(pod) else None
        if action is not None:
            pod_failures_handled.labels(action).inc()


def note_finished(snapshot: JobSnapshot, final: JobCondition) -> None:
    """Count a Job that has finished."""
    jobs_finished.labels(_mode(snapshot), SUCCEEDED if final.type == COMPLETE else FAILED, final.reason).inc()


def note_pod(change: Change) -> None:
    """Count an ended pod to which the finalizer is added, or from which it is removed."""
    old, new = change.old, change.new
    if (new is None or not new.metadata.finalizers) and (old is None or not old.metadata.finalizers):
        return  # Nearly all pods have no finalizers, so most changes return here.
    held, was_held = _is_held(new), _is_held(old)
    if held != was_held:
        terminated_pods_tracked.labels("add" if held else "delete").inc()


def _is_held(pod: Object | None) -> bool:
    if pod is None or TRACKING not in (pod.metadata.finalizers or ()):
        return False
    return JobPod(pod).phase in _ENDED


def note_job(change: Change) -> None:
    """Count a new Job that another controller manages."""
    if change.old is None and change.new is not None:
        manager = change.new.view(Job).spec.foreign_manager
        if manager is not None:
            jobs_by_external_controller.labels(manager).inc()


def _mode(snapshot: JobSnapshot) -> str:
    return "Indexed" if snapshot.spec.is_indexed else "NonIndexed"
