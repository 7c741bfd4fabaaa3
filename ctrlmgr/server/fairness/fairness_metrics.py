"""Reports the metrics of priority and fairness under kube-apiserver's names.

The metrics of priority and fairness are computed when Prometheus scrapes them.

Source: apiserver `pkg/util/flowcontrol/metrics/metrics.go`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.fairness.level_state import Level, LevelStates
from ctrlmgr.server.fairness.queue_settings import SCALE
from ctrlmgr.server.fairness.seat_counts import Histogram, SchemaCounts

_PREFIX: Final = "apiserver_flowcontrol_"
_LEVEL: Final = ("priority_level",)
_SCHEMA: Final = ("priority_level", "flow_schema")


class _Present:
    """The requests of a FlowSchema that are waiting or running now."""

    def __init__(self) -> None:
        self.waiting = self.seats_waiting = self.running = self.seats = 0


_OF_LEVELS: Final[Sequence[tuple[str, str, Callable[[Level], float]]]] = (
    ("current_r", "R(time of last change)", lambda level: level.queues.progress / SCALE),
    ("latest_s", "S(most recently dispatched request)", lambda level: level.queues.dispatched_start / SCALE),
    ("nominal_limit_seats", "Nominal number of execution seats configured", lambda level: level.nominal),
    ("request_concurrency_limit", "Nominal number of execution seats configured", lambda level: level.nominal),
    ("lower_limit_seats", "Configured lower bound on number of execution seats", lambda level: level.minimum),
    ("upper_limit_seats", "Configured upper bound on number of execution seats", lambda level: level.maximum),
    ("current_limit_seats", "Current derived number of execution seats available", lambda level: level.current),
    ("demand_seats_high_watermark", "High watermark of demand_seats in the last period", lambda level: level.peak),
    ("demand_seats_average", "Average of demand_seats in the last period", lambda level: level.average),
    ("demand_seats_stdev", "Standard deviation of demand_seats in the last period", lambda level: level.deviation),
    ("demand_seats_smoothed", "Smoothed seat demands", lambda level: level.smoothed),
    ("target_seats", "Seat allocation targets", lambda level: level.target),
)
_OF_SCHEMAS: Final[Sequence[tuple[str, str, Callable[[_Present], float]]]] = (
    ("current_inqueue_requests", "Number of requests currently pending in queues", lambda each: each.waiting),
    ("current_inqueue_seats", "Number of seats currently pending in queues", lambda each: each.seats_waiting),
    ("current_executing_requests", "Number of requests being executed", lambda each: each.running),
    ("current_executing_seats", "Number of seats occupied by requests", lambda each: each.seats),
    ("request_concurrency_in_use", "Number of seats occupied by requests", lambda each: each.seats),
)


class FairnessMetrics:
    """A collector of the metrics of priority and fairness for the metrics registry.

    The collector runs on the thread that handles the scrape.
    """

    def __init__(self) -> None:
        """Create a collector that reports no metrics until `levels` is set."""
        self.levels: LevelStates | None = None
        """The state of the priority levels to report."""

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of priority and fairness."""
        if self.levels is not None:
            yield from _collected(self.levels)


def _collected(states: LevelStates) -> Iterator[Metric]:
    levels, counts = states.present, states.counts
    present = _present(levels)
    for name, text, read in _OF_LEVELS:
        gauge = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=_LEVEL)
        for level in levels:
            gauge.add_metric([level.name], read(level))
        yield gauge
    yield from _bounds(levels)
    yield GaugeMetricFamily(
        f"{_PREFIX}seat_fair_frac", "Fair fraction of the server's concurrency", value=states.fair_fraction
    )
    for name, text, count in _OF_SCHEMAS:
        gauge = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=_SCHEMA)
        for each in counts:
            gauge.add_metric([each.level, each.schema], count(present[each.level, each.schema]))
        yield gauge
    yield from _totals(counts)
    yield from _histograms(counts)


FAIRNESS: Final = FairnessMetrics()
"""The metrics of priority and fairness of this process."""

REGISTRY.register(FAIRNESS)


def _present(levels: Iterable[Level]) -> Mapping[tuple[str, str], _Present]:
    found: dict[tuple[str, str], _Present] = defaultdict(_Present)
    for level in levels:
        for ticket in level.queues.tickets():
            each, seats = found[level.name, ticket.flow.schema.name], ticket.width.seats
            if ticket.is_running:
                each.running += 1
                each.seats += seats
            else:
                each.waiting += 1
                each.seats_waiting += seats
    return found


def _bounds(levels: Iterable[Level]) -> Iterator[Metric]:
    """Yield the least and the greatest `next_start` of the queues in which requests wait."""
    plain = GaugeMetricFamily(
        f"{_PREFIX}next_s_bounds", "min and max, over queues, of S(oldest waiting request)", labels=(*_LEVEL, "bound")
    )
    discounted = GaugeMetricFamily(
        f"{_PREFIX}next_discounted_s_bounds",
        "min and max, over queues, of S(oldest waiting request) - estimated work in progress",
        labels=(*_LEVEL, "bound"),
    )
    for level in levels:
        starts = level.queues.next_starts()
        for index, family in enumerate((plain, discounted)):
            for bound, choose in (("min", min), ("max", max)):
                family.add_metric([level.name, bound], choose((each[index] for each in starts), default=0) / SCALE)
    yield plain
    yield discounted


def _totals(counts: Iterable[SchemaCounts]) -> Iterator[Metric]:
    dispatched = CounterMetricFamily(f"{_PREFIX}dispatched_requests", "Number of requests executed", labels=_SCHEMA)
    rejected = CounterMetricFamily(
        f"{_PREFIX}rejected_requests", "Number of requests rejected", labels=(*_SCHEMA, "reason")
    )
    unaccommodated = CounterMetricFamily(
        f"{_PREFIX}request_dispatch_no_accommodation",
        "Number of times a dispatch attempt failed for lack of available seats",
        labels=_SCHEMA,
    )
    for each in counts:
        labels = [each.level, each.schema]
        dispatched.add_metric(labels, each.dispatched)
        for reason, count in each.rejected.items():
            rejected.add_metric([*labels, reason], count)
        if each.unaccommodated:
            unaccommodated.add_metric(labels, each.unaccommodated)
    yield from (dispatched, rejected, unaccommodated)


def _histograms(counts: Sequence[SchemaCounts]) -> Iterator[Metric]:
    """Yield the histograms; add the observations that all histograms have in common."""
    lengths = _family("request_queue_length_after_enqueue", "Length of queue as seen by each request", _SCHEMA)
    widths = _family("work_estimated_seats", "Number of estimated seats of requests", _SCHEMA)
    watchers = _family("watch_count_samples", "count of watchers for mutating requests", _SCHEMA)
    waits = _family("request_wait_duration_seconds", "Length of time a request spent waiting", (*_SCHEMA, "execute"))
    durations = _family("request_execution_seconds", "Duration of request execution", (*_SCHEMA, "type"))
    for each in counts:
        labels = [each.level, each.schema]
        waited = sum(each.lengths.buckets)
        direct = max(each.dispatched - waited, 0) if each.is_queued else 0
        arrived = each.dispatched + sum(each.rejected.values())
        _add(lengths, labels, each.lengths, 1.0, direct)
        _add(widths, labels, each.widths, 1.0, max(arrived - sum(each.widths.buckets), 0))
        _add(watchers, labels, each.watchers, 0.0, each.unwatched)
        for executed, waits_of in each.waits.items():
            _add(waits, [*labels, executed], waits_of, 0.0, direct if executed == "true" else 0)
        for type_, took in each.durations.items():
            _add(durations, [*labels, type_], took, 0.0, 0)
    yield from (lengths, widths, watchers, waits, durations)


def _family(name: str, text: str, labels: Sequence[str]) -> HistogramMetricFamily:
    return HistogramMetricFamily(f"{_PREFIX}{name}", text, labels=labels)


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram, value: float, more: int) -> None:
    """Add a histogram with `more` observations of `value`; an empty histogram is not added."""
    whole = Histogram(histogram.bounds)
    whole.buckets, whole.total = list(histogram.buckets), histogram.total
    whole.note(value, more)
    if not any(whole.buckets):
        return
    found, buckets = 0, []
    for bound, count in zip([*map(str, whole.bounds), "+Inf"], whole.buckets, strict=True):
        found += count
        buckets.append((bound, found))
    family.add_metric(labels, buckets, whole.total)
