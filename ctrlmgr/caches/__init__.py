"""Bounded caches: what is kept because it is likely to be needed again.

Guarantees:
- Every cache has a bound in entries, and one in bytes where a client chooses how large an entry is.
- Every cache has a name, under which `/metrics` reports its hits, misses, entries and bytes (`ctrlmgr_cache_*`).
- Any thread may use a cache.

`BoundedCache` evicts the least recently used entry; `TTLCache` expires entries, too.
"""

from ctrlmgr.caches.bounded import BoundedCache
from ctrlmgr.caches.ttl import TTLCache

__all__ = ["BoundedCache", "TTLCache"]
