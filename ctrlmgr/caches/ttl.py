"""A cache whose entries expire.

Guarantees: `get` returns an entry until the entry's TTL has passed; later reads are misses. The limits and the eviction
are those of `BoundedCache`. Several threads may share a cache.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr.caches.bounded import BoundedCache
from ctrlmgr.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Entry(NamedTuple, Generic[V]):
    value: V
    expires_at: float


class TTLCache(Generic[K, V]):
    """A cache whose entries expire."""

    __slots__ = ("_cache", "_clock")

    def __init__(
        self, name: str, *, entries: int, size: int | None = None, largest: int | None = None, clock: Clock
    ) -> None:
        """Create a cache with the limits of a `BoundedCache`; `clock` determines when entries expire.

        Raises `ValueError` if `entries` is less than 1, as a `BoundedCache` does.
        """
        self._cache: BoundedCache[K, _Entry[V]] = BoundedCache(name, entries=entries, size=size, largest=largest)
        self._clock = clock

    def get(self, key: K) -> V | None:
        """Return the value of a key; None if the key is not cached or its entry has expired."""
        entry: _Entry[V] | None = self._cache.peek(key)
        if entry is not None and entry.expires_at <= self._clock.monotonic():
            self._cache.discard(key)  # In the worst case, this removes an entry that another thread has just added.
        entry = self._cache.get(key)
        return None if entry is None else entry.value

    def put(self, key: K, value: V, ttl: float, size: int = 0) -> None:
        """Cache the value of a key for `ttl` seconds from now; `size` is the size of the key and the value in bytes."""
        self._cache.put(key, _Entry(value, self._clock.monotonic() + ttl), size)

    def clear(self) -> None:
        """Remove all entries."""
        self._cache.clear()

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def size(self) -> int:
        """The total size in bytes of the cached entries, including entries that have expired."""
        return self._cache.size
