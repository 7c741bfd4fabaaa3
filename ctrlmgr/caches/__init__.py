"""Bounded caches with metrics.

Guarantees:
- Every cache has a maximum number of entries, and a maximum size in bytes if clients choose the size of entries.
- Every cache has a name, under which `/metrics` reports its hits, misses, entries and bytes (`ctrlmgr_cache_*`).
- Several threads may share a cache.

`BoundedCache` evicts the least recently used entry; entries of a `TTLCache` also expire.
"""

from ctrlmgr.caches.bounded import BoundedCache
from ctrlmgr.caches.ttl import TTLCache

__all__ = ["BoundedCache", "TTLCache"]
