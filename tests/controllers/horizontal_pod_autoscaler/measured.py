"""Creates pods and metrics for tests of autoscaling."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.horizontal_pod_autoscaler.autoscaled_pods import MeasuredPod
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import PodMetric

NOW = 1_767_225_600_000_000
"""The time 2026-01-01, in microseconds."""
MINUTE = 60_000_000


def pod_body(
    name: str,
    *,
    phase: str = "Running",
    ready: bool | None = True,
    ready_age: int = 60,
    age: int = 60,
    request: str | None = "1",
    deleted: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod that started `age` minutes ago and whose condition Ready last changed `ready_age` minutes ago."""
    requests = {"requests": {"cpu": request}} if request is not None else {}
    metadata: dict[str, Any] = {"name": name, "namespace": "a", "labels": {"app": "web"}}
    if deleted:
        metadata["deletionTimestamp"] = format_time_seconds(NOW)
    status: dict[str, Any] = {"phase": phase, "startTime": format_time_seconds(NOW - age * MINUTE)}
    if ready is not None:
        changed = format_time_seconds(NOW - ready_age * MINUTE)
        status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": changed}]
    containers = [{"name": "c", "image": "i", "resources": requests}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
        "status": status,
    }


def pod(name: str, **fields: Any) -> MeasuredPod:
    return MeasuredPod(Object.from_dict(pod_body(name, **fields)))


def used(*values: int | None, at: int = NOW) -> dict[str, PodMetric]:
    """Return the usage of the pods p0, p1, …, measured over one minute at the time `at`; None stands for a pod without
    metrics.
    """
    return {f"p{place}": PodMetric(value, at, MINUTE) for place, value in enumerate(values) if value is not None}
