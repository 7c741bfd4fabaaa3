"""The metrics of caches: hits, misses, entries and bytes (`ctrlmgr_cache_*`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class CacheCounts:
    """The hits and misses of all caches with the same name.

    Caches count without a lock, so if several threads count at the same time, a few counts may be lost.
    """

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        """Create counters that are zero."""
        self.hits = 0
        self.misses = 0


class MeasuredCache(Protocol):
    """The interface of a cache with metrics."""

    @property
    def name(self) -> str:
        """The value of the label `name` in the metrics of the cache."""

    @property
    def size(self) -> int:
        """The total size of the cache's entries in bytes, as the owner of the cache has stated it."""

    def __len__(self) -> int:
        """Return the number of entries in the cache."""


class _Caches(Collector):
    """The metrics `ctrlmgr_cache_*`; counts exist as long as the process, and sizes are read from the caches in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # Guards the attributes below, because scrapes iterate over them.
        self._counts: dict[str, CacheCounts] = {}
        self._caches: WeakSet[MeasuredCache] = WeakSet()

    def watch(self, cache: MeasuredCache) -> CacheCounts:
        with self._lock:
            self._caches.add(cache)
            return self._counts.setdefault(cache.name, CacheCounts())

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            counts, caches = sorted(self._counts.items()), list(self._caches)
        label = ["cache"]
        hits = CounterMetricFamily("ctrlmgr_cache_hits", "Lookups that found an entry", labels=label)
        misses = CounterMetricFamily("ctrlmgr_cache_misses", "Lookups that found no entry", labels=label)
        entries = GaugeMetricFamily("ctrlmgr_cache_entries", "Entries that are cached now", labels=label)
        size = GaugeMetricFamily("ctrlmgr_cache_size_bytes", "Bytes accounted to the cached entries", labels=label)
        for name, counted in counts:
            same = [each for each in caches if each.name == name]
            hits.add_metric([name], counted.hits)
            misses.add_metric([name], counted.misses)
            entries.add_metric([name], sum(map(len, same)))
            size.add_metric([name], sum(each.size for each in same))
        return hits, misses, entries, size


_caches = _Caches()
REGISTRY.register(_caches)


def watch_cache(cache: MeasuredCache) -> CacheCounts:
    """Report the metrics of `cache` in every scrape while the cache is in use; return its counters."""
    return _caches.watch(cache)
