"""Metrics of audited requests: kube-apiserver's `apiserver_audit_event_total` and `apiserver_audit_level_total`.

Guarantees: counting an event costs one addition; a scrape only reads the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from ctrlmgr.audit.policy import Level
from ctrlmgr.metrics import REGISTRY


class _Counts(Collector):
    """The counts of events and requests; only the event loop's thread may change these counts."""

    def __init__(self) -> None:
        self.events = 0
        """The number of events sent to backends."""
        self.levels = [0] * len(Level)
        """The number of requests by their audit level."""

    def collect(self) -> Iterable[Metric]:
        """Yield both metrics."""
        yield CounterMetricFamily("apiserver_audit_event", "Audit events told to the backends.", value=self.events)
        levels = CounterMetricFamily(
            "apiserver_audit_level", "Requests by the audit level that the policy has for them.", labels=["level"]
        )
        for level in Level:
            if level:
                levels.add_metric([level.called], self.levels[level])
        yield levels


COUNTS: Final = _Counts()
REGISTRY.register(COUNTS)
