"""The metrics that ctrlmgr exports.

Other metrics are declared in the modules that count them: `admission.admission_metrics`,
`controllers.workloads.workload_metrics`, `informer.quarantine`, `manager.reconcile_metrics`.

Guarantees:
- Names, labels and buckets of the metrics are those of client-go (`util/workqueue/metrics.go`, `component-base` for the
  registration) and kube-apiserver (`apiserver/pkg/endpoints/metrics`), so existing dashboards work. The depth of a
  queue has the additional label `priority`, as in controller-runtime; `sum by (name)` is client-go's value.
- A queue counts its metrics with plain arithmetic under its own lock. The metric families are built when Prometheus
  scrapes them. No timer is needed, because the duration of unfinished work is computed at the scrape.
- When a queue is no longer used, the metrics of the queue disappear from scrapes. The metrics of queues with the same
  name are added up.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, Protocol
from weakref import WeakSet

from prometheus_client import REGISTRY, Counter, Gauge, Histogram
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

__all__ = [
    "CLUSTER_IP_REPAIR",
    "DEVICE_TAINT_EVICTIONS",
    "NODE_PORT_REPAIR",
    "REGISTRY",
    "TURNS",
    "Durations",
    "MeasuredQueue",
    "PodDeletionMetrics",
    "QueueReading",
    "RepairMetrics",
    "RequestMetrics",
    "WatchMetrics",
    "in_flight",
    "leader_election_status",
    "queue_readings",
    "watch_queue",
]

_QUEUE_BUCKETS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""The upper bounds of buckets in seconds: client-go's ExponentialBuckets(10e-9, 10, 10)."""

# fmt: off
_REQUEST_BUCKETS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)
# fmt: on


class Durations:
    """A histogram of durations in seconds, without a lock; the histogram's owner calls `observe` under its own lock."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        """Create a histogram without values."""
        # `counts[i]` is the number of values in bucket i alone; the last bucket counts values above all bounds.
        self.counts = [0] * (len(_QUEUE_BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Add one duration to the histogram."""
        self.counts[bisect_left(_QUEUE_BUCKETS, seconds)] += 1
        self.total += seconds

    def add(self, other: Durations) -> None:
        """Add the counts of the histogram `other`."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def copy(self) -> Durations:
        """Return a copy of the counts."""
        copied = Durations()
        copied.add(self)
        return copied


@dataclass(slots=True)
class QueueReading:
    """The metrics of a queue: waiting items, adds and retries, durations, and seconds of each item in progress."""

    depths: dict[int, int] = field(default_factory=dict)
    """The number of waiting items by priority."""
    adds: int = 0
    retries: int = 0
    queued: Durations = field(default_factory=Durations)
    worked: Durations = field(default_factory=Durations)
    running: Sequence[float] = ()

    @property
    def depth(self) -> int:
        """The number of waiting items."""
        return sum(self.depths.values())

    def add(self, other: QueueReading) -> None:
        """Add the metrics of another queue to these metrics."""
        for priority, depth in other.depths.items():
            self.depths[priority] = self.depths.get(priority, 0) + depth
        self.adds += other.adds
        self.retries += other.retries
        self.queued.add(other.queued)
        self.worked.add(other.worked)
        self.running = [*self.running, *other.running]


class MeasuredQueue(Protocol):
    """The interface of a queue with metrics."""

    name: str

    def measure(self) -> QueueReading:
        """Return the current metrics of the queue; the caller may change the result."""


class _WorkQueues(Collector):
    """client-go's metrics `workqueue_*`, read from the queues in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # All queues in use. Guarded by `_lock`, because a scrape iterates over this set while queues are created.
        self._queues: WeakSet[MeasuredQueue] = WeakSet()

    def watch(self, queue: MeasuredQueue) -> None:
        with self._lock:
            self._queues.add(queue)

    def collect(self) -> Iterable[Metric]:
        return _queue_families(self.read())

    def read(self) -> dict[str, QueueReading]:
        with self._lock:
            queues = list(self._queues)
        readings: dict[str, QueueReading] = {}
        for queue in queues:
            readings.setdefault(queue.name, QueueReading()).add(queue.measure())
        return dict(sorted(readings.items()))


def _queue_families(readings: dict[str, QueueReading]) -> Iterator[Metric]:
    label = ["name"]
    depth = GaugeMetricFamily("workqueue_depth", "Current depth of workqueue, by priority", labels=["name", "priority"])
    adds = CounterMetricFamily("workqueue_adds", "Total number of adds handled by workqueue", labels=label)
    retries = CounterMetricFamily("workqueue_retries", "Total number of retries handled by workqueue", labels=label)
    queued = HistogramMetricFamily(
        "workqueue_queue_duration_seconds", "How long an item stays in workqueue before it is taken", labels=label
    )
    worked = HistogramMetricFamily(
        "workqueue_work_duration_seconds", "How long processing an item from workqueue takes", labels=label
    )
    unfinished = GaugeMetricFamily(
        "workqueue_unfinished_work_seconds",
        "Seconds of work in progress that work_duration has not observed yet; growth means stuck workers",
        labels=label,
    )
    longest = GaugeMetricFamily(
        "workqueue_longest_running_processor_seconds", "How long the longest running processor has run", labels=label
    )
    for name, reading in readings.items():
        for priority, waiting in sorted(reading.depths.items()):
            depth.add_metric([name, str(priority)], waiting)
        adds.add_metric([name], reading.adds)
        retries.add_metric([name], reading.retries)
        queued.add_metric([name], _cumulative(reading.queued), reading.queued.total)
        worked.add_metric([name], _cumulative(reading.worked), reading.worked.total)
        unfinished.add_metric([name], sum(reading.running))
        longest.add_metric([name], max(reading.running, default=0.0))
    yield from (depth, adds, retries, queued, worked, unfinished, longest)


def _cumulative(durations: Durations) -> list[tuple[str, float]]:
    return at_or_below(_QUEUE_BUCKETS, durations.counts)


def at_or_below(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Return pairs (upper bound, number of values at or below the bound), as the exposition format requires."""
    buckets: list[tuple[str, float]] = []
    below = 0
    for bound, count in zip((*bounds, float("inf")), counts, strict=True):
        below += count
        buckets.append((_go_float(bound), below))
    return buckets


def _go_float(bound: float) -> str:
    """Return a bound in Go's format, because queries compare the label `le` as a string: `1e-08`, `0.1`, `+Inf`."""
    return "+Inf" if bound == float("inf") else repr(bound)


_work_queues = _WorkQueues()
REGISTRY.register(_work_queues)


def watch_queue(queue: MeasuredQueue) -> None:
    """Report the metrics of `queue` in every scrape while the queue is in use."""
    _work_queues.watch(queue)


def queue_readings() -> dict[str, QueueReading]:
    """Return the metrics of all queues in use, by queue name."""
    return _work_queues.read()


_ROUTE = ["verb", "group", "version", "resource", "subresource", "scope"]
LONG_RUNNING = Gauge("apiserver_longrunning_requests", "Long-running requests in progress", _ROUTE)
_watch_events = Counter("apiserver_watch_events", "Events sent to watchers", ["group", "version", "resource"])
_terminated = Counter(
    "apiserver_terminated_watchers", "Watchers closed because they did not read", ["group", "resource"]
)
_in_flight = Gauge("apiserver_current_inflight_requests", "Requests in progress", ["request_kind"])


_master = Gauge(
    "leader_election_master_status",
    "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master",
    ["name"],
)


def leader_election_status(name: str) -> Gauge:
    """Return the gauge that is 1 while this process holds the lease `name` (client-go's `tools/leaderelection`)."""
    status = _master.labels(name)
    status.set(0)
    return status


def in_flight(request_kind: str) -> Gauge:
    """Return the gauge of running requests, `readOnly` or `mutating`."""
    return _in_flight.labels(request_kind)


class RequestMetrics:
    """kube-apiserver's metrics `apiserver_request*` for one route. Only the event loop's thread may use it."""

    def __init__(
        self, verb: str, group: str, version: str, resource: str, subresource: str, scope: str, dry_run: str = ""
    ) -> None:
        """Create counters for requests with these labels.

        The verb is in upper case; the scope is `resource`, `namespace` or `cluster`.
        """
        self.route = (verb, group, version, resource, subresource, scope, dry_run)
        self.codes: dict[int, int] = {}
        """The number of responses by HTTP status code."""
        # `counts[i]` is the number of values in bucket i alone; the last bucket counts values above all bounds.
        self.counts = [0] * (len(_REQUEST_BUCKETS) + 1)
        self.total = 0.0
        _requests.watch(self)

    def answered(self, code: int, seconds: float) -> None:
        """Count a response with the HTTP status `code` after `seconds`."""
        self.codes[code] = self.codes.get(code, 0) + 1
        self.counts[bisect_left(_REQUEST_BUCKETS, seconds)] += 1
        self.total += seconds


class _Requests(Collector):
    """kube-apiserver's metrics `apiserver_request*`, computed at a scrape."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by `_lock`, because scrapes iterate over this dictionary.
        self._metrics: WeakSet[RequestMetrics] = WeakSet()

    def watch(self, metrics: RequestMetrics) -> None:
        with self._lock:
            self._metrics.add(metrics)

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            counted = sorted(self._metrics, key=lambda each: each.route)
        labels = [*_ROUTE, "dry_run"]
        requests = CounterMetricFamily("apiserver_request", "Requests answered", labels=[*labels, "code"])
        seconds = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Seconds from the request's head to its response", labels=labels
        )
        for route, same in groupby(counted, key=lambda each: each.route):
            codes, counts, total = _sum(list(same))
            for code, number in sorted(codes.items()):
                requests.add_metric([*route, str(code)], number)
            seconds.add_metric(route, at_or_below(_REQUEST_BUCKETS, counts), total)
        return requests, seconds


def _sum(metrics: Sequence[RequestMetrics]) -> tuple[dict[int, int], list[int], float]:
    """Add up the counts of several metrics with the same labels."""
    codes: dict[int, int] = {}
    for each in metrics:
        for code, number in each.codes.items():
            codes[code] = codes.get(code, 0) + number
    counts = [sum(numbers) for numbers in zip(*(each.counts for each in metrics), strict=True)]
    return codes, counts, sum(each.total for each in metrics)


_requests = _Requests()
REGISTRY.register(_requests)


class WatchMetrics:
    """kube-apiserver's metrics of watches for one route."""

    def __init__(self, group: str, version: str, resource: str, scope: str) -> None:
        """Create counters for watches with these labels; the scope is `resource`, `namespace` or `cluster`."""
        self.long_running = LONG_RUNNING.labels("WATCH", group, version, resource, "", scope)
        self.events = _watch_events.labels(group, version, resource)
        self.terminated = _terminated.labels(group, resource)


class RepairMetrics(NamedTuple):
    """kube-apiserver's metrics of one repair loop: the errors that it found, by `type`, and its failures."""

    found: Counter
    failed: Counter


def _repair_metrics(name: str, values: str, errors: str) -> RepairMetrics:
    found = Counter(f"apiserver_{name}_{errors}", f"Number of errors detected on {values} by the repair loop", ["type"])
    failed = Counter(f"apiserver_{name}_reconcile_errors", f"Number of reconciliation failures on the {values} repair")
    return RepairMetrics(found, failed)


CLUSTER_IP_REPAIR = _repair_metrics("clusterip_repair", "clusterips", "ip_errors")
NODE_PORT_REPAIR = _repair_metrics("nodeport_repair", "nodeports", "port_errors")


RESOURCE_CLAIM_CREATES = Counter(
    "resourceclaim_controller_creates",
    "Number of ResourceClaims creation requests, categorized by creation status and admin access",
    ["status", "admin_access"],
)


class DeviceTaintMetrics(NamedTuple):
    """kube-controller-manager's metrics of the device taint eviction controller."""

    deleted: Counter
    seconds: Histogram


DEVICE_TAINT_EVICTIONS = DeviceTaintMetrics(
    Counter(
        "device_taint_eviction_controller_pod_deletions",
        "Total number of Pods deleted by DeviceTaintEvictionController since its start.",
    ),
    Histogram(
        "device_taint_eviction_controller_pod_deletion_duration_seconds",
        "Latency, in seconds, between the time when a device taint effect has been activated and a Pod's deletion via "
        "DeviceTaintEvictionController.",
        buckets=(0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
    ),
)


class PodDeletionMetrics(NamedTuple):
    """kube-controller-manager's metrics of the pod garbage collector, by `namespace` and `reason`."""

    deleted: Counter
    failed: Counter


POD_DELETIONS = PodDeletionMetrics(
    Counter(
        "pod_gc_collector_force_delete_pods",
        "Number of pods that are being forcefully deleted since the Pod GC Controller started.",
        ["namespace", "reason"],
    ),
    Counter(
        "pod_gc_collector_force_delete_pod_errors",
        "Number of errors encountered when forcefully deleting the pods since the Pod GC Controller started.",
        ["namespace", "reason"],
    ),
)

AUDIT_ERRORS = Counter("apiserver_audit_error", "Audit events that a backend lost.", ["plugin"])

AUTHORIZATION_WEBHOOK = Counter(
    "apiserver_authorization_webhook_evaluations",
    "Calls of authorization webhooks, by result.",
    ["name", "result"],
)
AUTHORIZATION_RELOADS = Counter(
    "apiserver_authorization_config_controller_automatic_reloads",
    "Reloads of the authorization configuration, by status.",
    ["status"],
)
FILE_RELOADS = Counter(
    "ctrlmgr_file_reloads",
    "Reloads of a watched file, by its setting and by status; after a failure the old content stays in force.",
    ["setting", "status"],
)
CONFIGURATION_RELOADS = Counter(
    "apiserver_authentication_config_controller_automatic_reloads",
    "Reloads of the authentication configuration, by status.",
    ["status"],
)

_CALLED = ["name", "type", "operation"]
# The client library appends `_total` to the names of counters. In Kubernetes these two names have no suffix `_total`,
# so the two metrics are gauges here.
WEBHOOK_REJECTIONS = Gauge(
    "apiserver_admission_webhook_rejection_count",
    "Requests that admission webhooks denied, or that were denied because a call failed.",
    [*_CALLED, "error_type", "rejection_code"],
)
WEBHOOK_FAIL_OPEN = Gauge(
    "apiserver_admission_webhook_fail_open_count",
    "Failed calls of admission webhooks that did not deny the request.",
    ["name", "type"],
)
WEBHOOK_REQUESTS = Counter(
    "apiserver_admission_webhook_request", "Calls of admission webhooks.", [*_CALLED, "code", "rejected"]
)
WEBHOOK_SECONDS = Histogram(
    "apiserver_admission_webhook_admission_duration_seconds",
    "Seconds that calls of admission webhooks take.",
    [*_CALLED, "rejected"],
    buckets=(0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25),
)


class TurnMetrics(Collector):
    """The metrics of the event loop's turns (`http.loop_monitor`); the duration of a turn is in seconds of CPU time."""

    def __init__(self) -> None:
        self.longest = 0.0
        """The duration of the longest turn since the process started, or since a test reset it."""
        self.long = 0
        """The number of long turns of the event loop."""

    def observe(self, seconds: float, *, is_long: bool) -> None:
        """Record the duration of one turn of the event loop; the event loop's thread calls this method."""
        self.longest = max(self.longest, seconds)
        self.long += is_long

    def collect(self) -> Iterable[Metric]:
        """Return both metric families."""
        words = "Longest turn of the event loop since the start, in seconds of processor time"
        yield GaugeMetricFamily("ctrlmgr_event_loop_longest_turn_seconds", words, value=self.longest)
        words = "Turns of the event loop of more than 0.1 seconds of processor time"
        yield CounterMetricFamily("ctrlmgr_event_loop_long_turns", words, value=self.long)


TURNS = TurnMetrics()
REGISTRY.register(TURNS)
