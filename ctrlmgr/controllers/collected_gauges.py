"""Gauges whose values are computed from a controller's caches when Prometheus scrapes them.

Guarantees: a gauge holds only weak references to controllers. When a controller no longer exists, its series end. The
values of several controllers are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakMethod

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

Values = Callable[[], Mapping[tuple[str, ...], int]]
"""A method that returns the values of a gauge; the key of each value is the tuple of its label values."""


class CollectedGauge(Collector):
    """A gauge that reads its values from the methods that were added."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], *, registry: CollectorRegistry | None = REGISTRY
    ) -> None:
        """Create the gauge `name` with the help text `text`; add it to `registry` if `registry` is not None."""
        self._name, self._text, self._labels = name, text, labels
        self._sources: list[WeakMethod[Values]] = []
        if registry is not None:
            registry.register(self)

    def add(self, values: Values) -> None:
        """Add the method of an object; when the object no longer exists, its series end."""
        living = [each for each in self._sources if each() is not None]
        self._sources = [*living, WeakMethod(values)]

    def describe(self) -> Iterable[Metric]:
        """Return the gauge without values, so that registering the gauge computes no values."""
        return [GaugeMetricFamily(self._name, self._text, labels=self._labels)]

    def collect(self) -> Iterable[Metric]:
        """Compute the values, and return the gauge."""
        family = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in sorted(self.read().items()):
            family.add_metric(labels, value)
        return [family]

    def read(self) -> Mapping[tuple[str, ...], int]:
        """Return the values of the gauge, keyed by their label values."""
        total: Counter[tuple[str, ...]] = Counter()
        for source in self._sources:
            if (values := source()) is not None:
                total.update(values())
        return total
