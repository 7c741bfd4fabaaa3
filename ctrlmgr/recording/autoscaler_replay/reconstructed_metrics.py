"""Reconstructs the metrics that an autoscaler must have read from its recorded status.

A status contains averages and totals of the metrics, not the resource usage of each pod. Averages and totals are
sufficient for the decision if the pods with metrics are known (see `AssumedValues`). Guarantees: the reconstructed
amounts of the pods have exactly the average and the percentage in the status. If no amounts have both, `Impossible` is
raised. If the status does not contain a metric, `MetricMissing` is raised. The module reads only the field
`currentMetrics` of a status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod, requests_of
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError, PodMetric, PodMetrics, milli
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import MetricInput, Readiness, group
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector

_RUNNING: Final = "Running"


class MetricMissing(Exception):
    """Raised if a status does not contain a metric of the autoscaler's spec."""


class Impossible(Exception):
    """Raised if an assumption contradicts a status."""


class AssumedValues(NamedTuple):
    """Assumptions about values that a status does not contain.

    `missing` contains the pods without metrics. `starting` contains the pods that were measured only before they were
    ready.
    """

    missing: frozenset[str] = frozenset()
    starting: frozenset[str] = frozenset()
    takes_most: bool = True
    """Whether to assume the largest total with the recorded average, which is rounded up; otherwise the smallest total.
    """


class ReconstructedMetrics:
    """A `MetricsClient` that returns the metrics that the recorded autoscaler must have read, under assumptions."""

    def __init__(
        self,
        statuses: Sequence[Mapping[str, Any]],
        pods: Sequence[MeasuredPod],
        now: int,
        *,
        readiness: Readiness,
        replicas: int,
        guess: AssumedValues,
    ) -> None:
        """Create a client from the `currentMetrics` in `statuses`, for `pods` at `now`.

        `replicas` is the number of replicas in the target's status.
        """
        self._statuses = statuses
        self._pods = [pod for pod in pods if pod.phase == _RUNNING and pod.name not in guess.missing]
        self._situation = MetricInput(0, pods, now, readiness=readiness)
        self._replicas = replicas
        self._guess = guess

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Return the reconstructed usage of a resource by each pod."""
        if container:
            current = self._current("containerResource", name=resource, container=container)
        else:
            current = self._current("resource", name=resource)
        metrics = self._shared(current)
        percent = current.get("averageUtilization")
        if percent is None:
            return metrics
        try:
            requests = requests_of(self._situation.pods, resource, container)
        except MetricsError:
            return metrics  # the recorded controller had the same error
        grouped = group(self._situation, metrics, resource)
        counted = sorted(metrics.keys() - grouped.ignored - grouped.unready)
        rest = _rest(len(counted), _average(current), sum(requests[name] for name in counted), percent)
        if counted and rest:
            first = metrics[counted[0]]
            metrics[counted[0]] = first._replace(value=first.value + rest)
        return metrics

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        """Return a reconstructed custom metric of pods."""
        return self._shared(self._current("pods", metric=name))

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        """Return a reconstructed custom metric of an object."""
        return self._total(self._current("object", metric=name))

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        """Return the reconstructed total of an external metric."""
        return [self._total(self._current("external", metric=name))]

    def _current(self, source: str, *, metric: str = "", **names: str) -> Mapping[str, Any]:
        for each in self._statuses:
            found = each.get(source) or {}
            is_it = not metric or (found.get("metric") or {}).get("name") == metric
            if found and is_it and all(found.get(field) == name for field, name in names.items()):
                current: Mapping[str, Any] = found.get("current") or {}
                return current
        raise MetricMissing

    def _shared(self, current: Mapping[str, Any]) -> PodMetrics:
        """Return the average as the value of every pod with metrics."""
        average, now = _average(current), self._situation.now
        starting = self._guess.starting
        return {pod.name: PodMetric(average, 0 if pod.name in starting else now) for pod in self._pods}

    def _total(self, current: Mapping[str, Any]) -> int:
        if "value" in current:
            return milli(current["value"])
        share = _average(current)
        return share * self._replicas if self._guess.takes_most else max(0, (share - 1) * self._replicas + 1)


def _average(current: Mapping[str, Any]) -> int:
    if "averageValue" not in current:
        raise MetricMissing
    return milli(current["averageValue"])


def _rest(pods: int, average: int, requested: int, percent: int) -> int:
    """Return the usage to add to `average` for each pod, so that the total is `percent` of the pods' requests.

    `average` and `percent` are rounded down, after divisions by the number of pods and by the requests.
    """
    if not pods or not requested:
        return 0
    used = average * pods
    least = -(-percent * requested // 100)  # the minimum total for this percentage
    rest = max(0, least - used)
    if rest >= pods or (used + rest) * 100 // requested != percent:
        raise Impossible
    return rest
