"""kube-scheduler's metrics, with its names, labels and buckets.

Source: Kubernetes' `pkg/scheduler/metrics/metrics.go`.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

from ctrlmgr.controllers.collected_gauges import CollectedGauge
from ctrlmgr.controllers.workloads.workload_metrics import exponential

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
WAITING: Final = "waiting_on_preemption"
ERROR: Final = "error"
"""The values of the label `result`."""
POD_ADDED: Final = "UnscheduledPodAdd"
POD_UPDATED: Final = "UnscheduledPodUpdate"
FAILED_ATTEMPT: Final = "ScheduleAttemptFailure"
TIMEOUT: Final = "UnschedulableTimeout"
BACKOFF_COMPLETE: Final = "BackoffComplete"
"""The values of the label `event`, besides those of `ClusterEvent`."""

PENDING_PODS: Final = CollectedGauge(
    "scheduler_pending_pods",
    "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of "
    "pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to "
    "schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule "
    "because they are gated.",
    ("queue",),
)
CACHE_SIZE: Final = CollectedGauge(
    "scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", ("type",)
)
UNSCHEDULABLE_PODS: Final = CollectedGauge(
    "scheduler_unschedulable_pods",
    "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that "
    "caused it to not schedule and so this metric have meaning only when broken down by plugin.",
    ("plugin", "profile"),
)
INCOMING_PODS: Final = Counter(
    "scheduler_queue_incoming_pods",
    "Number of pods added to scheduling queues by event and queue type.",
    ("queue", "event"),
)
HINT_SECONDS: Final = Histogram(
    "scheduler_queueing_hint_execution_duration_seconds",
    "Duration for running a queueing hint function of a plugin.",
    ("plugin", "event", "hint"),
    buckets=exponential(0.00001, 1.5, 20),
)
ATTEMPTS: Final = Counter(
    "scheduler_schedule_attempts",
    "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while "
    "'error' means an internal scheduler problem.",
    ("result", "profile"),
)
ATTEMPT_SECONDS: Final = Histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
    ("result", "profile"),
    buckets=exponential(0.001, 2, 15),
)
ALGORITHM_SECONDS: Final = Histogram(
    "scheduler_scheduling_algorithm_duration_seconds",
    "Scheduling algorithm latency in seconds",
    buckets=exponential(0.001, 2, 15),
)
POD_ATTEMPTS: Final = Histogram(
    "scheduler_pod_scheduling_attempts",
    "Number of attempts to successfully schedule a pod.",
    buckets=exponential(1, 2, 5),
)
POD_SECONDS: Final = Histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve "
    "multiple scheduling attempts.",
    ("attempts",),
    buckets=exponential(0.01, 2, 20),
)
PREEMPTIONS: Final = Counter("scheduler_preemption_attempts", "Total preemption attempts in the cluster till now")
VICTIMS: Final = Histogram(
    "scheduler_preemption_victims", "Number of selected preemption victims", buckets=exponential(1, 2, 7)
)
GROUP_ATTEMPTS: Final = Counter(
    "scheduler_podgroup_schedule_attempts",
    "Number of attempts to schedule pod group, by the result. 'unschedulable' means a pod group could not be "
    "scheduled, while 'error' means an internal scheduler problem.",
    ("result", "profile"),
)


def count_attempt(result: str, profile: str, seconds: float) -> None:
    """Count an attempt to schedule a pod that took this number of seconds."""
    ATTEMPTS.labels(result, profile).inc()
    ATTEMPT_SECONDS.labels(result, profile).observe(seconds)


def count_scheduled(attempts: int, seconds: float) -> None:
    """Count a pod that was bound after `attempts` attempts, `seconds` after it entered the queue."""
    POD_ATTEMPTS.observe(attempts)
    POD_SECONDS.labels(str(attempts) if attempts < _MANY else f"{_MANY}+").observe(seconds)


_MANY: Final = 15
"""The number of attempts from which on the label `attempts` is `15+`."""
