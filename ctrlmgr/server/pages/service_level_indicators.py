"""Reports the results of the health checks as metrics at `/metrics/slis` (KEP-3466).

The metrics count the health checks that `/livez`, `/readyz` and `/healthz` run, as in apiserver
`pkg/server/healthz/healthz.go`. The metrics have the names and labels of component-base `metrics/prometheus/slis`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from ctrlmgr.server.pages.health import Health


class HealthCheckMetrics(Collector):
    """Builds the metrics of some health endpoints at each scrape."""

    def __init__(self, endpoints: Sequence[Health]) -> None:
        """Create a collector that reports the checks of `endpoints`."""
        self._endpoints = endpoints

    def collect(self) -> Iterator[Metric]:
        """Yield the last result and the number of results of each health check."""
        last = GaugeMetricFamily(
            "kubernetes_healthcheck", "This metric records the result of a single healthcheck.", labels=("name", "type")
        )
        total = CounterMetricFamily(
            "kubernetes_healthchecks",
            "This metric records the results of all healthcheck.",
            labels=("name", "type", "status"),
        )
        for endpoint in self._endpoints:
            for name, counts in list(endpoint.counts.items()):
                last.add_metric((name, endpoint.name), float(counts.is_passing))
                for status, count in (("success", counts.passed), ("error", counts.failed)):
                    if count:
                        total.add_metric((name, endpoint.name, status), count)
        yield last
        yield total


def indicators(endpoints: Sequence[Health]) -> CollectorRegistry:
    """Return the registry that `/metrics/slis` shows."""
    registry = CollectorRegistry()
    registry.register(HealthCheckMetrics(endpoints))
    return registry
