"""Decides which pods of a Job to create and delete, and whether the Job succeeds or fails.

Guarantees:
- A reconcile either creates or deletes pods. The number of these pods is at most 500.
- If a Job is ending, its active pods are deleted and no pods are created. The decision that an ending Job succeeds or
  fails (`SuccessCriteriaMet` or `FailureTarget`) never changes.
- A suspended Job has no active pods and keeps its counts of ended pods.

Source: Kubernetes' `pkg/controller/job/job_controller.go` (`syncJob`, `manageJob`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.job.indexes import superfluous
from ctrlmgr.controllers.job.job_backoff import ready_indexes
from ctrlmgr.controllers.job.job_policies import judge, met_rule
from ctrlmgr.controllers.job.job_snapshot import JobSnapshot
from ctrlmgr.controllers.job.view import JobCondition, JobPod, by_rank

AT_ONCE: Final = 500
"""The maximum number of pods that a reconcile creates or deletes (`MaxPodCreateDeletePerSync`)."""

FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"


class Plan(NamedTuple):
    """The pods that a reconcile creates and deletes.

    The reconcile deletes the pods in `delete`. If `release` is set, the reconcile removes the finalizer of these pods
    before the deletion, so that the pods are not counted. The list `create` contains an index (or None) for each pod to
    create. If `wait` is not 0, `create` is empty, and pods may be created after `wait` microseconds.
    """

    delete: Sequence[JobPod] = ()
    release: bool = False
    create: Sequence[int | None] = ()
    wait: int = 0


def ending(snapshot: JobSnapshot) -> JobCondition | None:
    """Return the condition that determines how the Job ends; None if the Job continues."""
    return _decided(snapshot) or _over_the_limits(snapshot) or _indexes_decide(snapshot)


def _decided(snapshot: JobSnapshot) -> JobCondition | None:
    """Return the failure condition that was set before, or that the pod failure policy requires for a failed pod."""
    if met := snapshot.status.true(SUCCESS_CRITERIA_MET):
        return met
    if target := snapshot.status.true(FAILURE_TARGET):
        return condition(FAILED, snapshot.now, target.reason, target.message)
    policy = snapshot.spec.pod_failure_policy
    for pod in snapshot.pods if policy is not None else ():
        if snapshot.has_failed(pod) and (message := judge(policy, pod).message) is not None:
            return condition(FAILURE_TARGET, snapshot.now, "PodFailurePolicy", message)
    return None


def _over_the_limits(snapshot: JobSnapshot) -> JobCondition | None:
    if snapshot.failed > snapshot.spec.backoff_limit or _restarted_too_often(snapshot):
        message = "Job has reached the specified backoff limit"
        return condition(FAILURE_TARGET, snapshot.now, "BackoffLimitExceeded", message)
    left = until_deadline(snapshot)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return condition(FAILURE_TARGET, snapshot.now, "DeadlineExceeded", message)
    return None


def _indexes_decide(snapshot: JobSnapshot) -> JobCondition | None:
    if not snapshot.spec.is_indexed:
        return None
    failed = snapshot.failed_indexes
    if failed is not None:
        most = snapshot.spec.max_failed_indexes
        if most is not None and failed.total > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return condition(FAILURE_TARGET, snapshot.now, "MaxFailedIndexesExceeded", message)
        if failed and failed.total + snapshot.succeeded_indexes.total >= snapshot.completions:
            return condition(FAILURE_TARGET, snapshot.now, "FailedIndexes", "Job has failed indexes")
    rule = met_rule(snapshot.spec.success_policy, snapshot.completions, snapshot.succeeded_indexes)
    if rule is None:
        return None
    return condition(SUCCESS_CRITERIA_MET, snapshot.now, "SuccessPolicy", f"Matched rules at index {rule}")


def _restarted_too_often(snapshot: JobSnapshot) -> bool:
    """Return whether the restarts of containers exceed the backoff limit (`pastBackoffLimitOnFailure`)."""
    if snapshot.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts: int = sum(
        status.restart_count
        for pod in snapshot.pods
        if pod.phase in ("Running", "Pending")
        for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    )
    return restarts >= (snapshot.spec.backoff_limit or 1)


def until_deadline(snapshot: JobSnapshot) -> int | None:
    """Return the microseconds until the active deadline; None if there is no deadline or the Job is suspended."""
    seconds, started = snapshot.spec.active_deadline_seconds, snapshot.status.start_time
    if seconds is None or snapshot.spec.is_suspended:
        return None
    return seconds * 1_000_000 - (snapshot.now - (parse_time(started) if started else snapshot.now))


def completed(snapshot: JobSnapshot, active: int) -> JobCondition | None:
    """Return the success condition if enough pods have succeeded and no pod is `active`; otherwise return None."""
    completions = snapshot.spec.completions
    if snapshot.succeeded < completions if completions is not None else not snapshot.succeeded:
        return None
    if active:
        return None
    message = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, snapshot.now, "CompletionsReached", message)


def plan(snapshot: JobSnapshot) -> Plan:
    """Return the pods that must be created and deleted for a Job that continues."""
    if snapshot.spec.is_suspended:
        return Plan(delete=_to_remove(snapshot, len(snapshot.active)), release=True)
    desired = _desired_pods(snapshot)
    remove = _to_remove(snapshot, max(0, len(snapshot.active) - desired))[:AT_ONCE]
    if remove:
        return Plan(delete=remove, release=True)
    terminating = snapshot.terminating if snapshot.spec.waits_for_the_end else 0
    missing = min(desired - terminating - len(snapshot.active), AT_ONCE)
    return _additions(snapshot, missing) if missing > 0 else Plan()


def _desired_pods(snapshot: JobSnapshot) -> int:
    """Return the number of pods that should be active now."""
    if snapshot.spec.completions is None:
        return len(snapshot.active) if snapshot.succeeded > 0 else snapshot.spec.parallelism
    return max(0, min(snapshot.spec.completions - snapshot.succeeded, snapshot.spec.parallelism))


def _to_remove(snapshot: JobSnapshot, at_least: int) -> Sequence[JobPod]:
    """Return the active pods to delete.

    The result contains all pods with invalid or duplicate indexes. If fewer than `at_least` pods have such indexes, the
    result also contains other pods.
    """
    gone: list[JobPod] = []
    left: Sequence[JobPod] = snapshot.active
    if snapshot.spec.is_indexed:
        gone, left = superfluous(snapshot.active, snapshot.completions)
    return gone + sorted(left, key=by_rank)[: max(0, at_least - len(gone))]


def _additions(snapshot: JobSnapshot, missing: int) -> Plan:
    if snapshot.failed_indexes is None and (wait := snapshot.backoff.remaining(snapshot.now)):
        return Plan(wait=wait)
    if not snapshot.spec.is_indexed:
        return Plan(create=[None] * missing)
    indexes = snapshot.free_indexes(missing)
    if snapshot.failed_indexes is not None:
        indexes, wait = ready_indexes(indexes, snapshot.delayed, snapshot.now)
        if wait:
            return Plan(wait=wait)
    return Plan(create=indexes)


def condition(type: str, now: int, reason: str, message: str, status: str = "True") -> JobCondition:
    """Return a condition with the transition time `now`."""
    at = format_time_seconds(now)
    return JobCondition(type, status, at, at, reason, message)
