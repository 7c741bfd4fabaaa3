"""Computes the number of replicas that a metric proposes.

The proposed number is the current number times the ratio of the metric to its target, rounded up. If the ratio is
within a tolerance of 1, the number of replicas does not change. To compute the number of replicas, pods count as
follows:
- Terminating and failed pods, and their metrics, are left out.
- Pods that are not ready count with zero usage in scaling up, and are left out in scaling down. For CPU metrics, pods
  in their first minutes and pods that were never ready also count as not ready.
- Pods without metrics count with zero usage in scaling up. In scaling down, pods without metrics count with their whole
  request, or with the target if the target is higher.
- If the corrections for missing and unready pods would reverse the direction of the scaling, the number of replicas
  does not change.

Source: Kubernetes' `pkg/controller/podautoscaler/replica_calculator.go` and `metrics/utilization.go`. Amounts are in
thousandths of a unit, times and windows in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod, requests_of
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError, PodMetric, PodMetrics

CPU: Final = "cpu"
_LARGEST_32: Final = 2**31 - 1
_LARGEST_64: Final = 2**63 - 1
_NO_PODS: Final = "no pods returned by selector while calculating replica count"


class Tolerances(NamedTuple):
    """The tolerances: if a metric's relative distance from its target is smaller, replicas do not change."""

    down: float = 0.1
    up: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Return whether a ratio of usage to target is so close to 1 that the number of replicas must not change."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Readiness(NamedTuple):
    """The times after a pod's start during which its CPU does not count, in microseconds.

    One time is for unready pods, and one is for pods that were never ready.
    """

    cpu_initialization_period: int = 300_000_000
    initial_readiness_delay: int = 30_000_000


class GroupedPods(NamedTuple):
    """The names of pods, grouped by how the pods count."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


class Proposal(NamedTuple):
    """The number of replicas that a metric proposes, and the metric's current value.

    The value is given as an amount and in percent of the requests.
    """

    replicas: int
    usage: int
    utilization: int | None = None


class MetricInput(NamedTuple):
    """The input for the evaluation of metrics: the current number of replicas, their pods, and the time."""

    current: int
    pods: Sequence[MeasuredPod]
    now: int
    tolerances: Tolerances = Tolerances()
    readiness: Readiness = Readiness()


def group(situation: MetricInput, metrics: PodMetrics, resource: str) -> GroupedPods:
    """Group the names of pods by how the pods count in the computation."""
    ready = 0
    unready, missing, ignored = set[str](), set[str](), set[str]()
    for pod in situation.pods:
        if pod.is_deleted or pod.phase == "Failed":
            ignored.add(pod.name)
        elif pod.phase == "Pending":
            unready.add(pod.name)
        elif pod.name not in metrics:
            missing.add(pod.name)
        elif resource == CPU and _is_starting(pod, metrics[pod.name], situation.readiness, situation.now):
            unready.add(pod.name)
        else:
            ready += 1
    return GroupedPods(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_starting(pod: MeasuredPod, metric: PodMetric, readiness: Readiness, now: int) -> bool:
    if pod.ready is None or pod.started_at is None:
        return True
    is_unready, changed_at = pod.ready.status == "False", pod.ready_changed_at
    if pod.started_at + readiness.cpu_initialization_period > now:
        # The pod is unready, or it became ready so recently that no whole measurement window has passed.
        return is_unready or metric.at < changed_at + metric.window
    return is_unready and pod.started_at + readiness.initial_readiness_delay > changed_at


def by_utilization(
    situation: MetricInput, target: int, metrics: PodMetrics, resource: str, container: str = ""
) -> Proposal:
    """Return the proposal that results from the usage in percent of the requests.

    The argument `target` is the target percentage.

    If `container` is given, only the container of that name in each pod counts. Raises `MetricsError`.
    """
    _check_pods(situation)
    grouped = group(situation, metrics, resource)
    counted = _counted(metrics, grouped)
    requests = requests_of(situation.pods, resource, container)
    ratio, utilization, average = _utilization(counted, requests, target)
    if ratio < 1.0:
        fallback = max(100, target)
        filled = {name: requests[name] * fallback // 100 for name in grouped.missing}
    else:
        filled = dict.fromkeys(grouped.missing, 0)
    rebalanced = _rebalanced(counted, grouped, ratio, filled)
    if rebalanced is None:
        return Proposal(_plain(situation, ratio, grouped.ready), average, utilization)
    again, _, _ = _utilization(rebalanced, requests, target)
    return Proposal(_corrected(situation, ratio, again, len(rebalanced)), average, utilization)


def by_average(situation: MetricInput, target: int, metrics: PodMetrics, resource: str = "") -> Proposal:
    """Return the proposal that results from an average amount per pod; `target` is the target amount.

    Raises `MetricsError`.
    """
    _check_pods(situation)
    grouped = group(situation, metrics, resource)
    counted = _counted(metrics, grouped)
    ratio, average = _average(counted, target)
    filled = dict.fromkeys(grouped.missing, target if ratio < 1.0 else 0)
    rebalanced = _rebalanced(counted, grouped, ratio, filled)
    if rebalanced is None:
        return Proposal(_plain(situation, ratio, grouped.ready), average)
    again, _ = _average(rebalanced, target)
    return Proposal(_corrected(situation, ratio, again, len(rebalanced)), average)


def _check_pods(situation: MetricInput) -> None:
    if not situation.pods:
        raise MetricsError(_NO_PODS)


def _counted(metrics: PodMetrics, grouped: GroupedPods) -> dict[str, int]:
    left_out = grouped.ignored | grouped.unready
    counted = {name: metric.value for name, metric in metrics.items() if name not in left_out}
    if not counted:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    return counted


def _rebalanced(
    counted: Mapping[str, int], grouped: GroupedPods, ratio: float, filled: Mapping[str, int]
) -> dict[str, int] | None:
    """Return the usages, including assumed usages for pods whose measured usage does not count.

    Return None if no usage has to be assumed.
    """
    counts_unready = bool(grouped.unready) and ratio > 1.0
    if not grouped.missing and not counts_unready:
        return None
    guessed = filled if ratio != 1.0 else {}
    return {**counted, **guessed, **(dict.fromkeys(grouped.unready, 0) if counts_unready else {})}


def _utilization(used: Mapping[str, int], requests: Mapping[str, int], target: int) -> tuple[float, int, int]:
    """Return the ratio of the utilization to its target, the utilization in percent, and the average usage."""
    known = [name for name in used if name in requests]
    requested = sum(requests[name] for name in known)
    if not requested:
        raise MetricsError("no metrics returned matched known pods")
    total = sum(used[name] for name in known)
    utilization = total * 100 // requested
    return utilization / target, utilization, total // len(known)


def _average(used: Mapping[str, int], target: int) -> tuple[float, int]:
    average = sum(used.values()) // len(used)
    return _ratio(average, target), average


def _ratio(amount: float, target: float) -> float:
    """Divide like Go: a division by a target of zero is not an error."""
    if target:
        return amount / target
    return math.inf if amount > 0 else math.nan


def _plain(situation: MetricInput, ratio: float, ready: int) -> int:
    return situation.current if situation.tolerances.covers(ratio) else _whole(ratio * ready)


def _corrected(situation: MetricInput, ratio: float, again: float, pods: int) -> int:
    """Return the proposal after the assumed usages are included.

    If the proposal is within the tolerance or reverses the direction of the scaling, return the current number.
    """
    current = situation.current
    if situation.tolerances.covers(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return current
    desired = _whole(again * pods)
    if (again < 1.0 and desired > current) or (again > 1.0 and desired < current):
        return current
    return desired


def _whole(number: float) -> int:
    return _LARGEST_32 if number != number or number > _LARGEST_32 else math.ceil(number)


def by_total(situation: MetricInput, usage: int, target: int) -> Proposal:
    """Return the proposal that results from one amount for all pods together.

    Raises `MetricsError` if the pods cannot be counted. If there are no replicas now, the proposed number of replicas
    is the ratio of the amount to its target.
    """
    ratio = _ratio(usage, target)
    if not situation.current:
        return Proposal(_whole(ratio), usage)
    if situation.tolerances.covers(ratio):
        return Proposal(situation.current, usage)
    if not situation.pods:
        raise MetricsError(f"unable to calculate ready pods: {_NO_PODS}")
    return Proposal(_whole(ratio * sum(pod.is_ready for pod in situation.pods)), usage)


def by_total_per_pod(current: int, usage: int, target: int, tolerances: Tolerances) -> Proposal:
    """Return the proposal that results from one amount for all `current` pods, with a `target` amount per pod."""
    ratio = _ratio(usage, target * current)
    replicas = current if tolerances.covers(ratio) else _whole(_ratio(usage, target))
    if usage >= _LARGEST_64:
        return Proposal(replicas, _LARGEST_64)
    share = math.ceil(usage / current) if current else _LARGEST_64
    return Proposal(replicas, share)


def total_of(values: Iterable[int]) -> int:
    """Return the sum of the values of an external metric, limited to the largest int64."""
    return min(sum(values), _LARGEST_64)
