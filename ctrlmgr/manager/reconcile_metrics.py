"""controller-runtime's metrics `controller_runtime_*`: the number, results and durations of reconciles.

Guarantees: names, labels and buckets of the metrics are those of `pkg/internal/controller/metrics`. When a controller
starts, all its series exist with the value 0. A counter never decreases, even after workers have ended. Counting a
reconcile takes only a few additions, because the metric families are built at a scrape.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ctrlmgr.metrics import REGISTRY, at_or_below

# fmt: off
_BUCKETS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on
_RESULTS: Final = {"success": ("ok",), "requeue_after": ("requeued",), "error": ("error", "terminal")}
"""controller-runtime's names for the values of `Outcome.result`."""


class Reconciles:
    """Counts the reconciles of all controllers with one name. Any thread may count reconciles."""

    def __init__(self) -> None:
        """Create counters with the value 0."""
        self.lock = threading.Lock()
        # The lock guards all attributes that follow.
        self.workers = 0
        """The maximum number of concurrent reconciles."""
        self.active = 0
        """The number of running reconciles."""
        self.panics = 0
        """The number of reconciles that raised an error other than `CtrlmgrError`."""
        self.results = {result: 0 for results in _RESULTS.values() for result in results}
        # `counts[i]` is the number of values in bucket i alone; the last bucket counts values above all bounds.
        self.counts = [0] * (len(_BUCKETS) + 1)
        self.seconds = 0.0

    def enter(self) -> None:
        """Count a worker that begins a reconcile."""
        with self.lock:
            self.active += 1

    def leave(self) -> None:
        """Count a worker that has ended a reconcile."""
        with self.lock:
            self.active -= 1

    def ended(self, result: str, seconds: float) -> None:
        """Count an ended reconcile with the `result` of an `Outcome` and its duration."""
        with self.lock:
            self.results[result] += 1
            self.counts[bisect_left(_BUCKETS, seconds)] += 1
            self.seconds += seconds

    def panicked(self) -> None:
        """Count an error other than `CtrlmgrError` as a panic; `ended` counts the same error as an error."""
        with self.lock:
            self.panics += 1


class _Controllers(Collector):
    """The reconcile metrics of all controllers, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by `_lock`, because scrapes iterate over this dictionary.
        self._reconciles: dict[str, Reconciles] = {}

    def of(self, name: str) -> Reconciles:
        with self._lock:
            return self._reconciles.setdefault(name, Reconciles())

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            controllers = sorted(self._reconciles.items())
        prefix, of, by = "controller_runtime", "per controller", ["controller"]
        ended = CounterMetricFamily(
            f"{prefix}_reconcile", f"Total number of reconciliations {of}", labels=[*by, "result"]
        )
        errors = CounterMetricFamily(
            f"{prefix}_reconcile_errors", f"Total number of reconciliation errors {of}", labels=by
        )
        terminal = CounterMetricFamily(
            f"{prefix}_terminal_reconcile_errors", f"Total number of terminal reconciliation errors {of}", labels=by
        )
        panics = CounterMetricFamily(
            f"{prefix}_reconcile_panics", f"Total number of reconciliation panics {of}", labels=by
        )
        seconds = HistogramMetricFamily(
            f"{prefix}_reconcile_time_seconds", f"Length of time per reconciliation {of}", labels=by
        )
        workers = GaugeMetricFamily(
            f"{prefix}_max_concurrent_reconciles", f"Maximum number of concurrent reconciles {of}", labels=by
        )
        active = GaugeMetricFamily(f"{prefix}_active_workers", f"Number of currently used workers {of}", labels=by)
        for name, counted in controllers:
            with counted.lock:
                results = counted.results
                for called, ours in _RESULTS.items():
                    ended.add_metric([name, called], sum(results[each] for each in ours))
                errors.add_metric([name], results["error"] + results["terminal"])
                terminal.add_metric([name], results["terminal"])
                panics.add_metric([name], counted.panics)
                seconds.add_metric([name], at_or_below(_BUCKETS, counted.counts), counted.seconds)
                workers.add_metric([name], counted.workers)
                active.add_metric([name], counted.active)
        return ended, errors, terminal, panics, seconds, workers, active


_controllers = _Controllers()
REGISTRY.register(_controllers)


def reconciles(controller: str, *, workers: int) -> Reconciles:
    """Return the metrics of a controller that has at most `workers` concurrent reconciles."""
    counted = _controllers.of(controller)
    with counted.lock:
        counted.workers = workers
    return counted
