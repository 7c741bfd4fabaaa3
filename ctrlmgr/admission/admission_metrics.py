"""Admission metrics by plugin and step: kube-apiserver's `apiserver_admission_*_duration_seconds`.

Guarantees: every call of a plugin is counted, including the time for which the plugin waited. Nearly all steps accept a
write quickly. If a step accepts a write quickly, the recorder only appends the timestamps to a list, and sums the
durations of many steps later.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import add, sub
from typing import Final, NamedTuple, TypeAlias
from weakref import WeakSet

from prometheus_client.core import HistogramMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from ctrlmgr.metrics import REGISTRY, at_or_below

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_QUICK: Final = _BUCKETS[0]
_SUMMED: Final = 256
"""The number of recorded steps that are summed in one batch.

Summing a batch is faster than adding each step separately.
"""

_Series: TypeAlias = tuple[str, str, str, bool]
"""The labels of a series: the plugin's name ("" for a whole step), `admit` or `validate`, the operation, and whether
the write was refused.
"""
_Observed: TypeAlias = list[float]
"""The total duration in seconds, followed by the number of observations in each bucket; the last bucket has no upper
bound.
"""


class _FastSteps(NamedTuple):
    """The metrics of the steps that accepted a write within `_QUICK` seconds.

    The metrics are stored in one value, so that a scrape reads a consistent state.
    """

    steps: int
    seconds: Sequence[float]
    """The total seconds of each plugin, over all recorded steps."""
    ended: list[Sequence[float]]
    """The timestamps of steps that are not yet added to the totals."""

    def summed(self) -> _FastSteps:
        """Return the totals with all recorded steps added."""
        ended = list(self.ended)
        if not ended:
            return self
        moments = [sum(each) for each in zip(*ended, strict=True)]
        took = map(sub, moments[1:], moments)
        return _FastSteps(self.steps + len(ended), list(map(add, self.seconds, took)), [])


class StepTimes:
    """The durations of one step and its plugins; one thread records them, and scrapes read them."""

    def __init__(self, type_: str, operation: str, plugins: Sequence[str]) -> None:
        """Measure `plugins`, which are called in this order; the type of the step is `admit` or `validate`."""
        self._type, self._operation = type_, operation
        self._names = (*plugins, "")
        self._quick = _FastSteps(0, [0.0] * len(plugins), [])
        self._others: dict[_Series, _Observed] = {}
        _admissions.watch(self)

    def count_accepted(self, ends: Sequence[float]) -> None:
        """Count a write that all plugins accepted.

        `ends` contains the time at which the step started, followed by the time at which each plugin ended, in seconds.
        """
        if ends[-1] - ends[0] < _QUICK:
            ended = self._quick.ended
            ended.append(ends)
            if len(ended) >= _SUMMED:
                self._quick = self._quick.summed()
        else:
            self._observe(ends, refused_by=None)

    def refused(self, ends: Sequence[float]) -> None:
        """Count a write that the last plugin of the call refused."""
        self._observe(ends, refused_by=len(ends) - 2)

    def _observe(self, ends: Sequence[float], *, refused_by: int | None) -> None:
        for index, seconds in enumerate(map(sub, ends[1:], ends)):
            self._add(self._names[index], seconds, rejected=index == refused_by)
        self._add("", ends[-1] - ends[0], rejected=refused_by is not None)

    def _add(self, name: str, seconds: float, *, rejected: bool) -> None:
        series = (name, self._type, self._operation, rejected)
        observed = self._others.setdefault(series, [0.0] * (len(_BUCKETS) + 2))
        observed[0] += seconds
        observed[1 + bisect_left(_BUCKETS, seconds)] += 1

    def observed(self) -> Iterator[tuple[_Series, _Observed]]:
        """Yield each series with a count; the same series may be yielded several times."""
        steps, seconds, _ = self._quick.summed()
        if steps:
            for name, total in zip(self._names, (*seconds, sum(seconds)), strict=True):
                yield (name, self._type, self._operation, False), [total, steps, *[0] * len(_BUCKETS)]
        yield from list(self._others.items())


class _Admissions(Collector):
    """Exports the durations of all admission steps when Prometheus scrapes the metrics."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: WeakSet[StepTimes] = WeakSet()  # guarded by _lock, because scrapes iterate over it

    def watch(self, times: StepTimes) -> None:
        with self._lock:
            self._times.add(times)

    def collect(self) -> Iterable[Metric]:
        labels = ["type", "operation", "rejected"]
        prefix, help_text = "apiserver_admission", "Admission latency in seconds, broken out for each operation"
        plugins = HistogramMetricFamily(
            f"{prefix}_controller_admission_duration_seconds", help_text, labels=["name", *labels]
        )
        steps = HistogramMetricFamily(f"{prefix}_step_admission_duration_seconds", help_text, labels=labels)
        summary = SummaryMetricFamily(f"{steps.name}_summary", help_text, labels=labels)
        for (name, type_, operation, rejected), (total, *counts) in sorted(self._sums().items()):
            values = [type_, operation, str(rejected).lower()]
            buckets = at_or_below(_BUCKETS, [int(count) for count in counts])
            if name:
                plugins.add_metric([name, *values], buckets, total)
            else:
                steps.add_metric(values, buckets, total)
                summary.add_metric(values, int(sum(counts)), total)
        return plugins, steps, summary

    def _sums(self) -> dict[_Series, _Observed]:
        with self._lock:
            times = list(self._times)
        sums: dict[_Series, _Observed] = defaultdict(lambda: [0.0] * (len(_BUCKETS) + 2))
        for each in times:
            for series, observed in each.observed():
                sums[series] = list(map(add, sums[series], observed))
        return sums


_admissions = _Admissions()
REGISTRY.register(_admissions)
