"""What is to be done about a Job: which pods are made, which are deleted, and how it is going to end.

Guarantees:
- A reconcile either makes pods or deletes some, at most 500 of them.
- A Job that is going to end deletes what still runs, and makes nothing any more; whether it is going to end well or not
  is decided once (`SuccessCriteriaMet` or `FailureTarget`) and stays.
- What is suspended runs nothing and keeps its counts.

Rules come from Kubernetes' `pkg/controller/job/job_controller.go` (`syncJob`, `manageJob`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.job.backoff import ready_indexes
from ctrlmgr.controllers.job.indexes import superfluous
from ctrlmgr.controllers.job.policies import judge, met_rule
from ctrlmgr.controllers.job.sight import Sight
from ctrlmgr.controllers.job.views import JobCondition, JobPod, by_rank

AT_ONCE: Final = 500
"""How many pods a reconcile makes or deletes (`MaxPodCreateDeletePerSync`)."""

FAILURE_TARGET: Final = "FailureTarget"
SUCCESS_CRITERIA_MET: Final = "SuccessCriteriaMet"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
SUSPENDED: Final = "Suspended"


class Plan(NamedTuple):
    """What a reconcile does to pods.

    `delete` are deleted; with `release` they lose the finalizer first, and are not counted. `create` has an index (or
    None) for each pod to be made. When pods are due only in `wait` microseconds, nothing is made.
    """

    delete: Sequence[JobPod] = ()
    release: bool = False
    create: Sequence[int | None] = ()
    wait: int = 0


def ending(sight: Sight) -> JobCondition | None:
    """Return the condition that says how the Job is going to end, None while it goes on."""
    return _decided(sight) or _over_the_limits(sight) or _indexes_decide(sight)


def _decided(sight: Sight) -> JobCondition | None:
    """Return what has been decided already, or what a pod's failure decides by the policy."""
    if met := sight.status.true(SUCCESS_CRITERIA_MET):
        return met
    if target := sight.status.true(FAILURE_TARGET):
        return condition(FAILED, sight.now, target.reason, target.message)
    policy = sight.spec.pod_failure_policy
    for pod in sight.pods if policy is not None else ():
        if sight.has_failed(pod) and (message := judge(policy, pod).message) is not None:
            return condition(FAILURE_TARGET, sight.now, "PodFailurePolicy", message)
    return None


def _over_the_limits(sight: Sight) -> JobCondition | None:
    if sight.failed > sight.spec.backoff_limit or _restarted_too_often(sight):
        message = "Job has reached the specified backoff limit"
        return condition(FAILURE_TARGET, sight.now, "BackoffLimitExceeded", message)
    left = until_deadline(sight)
    if left is not None and left <= 0:
        message = "Job was active longer than specified deadline"
        return condition(FAILURE_TARGET, sight.now, "DeadlineExceeded", message)
    return None


def _indexes_decide(sight: Sight) -> JobCondition | None:
    if not sight.spec.is_indexed:
        return None
    failed = sight.failed_indexes
    if failed is not None:
        most = sight.spec.max_failed_indexes
        if most is not None and failed.total > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return condition(FAILURE_TARGET, sight.now, "MaxFailedIndexesExceeded", message)
        if failed and failed.total + sight.succeeded_indexes.total >= sight.completions:
            return condition(FAILURE_TARGET, sight.now, "FailedIndexes", "Job has failed indexes")
    rule = met_rule(sight.spec.success_policy, sight.completions, sight.succeeded_indexes)
    if rule is None:
        return None
    return condition(SUCCESS_CRITERIA_MET, sight.now, "SuccessPolicy", f"Matched rules at index {rule}")


def _restarted_too_often(sight: Sight) -> bool:
    """Whether the containers of pods that restart them have done so too often (`pastBackoffLimitOnFailure`)."""
    if sight.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts: int = sum(
        status.restart_count
        for pod in sight.pods
        if pod.phase in ("Running", "Pending")
        for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    )
    return restarts >= (sight.spec.backoff_limit or 1)


def until_deadline(sight: Sight) -> int | None:
    """Return how many microseconds it may still be active; None when there is no deadline now."""
    seconds, started = sight.spec.active_deadline_seconds, sight.status.start_time
    if seconds is None or sight.spec.is_suspended:
        return None
    return seconds * 1_000_000 - (sight.now - (parse_time(started) if started else sight.now))


def completed(sight: Sight, active: int) -> JobCondition | None:
    """Return that the Job is going to end well, if enough pods have succeeded and `active` of them run."""
    completions = sight.spec.completions
    if sight.succeeded < completions if completions is not None else not sight.succeeded:
        return None
    if active:
        return None
    return condition(SUCCESS_CRITERIA_MET, sight.now, "CompletionsReached", "Reached expected number of succeeded pods")


def plan(sight: Sight) -> Plan:
    """Return what a Job that goes on does to its pods."""
    if sight.spec.is_suspended:
        return Plan(delete=_to_remove(sight, len(sight.active)), release=True)
    wanted = _wanted(sight)
    remove = _to_remove(sight, max(0, len(sight.active) - wanted))[:AT_ONCE]
    if remove:
        return Plan(delete=remove, release=True)
    terminating = sight.terminating if sight.spec.waits_for_the_end else 0
    missing = min(wanted - terminating - len(sight.active), AT_ONCE)
    return _additions(sight, missing) if missing > 0 else Plan()


def _wanted(sight: Sight) -> int:
    """Return how many pods shall run now."""
    if sight.spec.completions is None:
        return len(sight.active) if sight.succeeded > 0 else sight.spec.parallelism
    return max(0, min(sight.spec.completions - sight.succeeded, sight.spec.parallelism))


def _to_remove(sight: Sight, at_least: int) -> Sequence[JobPod]:
    """Return the active pods that go: those that are in the way of others, and `at_least` so many."""
    gone: list[JobPod] = []
    left: Sequence[JobPod] = sight.active
    if sight.spec.is_indexed:
        gone, left = superfluous(sight.active, sight.completions)
    return gone + sorted(left, key=by_rank)[: max(0, at_least - len(gone))]


def _additions(sight: Sight, missing: int) -> Plan:
    if sight.failed_indexes is None and (wait := sight.backoff.remaining(sight.now)):
        return Plan(wait=wait)
    if not sight.spec.is_indexed:
        return Plan(create=[None] * missing)
    indexes = sight.free_indexes(missing)
    if sight.failed_indexes is not None:
        indexes, wait = ready_indexes(indexes, sight.delayed, sight.now)
        if wait:
            return Plan(wait=wait)
    return Plan(create=indexes)


def condition(type: str, now: int, reason: str, message: str, status: str = "True") -> JobCondition:
    """Return a condition that has become so at `now`."""
    at = format_time_seconds(now)
    return JobCondition(type, status, at, at, reason, message)
