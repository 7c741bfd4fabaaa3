"""Builds the status of a Deployment: the numbers of pods, and the conditions about availability, progress and failures.

Source: Kubernetes' `pkg/controller/deployment/{sync,progress}.go` and `util/deployment_util.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.deployment.decide import available, size
from ctrlmgr.controllers.deployment.view import Deployment
from ctrlmgr.controllers.workloads.replica_sets import ReplicaSet, ReplicaSetStatus
from ctrlmgr.controllers.workloads.status_conditions import Condition, condition_of, with_condition, without

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
REPLICA_FAILURE: Final = "ReplicaFailure"

FOUND: Final = "FoundNewReplicaSet"
CREATED: Final = "NewReplicaSetCreated"
NOT_CREATED: Final = "ReplicaSetCreateError"
UPDATED: Final = "ReplicaSetUpdated"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"

_SECOND: Final = 1_000_000


def condition(type_: str, status: str, reason: str, message: str, now: int) -> Condition:
    """Return a condition whose timestamps are `now` (microseconds since 1970)."""
    at = format_time_seconds(now)
    times = {"lastUpdateTime": at, "lastTransitionTime": at}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def numbers(deployment: Object, new: Object | None, replica_sets: Sequence[Object], now: int) -> dict[str, Any]:
    """Return the status that follows from the sizes of the ReplicaSets; conditions other than Available are unchanged.

    Zeros in the status are omitted, as in Go's encoding.
    """
    view = deployment.view(Deployment)
    ready = sum(map(available, replica_sets))
    counts = {
        "replicas": _sum(replica_sets, lambda each: each.replicas),
        "updatedReplicas": _sum((new,) if new is not None else (), lambda each: each.replicas),
        "readyReplicas": _sum(replica_sets, lambda each: each.ready_replicas),
        "availableReplicas": ready,
        "unavailableReplicas": max(sum(map(size, replica_sets)) - ready, 0),
    }
    status: dict[str, Any] = {"observedGeneration": deployment.metadata.generation or 0, **counts}
    status = {name: count for name, count in status.items() if count}
    going = [each.view(ReplicaSet).status.terminating_replicas for each in replica_sets]
    known = [each for each in going if each is not None]
    if len(known) == len(going):
        status["terminatingReplicas"] = sum(known)
    if view.status.collision_count is not None:
        status["collisionCount"] = view.status.collision_count
    return with_conditions(status, with_condition(view.status.conditions, _availability(view, ready, now)))


def with_conditions(status: Mapping[str, Any], conditions: list[Condition]) -> dict[str, Any]:
    """Return a copy of `status` that contains exactly the given `conditions`.

    The field is omitted if `conditions` is empty.
    """
    kept = {name: value for name, value in status.items() if name != "conditions"}
    return {**kept, "conditions": conditions} if conditions else kept


def _sum(replica_sets: Iterable[Object], number: Callable[[ReplicaSetStatus], int]) -> int:
    return sum(number(each.view(ReplicaSet).status) for each in replica_sets)


def _availability(view: Deployment, ready: int, now: int) -> Condition:
    if ready >= view.replicas - view.unavailable:
        message = "Deployment has minimum availability."
        return condition(AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
    message = "Deployment does not have minimum availability."
    return condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)


def of_rollout(deployment: Object, new: Object | None, replica_sets: Sequence[Object], now: int) -> dict[str, Any]:
    """Return a Deployment's status during a rollout: its numbers of pods, and its conditions.

    The conditions describe progress and failures.
    """
    view = deployment.view(Deployment)
    status = numbers(deployment, new, replica_sets, now)
    conditions: list[Condition] = status["conditions"]
    current = condition_of(view.status.conditions, PROGRESSING)
    if view.deadline is None:
        conditions = without(conditions, PROGRESSING)
    elif not (_is_done(status) and current is not None and current.get("reason") == COMPLETE):
        conditions = _with_progress(deployment, view, status, new, now)
    failure = _failure(new, replica_sets)
    conditions = without(conditions, REPLICA_FAILURE) if failure is None else with_condition(conditions, failure)
    return with_conditions(status, conditions)


def _is_done(status: Mapping[str, Any]) -> bool:
    return bool(status.get("replicas", 0) == status.get("updatedReplicas", 0))


def _with_progress(
    deployment: Object, view: Deployment, status: Mapping[str, Any], new: Object | None, now: int
) -> list[Condition]:
    conditions: list[Condition] = status["conditions"]
    current = condition_of(view.status.conditions, PROGRESSING)
    subject = f'ReplicaSet "{new.name}"' if new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, status):
        progressing = condition(PROGRESSING, "True", COMPLETE, f"{subject} has successfully progressed.", now)
        return with_condition(conditions, progressing)
    if _has_progressed(view, status):
        progressing = condition(PROGRESSING, "True", UPDATED, f"{subject} is progressing.", now)
        # The update time is the time of the latest progress, so it is set even if the reason does not change.
        if current is not None and current["status"] == "True":
            progressing["lastTransitionTime"] = current.get("lastTransitionTime")
        return [*without(conditions, PROGRESSING), progressing]
    if has_timed_out(view, condition_of(conditions, PROGRESSING), now):
        progressing = condition(PROGRESSING, "False", TIMED_OUT, f"{subject} has timed out progressing.", now)
        return with_condition(conditions, progressing)
    return conditions


def is_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Return whether all pods in a status are new and available, and no old pods exist (`DeploymentComplete`)."""
    desired = deployment.view(Deployment).replicas
    names = ("updatedReplicas", "replicas", "availableReplicas")
    is_observed = status.get("observedGeneration", 0) >= (deployment.metadata.generation or 0)
    return is_observed and all(status.get(name, 0) == desired for name in names)


def _has_progressed(view: Deployment, status: Mapping[str, Any]) -> bool:
    before = view.status
    updated, replicas = status.get("updatedReplicas", 0), status.get("replicas", 0)
    return bool(
        updated > before.updated_replicas
        or replicas - updated < before.replicas - before.updated_replicas
        or status.get("readyReplicas", 0) > before.ready_replicas
        or status.get("availableReplicas", 0) > before.available_replicas
    )


def has_timed_out(view: Deployment, progress: Mapping[str, Any] | None, now: int) -> bool:
    """Return whether the rollout has exceeded its progress deadline (`DeploymentTimedOut`)."""
    if view.deadline is None or progress is None or progress.get("reason") == COMPLETE:
        return False
    return progress.get("reason") == TIMED_OUT or _due(view.deadline, progress) < now


def _due(deadline: int, progress: Mapping[str, Any]) -> int:
    at = progress.get("lastUpdateTime")
    return (parse_time(at) if at else 0) + deadline * _SECOND


def look_again_in(deployment: Object, status: Mapping[str, Any], now: int) -> float | None:
    """Return the seconds until the progress deadline of a rollout must be checked; None if no check is needed."""
    view = deployment.view(Deployment)
    progress = condition_of(view.status.conditions, PROGRESSING)
    if view.deadline is None or progress is None or progress.get("reason") == TIMED_OUT:
        return None
    if is_complete(deployment, status):
        return None
    # Wait one second more, because the timestamps of conditions are whole seconds.
    return max((_due(view.deadline, progress) - now) / _SECOND, 0.0) + 1


def _failure(new: Object | None, replica_sets: Iterable[Object]) -> Condition | None:
    """Return the first failure of a ReplicaSet as a condition of the Deployment.

    If the new ReplicaSet and an old ReplicaSet have failed, return the failure of the new ReplicaSet.
    """
    for each in (*((new,) if new is not None else ()), *replica_sets):
        found = condition_of(each.view(ReplicaSet).status.conditions, REPLICA_FAILURE)
        if found is not None:
            at = found.get("lastTransitionTime")
            fields = {"lastUpdateTime": at, "lastTransitionTime": at, "message": found.get("message", "")}
            return {"type": REPLICA_FAILURE, "status": found["status"], "reason": found.get("reason", ""), **fields}
    return None


def pausing(view: Deployment, now: int) -> Condition | None:
    """Return the condition to set after a Deployment was paused or resumed; None if the condition is unchanged.

    The condition that is set after a pause or a resumption restarts the progress deadline. A rollout that has timed out
    keeps its condition Progressing.
    """
    progress = condition_of(view.status.conditions, PROGRESSING)
    reason = progress.get("reason") if progress is not None else None
    if view.deadline is None or reason == TIMED_OUT or view.spec.paused == (reason == PAUSED):
        return None
    if view.spec.paused:
        return condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)
    return condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now)
