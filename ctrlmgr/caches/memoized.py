"""Memoizes pure functions whose arguments clients choose; memoization helps for short arguments that recur.

Guarantees:
- An argument longer than the function's limit is not cached, because a limit on entries alone would allow thousands of
  strings of three megabytes, the maximum size of a request.
- The result of the first call with an argument is not cached.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Protocol, TypeVar

from ctrlmgr.caches.bounded import BoundedCache

T = TypeVar("T")


class _Keyed(Hashable, Protocol):
    def __len__(self) -> int: ...


K = TypeVar("K", bound=_Keyed)

_ABSENT: Any = object()


class SecondHitFilter:
    """Returns whether a key was seen before, so that a cache can ignore keys that are used only once.

    The filter is a table of hashes with a fixed size and creates no objects. Any thread may use the filter. If two keys
    have the same hash, the second key may count as seen. Two keys with the same index in the table evict each other.
    """

    def __init__(self, size: int = 4096) -> None:
        """Create a filter that holds `size` hashes, 8 bytes each."""
        self._size = size
        self._seen = array("q", bytes(8 * size))

    def __call__(self, key: Hashable) -> bool:
        """Return whether a key was seen before, and record the key."""
        mark = hash(key)
        place = mark % self._size
        if self._seen[place] == mark:
            return True
        self._seen[place] = mark
        return False


def memoized(*, entries: int, longest: int) -> Callable[[Callable[[K], T]], Callable[[K], T]]:
    """Decorate a pure function of a string or a tuple, so that up to `entries` results are cached.

    The second call with the same argument caches the result, if the argument has at most `longest` characters or items.
    Errors that the function raises are not cached. The cache is named after the decorated function.
    """

    def decorate(function: Callable[[K], T]) -> Callable[[K], T]:
        name = f"{function.__module__.removeprefix('ctrlmgr.')}.{function.__qualname__}"
        cache: BoundedCache[K, Any] = BoundedCache(name, entries=entries)
        find, counts = cache.peek, cache.counts  # `peek` does not mark the entry as used
        is_seen = SecondHitFilter(max(entries, 4096))

        @wraps(function)
        def call(given: K) -> T:
            found = find(given, _ABSENT)
            if found is not _ABSENT:
                counts.hits += 1
                return found  # type: ignore[no-any-return]  # of the type that was kept
            counts.misses += 1
            if len(given) > longest:
                return function(given)
            result = function(given)
            if is_seen(given):
                cache.put(given, result)
            return result

        return call

    return decorate
