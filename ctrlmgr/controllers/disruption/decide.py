"""Decides how many disruptions a budget allows, without writing.

Guarantees, as in Kubernetes (`pkg/controller/disruption/disruption.go`, `component-helpers/apps/poddisruptionbudget`):
- A percentage refers to the sum of the desired pods of all controllers of the selected pods, and is rounded up. If
  `minAvailable` is a number, the controllers are not read.
- A pod that is terminating, or was evicted within the last two minutes, is not healthy. If an evicted pod is not
  deleted within two minutes, the eviction is removed from the budget's status. The condition DisruptionTarget of a pod
  that was not deleted after its eviction is removed, too.
- If a budget expects 0 pods, no disruption is allowed.

All times in this module are in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.controllers.disruption.view import DISRUPTION, Budget, DisruptedPod
from ctrlmgr.controllers.workloads.controlled_pods import controller_of, is_ready
from ctrlmgr.controllers.workloads.int_or_percent import scaled
from ctrlmgr.controllers.workloads.status_conditions import condition_of, without

ALLOWED: Final = "DisruptionAllowed"
PATIENCE: Final = 120_000_000
"""The number of microseconds for which an eviction counts if the pod is not deleted (`DeletionTimeout`)."""

_SUFFICIENT: Final = "SufficientPods"
_INSUFFICIENT: Final = "InsufficientPods"


class Scale(NamedTuple):
    """The desired number of pods of the controller with this uid."""

    uid: str
    replicas: int


class Expected(NamedTuple):
    """The number of pods that a budget expects, the number that must be healthy, and whether any has no controller."""

    pods: int
    healthy: int
    unmanaged: bool = False


def expected(budget: Object, pods: Sequence[Object], scale_of: Callable[[Object], Scale]) -> Expected:
    """Return the number of pods that a budget expects, given its `pods`.

    Raises the errors of the function `scale_of`, which is called for pods with a controller.
    """
    spec = budget.view(Budget).spec
    if spec.max_unavailable is not None:
        desired, unmanaged = _expected_count(pods, scale_of)
        return Expected(desired, max(desired - scaled(spec.max_unavailable, desired, round_up=True), 0), unmanaged)
    if isinstance(spec.min_available, str):
        desired, unmanaged = _expected_count(pods, scale_of)
        return Expected(desired, scaled(spec.min_available, desired, round_up=True), unmanaged)
    return Expected(0, 0) if spec.min_available is None else Expected(len(pods), spec.min_available)


def _expected_count(pods: Sequence[Object], scale_of: Callable[[Object], Scale]) -> tuple[int, bool]:
    asked: set[str] = set()
    scales: dict[str, int] = {}
    unmanaged = False
    for pod in pods:
        reference = controller_of(pod)
        if reference is None:
            unmanaged = True
        elif reference.uid not in asked:
            asked.add(reference.uid)
            found = scale_of(pod)
            scales[found.uid] = found.replicas
    return sum(scales.values()), unmanaged


class Disrupted(NamedTuple):
    """The evictions that still count, the time when the first of them expires, and the evicted pods that remain."""

    pods: Mapping[str, str]
    until: int | None
    overdue: Sequence[Object]


def disrupted(budget: Object, pods: Sequence[Object], now: int) -> Disrupted:
    """Return the evictions in a budget's status that still count, and the evictions that have expired."""
    noted = budget.view(Budget).status.disrupted_pods or {}
    due = {pod.name: parse_time(noted[pod.name]) + PATIENCE for pod in pods if _is_awaited(pod, noted)}
    kept = {name: noted[name] for name, at in due.items() if at >= now}
    overdue = [pod for pod in pods if pod.name in due and pod.name not in kept]
    return Disrupted(kept, min((due[name] for name in kept), default=None), overdue)


def _is_awaited(pod: Object, noted: Mapping[str, str]) -> bool:
    return pod.name in noted and not pod.is_terminating


def healthy(pods: Sequence[Object], gone: Mapping[str, str], now: int) -> int:
    """Return the number of pods that are ready and not about to be deleted; `gone` contains the evicted pods."""
    staying = (pod for pod in pods if not pod.is_terminating)
    return sum(
        is_ready(pod) and not (pod.name in gone and parse_time(gone[pod.name]) + PATIENCE > now) for pod in staying
    )


def with_status(budget: Object, desired: Expected, current: int, gone: Mapping[str, str], now: int) -> Object | None:
    """Return a budget with these counts in its status; None if the status already has these counts."""
    was, generation = budget.view(Budget).status, budget.metadata.generation or 0
    allowed = max(current - desired.healthy, 0) if desired.pods > 0 else 0
    reason = _SUFFICIENT if allowed else _INSUFFICIENT
    condition = condition_of(was.conditions, ALLOWED) or {}
    before = BudgetNumbers(was.current_healthy, was.desired_healthy, was.expected_pods, was.disruptions_allowed)
    numbers = BudgetNumbers(current, desired.healthy, desired.pods, allowed)
    same = before == numbers and (was.disrupted_pods or {}) == gone and was.observed_generation == generation
    if same and (condition.get("status"), condition.get("reason")) == (str(allowed > 0), reason):
        return None
    status: dict[str, Any] = {
        "observedGeneration": generation,
        "disruptionsAllowed": allowed,
        "currentHealthy": current,
        "desiredHealthy": desired.healthy,
        "expectedPods": desired.pods,
        "conditions": _conditions(was.conditions or (), allowed > 0, reason, "", generation, now),
    }
    if gone:
        status["disruptedPods"] = dict(gone)
    return Object.from_dict({**budget.to_dict(), "status": status})


class BudgetNumbers(NamedTuple):
    """The pod counts in a budget's status."""

    current: int
    desired: int
    pods: int
    allowed: int


def failed_safe(budget: Object, problem: str, now: int) -> Object:
    """Return a budget that allows no disruption because of a problem; the other fields of the status are kept."""
    body, was = budget.to_dict(), budget.view(Budget).status
    conditions = _conditions(was.conditions or (), False, "SyncFailed", problem, was.observed_generation, now)
    return Object.from_dict(
        {**body, "status": {**(body.get("status") or {}), "disruptionsAllowed": 0, "conditions": conditions}}
    )


def _conditions(
    conditions: Sequence[Mapping[str, Any]], value: bool, reason: str, message: str, generation: int, now: int
) -> list[dict[str, Any]]:
    """Replace the condition of this type in a list of conditions, or append the condition (`SetStatusCondition`)."""
    allowed = condition_of(conditions, ALLOWED)
    kept = allowed is not None and allowed["status"] == str(value)
    new = {
        "type": ALLOWED,
        "status": str(value),
        **({"observedGeneration": generation} if generation else {}),
        "lastTransitionTime": allowed["lastTransitionTime"]
        if allowed is not None and kept
        else format_time_seconds(now),
        "reason": reason,
        "message": message,
    }
    if allowed is None:
        return [*without([dict(each) for each in conditions], ALLOWED), new]
    return [new if each is allowed else dict(each) for each in conditions]


_MARK: Final = DISRUPTION.encode()


def stale_after(pod: Object, now: int) -> int | None:
    """Return the microseconds until a pod's condition DisruptionTarget is outdated.

    The result is None if the pod does not have the condition.
    """
    if pod.is_terminating or not pod.mentions(_MARK):
        return None  # Nearly all pods return here, so they are not decoded.
    disruption_condition = pod.view(DisruptedPod).disruption
    if disruption_condition is None:
        return None
    since = parse_time(disruption_condition.last_transition_time) if disruption_condition.last_transition_time else 0
    return max(since + PATIENCE - now, 0)
