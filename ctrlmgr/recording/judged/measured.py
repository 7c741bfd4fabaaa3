"""What an autoscaler's status tells of its measurements, as the metrics that it must have been given.

A status has averages and totals, not what each pod used. For what is decided from them that is enough, as long as it is
known which pods were measured; see `Guess`. Guarantees: pods are given amounts of which the controller computes the
very average and percentage that the status has, or there are none (`Impossible`); what the status does not tell of is
`NotTold`. Nothing is read of a status but `currentMetrics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics import MetricsError, PodMetric, PodMetrics, milli
from ctrlmgr.controllers.horizontal_pod_autoscaler.pods import MeasuredPod, requests_of
from ctrlmgr.controllers.horizontal_pod_autoscaler.replicas import Readiness, Situation, group
from ctrlmgr.engine.selectors.labels import LabelSelector

_RUNNING: Final = "Running"


class NotTold(Exception):
    """A status does not tell of a measurement."""


class Impossible(Exception):
    """A guess does not fit what a status tells."""


class Guess(NamedTuple):
    """What no status tells: of which pods nothing was measured, and of which only before they were ready."""

    missing: frozenset[str] = frozenset()
    starting: frozenset[str] = frozenset()
    takes_most: bool = True
    """A share of a total is rounded up: whether the total is the greatest that it can be the share of, or the least."""


class Told:
    """A `MetricsClient` that answers as the recorded one must have been answered, if a guess is right."""

    def __init__(
        self,
        statuses: Sequence[Mapping[str, Any]],
        pods: Sequence[MeasuredPod],
        now: int,
        *,
        readiness: Readiness,
        replicas: int,
        guess: Guess,
    ) -> None:
        """Answer by an autoscaler's `currentMetrics`, of its `pods` at `now`; its target says it has `replicas`."""
        self._statuses = statuses
        self._pods = [pod for pod in pods if pod.phase == _RUNNING and pod.name not in guess.missing]
        self._situation = Situation(0, pods, now, readiness=readiness)
        self._replicas = replicas
        self._guess = guess

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Return what pods must have used of a resource."""
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
            return metrics  # it was in the controller's way, too
        grouped = group(self._situation, metrics, resource)
        counted = sorted(metrics.keys() - grouped.ignored - grouped.unready)
        rest = _rest(len(counted), _average(current), sum(requests[name] for name in counted), percent)
        if counted and rest:
            first = metrics[counted[0]]
            metrics[counted[0]] = first._replace(value=first.value + rest)
        return metrics

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        """Return what a custom metric of pods must have been."""
        return self._shared(self._current("pods", metric=name))

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        """Return what a custom metric of an object must have been."""
        return self._total(self._current("object", metric=name))

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        """Return what an external metric must have been in all."""
        return [self._total(self._current("external", metric=name))]

    def _current(self, source: str, *, metric: str = "", **names: str) -> Mapping[str, Any]:
        for each in self._statuses:
            found = each.get(source) or {}
            is_it = not metric or (found.get("metric") or {}).get("name") == metric
            if found and is_it and all(found.get(field) == name for field, name in names.items()):
                current: Mapping[str, Any] = found.get("current") or {}
                return current
        raise NotTold

    def _shared(self, current: Mapping[str, Any]) -> PodMetrics:
        """Have every pod that was measured use the average."""
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
        raise NotTold
    return milli(current["averageValue"])


def _rest(pods: int, average: int, requested: int, percent: int) -> int:
    """Return what some pods use beyond `average` each, so that it is `percent` of what they request.

    Both were rounded down: the one after a division by the number of pods, the other after one by what is requested.
    """
    if not pods or not requested:
        return 0
    used = average * pods
    least = -(-percent * requested // 100)  # what makes this percentage
    rest = max(0, least - used)
    if rest >= pods or (used + rest) * 100 // requested != percent:
        raise Impossible
    return rest
