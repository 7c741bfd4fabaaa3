"""A cache whose entries expire.

Guarantees: an entry is returned until its TTL has passed, and counts as a miss from then on. Its bounds and
eviction are those of `BoundedCache`, and threads may share it as they may share that.
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
    """See the module's docstring."""

    __slots__ = ("_cache", "_clock")

    def __init__(
        self, name: str, *, entries: int, size: int | None = None, largest: int | None = None, clock: Clock
    ) -> None:
        """Take the bounds of a `BoundedCache`; `clock` says when entries expire. Raises `ValueError` as that does."""
        self._cache: BoundedCache[K, _Entry[V]] = BoundedCache(name, entries=entries, size=size, largest=largest)
        self._clock = clock

    def get(self, key: K) -> V | None:
        """Return the value of a key, None if there is none or if it has expired."""
        entry: _Entry[V] | None = self._cache.peek(key)
        if entry is not None and entry.expires_at <= self._clock.monotonic():
            self._cache.discard(key)  # at worst one that another thread has put this moment
        entry = self._cache.get(key)
        return None if entry is None else entry.value

    def put(self, key: K, value: V, ttl: float, size: int = 0) -> None:
        """Cache a value of `size` bytes, its key included, for `ttl` seconds from now."""
        self._cache.put(key, _Entry(value, self._clock.monotonic() + ttl), size)

    def clear(self) -> None:
        """Remove all entries."""
        self._cache.clear()

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def size(self) -> int:
        """Bytes that its owner has accounted to the cached entries, expired ones included."""
        return self._cache.size
