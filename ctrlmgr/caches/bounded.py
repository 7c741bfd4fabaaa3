"""A cache that evicts the least recently used entry.

Guarantees:
- The cache holds at most `entries` entries with a total of at most `size` bytes. The cache's owner states the size of
  each entry.
- A single entry of more than `largest` bytes is not cached.
- Several threads may share a cache. A read takes no lock, because a look-up and the move of a key to the end are each
  atomic under the interpreter's lock. A look-up and a move are atomic for keys that C code compares: strings, bytes,
  numbers, tuples of these, and objects compared by identity. A write to the cache takes a lock.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from math import inf
from typing import Any, Final, Generic, Protocol, TypeVar

from ctrlmgr.caches.cache_metrics import CacheCounts, watch_cache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
K_contra = TypeVar("K_contra", contravariant=True)


class Peek(Protocol[K_contra]):
    """The type of a function with the signature of `dict.get`."""

    def __call__(self, key: K_contra, default: Any = None, /) -> Any:
        """Return the value of a key, or `default`."""


class BoundedCache(Generic[K, V]):
    """A bounded cache. None is not a valid value, because a miss returns None.

    An owner that clears the cache when values become invalid must not cache a value afterwards that it computed
    earlier. To ensure this order, the owner can use its own lock, or store each value together with the input from
    which the value was computed.
    """

    __slots__ = (
        "__weakref__",
        "_entries",
        "_largest",
        "_lock",
        "_most",
        "_most_bytes",
        "_size",
        "_sizes",
        "counts",
        "name",
        "peek",
    )

    def __init__(self, name: str, *, entries: int, size: int | None = None, largest: int | None = None) -> None:
        """Hold at most `entries` entries and `size` bytes, and no entry larger than `largest` bytes.

        A limit of None means no limit. The metrics report all caches with one name as one cache. Raises `ValueError` if
        `entries` is less than 1.
        """
        if entries < 1:
            raise ValueError("a cache must have room for at least one entry")
        self.name: Final = name
        self._most = entries
        self._most_bytes = inf if size is None else size
        self._largest = min(self._most_bytes, inf if largest is None else largest)
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}  # The sizes of those entries that have a size, in bytes.
        self._size = 0
        # The lock is reentrant, because the finalizer of an evicted value may use the cache.
        self._lock = threading.RLock()
        self.peek: Final[Peek[K]] = self._entries.get
        """A function that returns the value of a key at the cost of a dictionary's `get`; the look-up is not counted,
        and the key is not marked as used.
        """
        self.counts: Final[CacheCounts] = watch_cache(self)
        """The counters of hits and misses; an owner that calls `peek` must count its own look-ups."""

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark it as used; None if the key is not cached."""
        found = self._entries.get(key)
        if found is None:
            self.counts.misses += 1
            return None
        self.counts.hits += 1
        try:  # noqa: SIM105  # `suppress` costs more than the look-up
            self._entries.move_to_end(key)
        except KeyError:  # Another thread has just evicted the key.
            pass
        return found

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Cache the value of a key; `size` is the size of the key and the value in bytes.

        The new value replaces an earlier value of the key, and the cache evicts other entries if necessary. If the new
        value is larger than `largest`, the cache removes the key.
        """
        with self._lock:
            if size > self._largest:
                self.discard(key)
                return
            self._size += size - self._sizes.pop(key, 0)
            if size:
                self._sizes[key] = size
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._most or self._size > self._most_bytes:
                evicted, _ = self._entries.popitem(last=False)
                self._size -= self._sizes.pop(evicted, 0)

    def discard(self, key: K) -> None:
        """Remove a key from the cache, if the key is cached."""
        with self._lock:
            if self._entries.pop(key, None) is not None:
                self._size -= self._sizes.pop(key, 0)

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The total size of the cached entries in bytes, as their owner has stated it."""
        return self._size
