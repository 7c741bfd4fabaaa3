"""Records the metrics of workload controllers, with kube-controller-manager's names.

Guarantees: names, labels, label values and buckets of metrics are the same as in Kubernetes
(`pkg/controller/{job,cronjob,replicaset, podautoscaler,ttlafterfinished}/…/metrics`), so existing dashboards work. The
metrics that all controllers have are in `ctrlmgr.metrics`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Histogram

from ctrlmgr.clock import Clock

SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return `count` upper bounds of buckets, like Prometheus' `ExponentialBuckets`."""
    return tuple(start * factor**place for place in range(count))


_SYNC: Final = ("completion_mode", "result", "action")

job_syncs = Counter("job_controller_job_syncs", "The number of job syncs", _SYNC)
job_sync_seconds = Histogram(
    "job_controller_job_sync_duration_seconds",
    "The time it took to sync a job",
    _SYNC,
    buckets=exponential(0.004, 2, 15),
)
jobs_finished = Counter(
    "job_controller_jobs_finished", "The number of finished jobs", ("completion_mode", "result", "reason")
)
job_pods_finished = Counter(
    "job_controller_job_pods_finished",
    "The number of finished Pods that are fully tracked",
    ("completion_mode", "result"),
)
job_finished_indexes = Counter(
    "job_controller_job_finished_indexes", "The number of finished indexes", ("status", "backoffLimit")
)
job_pods_creation = Counter(
    "job_controller_job_pods_creation", "The number of Pods created by the Job controller", ("reason", "status")
)
pod_failures_handled = Counter(
    "job_controller_pod_failures_handled_by_failure_policy",
    "The number of failed Pods handled by failure policy, with respect to the failure policy action applied",
    ("action",),
)
terminated_pods_tracked = Counter(
    "job_controller_terminated_pods_tracking_finalizer",
    "The number of terminated pods that have the finalizer of Jobs, which came and went",
    ("event",),
)
jobs_by_external_controller = Counter(
    "job_controller_jobs_by_external_controller",
    "The number of Jobs managed by an external controller",
    ("controller_name",),
)

cron_job_skew = Histogram(
    "cronjob_controller_job_creation_skew_duration_seconds",
    "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
    buckets=exponential(1, 2, 10),
)

sorting_deletion_age_ratio = Histogram(
    "replicaset_controller_sorting_deletion_age_ratio",
    "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time), of pods that are ready",
    buckets=exponential(0.25, 2, 6),
)

job_deletion_seconds = Histogram(
    "ttl_after_finished_controller_job_deletion_duration_seconds",
    "The time it took to delete the job since it became eligible for deletion",
    buckets=exponential(0.1, 2, 14),
)

_DECISION: Final = ("action", "error")
_COMPUTATION: Final = (*_DECISION, "metric_type")
_DECISION_BUCKETS: Final = exponential(0.001, 2, 15)

_reconciliations = Counter(
    "horizontal_pod_autoscaler_controller_reconciliations", "Number of reconciliations of HPA controller", _DECISION
)
_reconciliation_seconds = Histogram(
    "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
    "The time(seconds) that the HPA controller takes to reconcile once",
    _DECISION,
    buckets=_DECISION_BUCKETS,
)
_computations = Counter(
    "horizontal_pod_autoscaler_controller_metric_computation",
    "Number of metric computations of HPA controller",
    _COMPUTATION,
)
_computation_seconds = Histogram(
    "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
    "The time(seconds) that the HPA controller takes to calculate one metric",
    _COMPUTATION,
    buckets=_DECISION_BUCKETS,
)

NONE: Final = "none"
INTERNAL: Final = "internal"
SPEC: Final = "spec"
"""The value of the label `error`: none, an internal error, or an error in the autoscaler's spec."""


class DecisionMetrics:
    """Records the metrics of one autoscaling pass; the pass begins when an instance is created."""

    def __init__(self, clock: Clock) -> None:
        """Create a recorder that measures durations with `clock`."""
        self._clock = clock
        self._began = self._last = clock.monotonic()

    def computed(self, metric_type: str, current: int, desired: int | None, error: str = NONE) -> None:
        """Record the evaluation of one metric that proposes `desired` replicas instead of `current`.

        If the evaluated metric was unavailable, `desired` is None.
        """
        labels = (_action(current, desired), error, metric_type)
        now = self._clock.monotonic()
        _computations.labels(*labels).inc()
        _computation_seconds.labels(*labels).observe(now - self._last)
        self._last = now

    def decided(self, current: int, desired: int | None, error: str = NONE) -> None:
        """Record the result and duration of the whole autoscaling pass."""
        labels = (_action(current, desired), error)
        _reconciliations.labels(*labels).inc()
        _reconciliation_seconds.labels(*labels).observe(self._clock.monotonic() - self._began)


def _action(current: int, desired: int | None) -> str:
    if desired is None or desired == current:
        return "none"
    return "scale_up" if desired > current else "scale_down"


def note_sorting(ready_ages: Iterable[int], chosen_ages: Iterable[int]) -> None:
    """Record the ratio of the ages of the ready pods chosen for deletion to the age of the youngest ready pod.

    The unit of the ages may be any unit, but must be the same for all ages.
    """
    youngest = min(ready_ages, default=0)
    if youngest > 0:
        for age in chosen_ages:
            sorting_deletion_age_ratio.observe(age // youngest)
