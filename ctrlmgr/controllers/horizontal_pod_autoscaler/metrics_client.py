"""The metrics client: resource, custom and external metrics for an autoscaler.

Guarantees: amounts are in thousandths of the metric's unit, times and windows in microseconds. If metrics are
unavailable, the methods raise `MetricsError` with the same messages as Kubernetes' clients
(`pkg/controller/podautoscaler/metrics/client.go`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ctrlmgr.api import quantity
from ctrlmgr.api.quantity import MILLI
from ctrlmgr.clock import parse_time
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from ctrlmgr.errors import CtrlmgrError

_SECOND: Final = 1_000_000


class MetricsError(CtrlmgrError):
    """Raised if metrics are unavailable or unusable."""


class PodMetric(NamedTuple):
    """A metric of a pod: its value, the time of the measurement, and the window over which it was measured."""

    value: int
    at: int = 0
    window: int = 0


PodMetrics = dict[str, PodMetric]
"""Metrics of pods, by pod name."""


class MetricsClient(Protocol):
    """The interface of a source of metrics. Every method raises `MetricsError` if the metric is unavailable."""

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Return the usage of a resource by each pod.

        If a `container` is given, only that container in each pod counts.
        """

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        """Return the values of a custom metric for each pod."""

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        """Return the value of a custom metric of an object; `described` has the object's apiVersion, kind and name."""

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        """Return all values of an external metric."""


class NoMetricsClient:
    """The metrics client of a cluster without metrics APIs."""

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Raise `MetricsError`."""
        raise MetricsError(
            f"unable to fetch metrics from resource metrics API: {_NOT_SERVED} (get pods.metrics.k8s.io)"
        )

    def pods(self, name: str, namespace: str, selector: LabelSelector, metric: LabelSelector) -> PodMetrics:
        """Raise `MetricsError`."""
        raise MetricsError(_NO_CUSTOM_METRICS)

    def object(self, name: str, namespace: str, described: Mapping[str, Any], metric: LabelSelector) -> int:
        """Raise `MetricsError`."""
        raise MetricsError(_NO_CUSTOM_METRICS)

    def external(self, name: str, namespace: str, metric: LabelSelector) -> Sequence[int]:
        """Raise `MetricsError`."""
        problem = f"{_NOT_SERVED} (get {name}.external.metrics.k8s.io)"
        raise MetricsError(f"unable to fetch metrics from external metrics API: {problem}")


_NOT_SERVED: Final = "the server could not find the requested resource"
_NO_CUSTOM_METRICS: Final = (
    "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
)


class Served(NoMetricsClient):
    """The metrics client of a cluster that stores PodMetrics (`metrics.k8s.io`) as custom objects."""

    def __init__(self, pod_metrics: Callable[[str], Iterable[Mapping[str, Any]] | None]) -> None:
        """Create a client that reads PodMetrics with `pod_metrics`, which lists the PodMetrics of a namespace.

        The function `pod_metrics` returns None if the kind does not exist.
        """
        self._list = pod_metrics

    def resource(self, resource: str, namespace: str, selector: LabelSelector, container: str) -> PodMetrics:
        """Return the usage of a resource by each pod.

        If a `container` is given, only that container in each pod counts.
        """
        listed = self._list(namespace)
        if listed is None:
            return super().resource(resource, namespace, selector, container)
        found = [each for each in listed if selector.matches(each["metadata"].get("labels") or {})]
        if not found:
            raise MetricsError("no metrics returned from resource metrics API")
        return container_metrics(found, resource, container) if container else pod_metrics(found, resource)


def pod_metrics(found: Iterable[Mapping[str, Any]], resource: str) -> PodMetrics:
    """Return each pod's total usage of a resource.

    A pod is left out of the result if one of its containers has no value for the resource.
    """
    metrics: PodMetrics = {}
    for each in found:
        usages = [container.get("usage") or {} for container in each.get("containers") or ()]
        if usages and all(resource in usage for usage in usages):
            metrics[each["metadata"]["name"]] = _measured(each, sum(milli(usage[resource]) for usage in usages))
    return metrics


def container_metrics(found: Iterable[Mapping[str, Any]], resource: str, container: str) -> PodMetrics:
    """Return one container's usage of a resource in each pod; raises `MetricsError` if a pod has no such container."""
    metrics: PodMetrics = {}
    for each in found:
        same = [one for one in each.get("containers") or () if one.get("name") == container]
        if not same:
            metadata = each["metadata"]
            pod = f"{metadata.get('namespace', '')}/{metadata['name']}"
            problem = f"container {container} not present in metrics for pod {pod}"
            raise MetricsError(f"failed to get container metrics: {problem}")
        amount = (same[0].get("usage") or {}).get(resource)
        if amount is not None:
            metrics[each["metadata"]["name"]] = _measured(each, milli(amount))
    return metrics


def _measured(found: Mapping[str, Any], value: int) -> PodMetric:
    at, window = found.get("timestamp"), found.get("window") or "0s"
    return PodMetric(value, parse_time(at) if at else 0, _span(window))


def _span(text: str) -> int:
    """Return the microseconds of a duration such as `30s` or `1m0s`."""
    total, number = 0.0, ""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    for character in text:
        if character in units:
            total += float(number or 0) * units[character]
            number = ""
        else:
            number += character
    return int(total * _SECOND)


def milli(amount: str | float) -> int:
    """Return a resource quantity in thousandths of its unit, rounded up (`Quantity.MilliValue`)."""
    return -(-quantity.parse(str(amount)) // MILLI)


def written(thousandths: int) -> str:
    """Format an amount of thousandths as Kubernetes does (`NewMilliQuantity`)."""
    return quantity.canonical(f"{thousandths}m")
