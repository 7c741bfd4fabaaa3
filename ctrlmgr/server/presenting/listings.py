"""Caches encoded lists, so that repeated requests do not encode an unchanged list again.

Guarantees:
- The server uses a cached list only if the list contains exactly the requested objects at their current revisions.
- The cache holds at most `BUDGET` bytes. The cache does not hold a list of more than `LARGEST` bytes; each request
  encodes such a list again in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.caches import BoundedCache
from ctrlmgr.server.presenting import encoding

BUDGET = 8 * 1024 * 1024
LARGEST = 1024 * 1024

_WORTH_CACHING = 16 * 1024


class _Made(NamedTuple):
    objects: Sequence[Object]
    pieces: Sequence[bytes]


class Listings:
    """Encodes lists of objects of any kind, and caches them. Used on the event loop's thread only."""

    def __init__(self, *, budget: int = BUDGET, largest: int = LARGEST) -> None:
        """Create a cache of up to `budget` bytes, for lists of at most `largest` bytes each."""
        self._largest = largest
        # Two lists can have the same key, but most lists have different keys. If two lists have the same key, the later
        # list replaces the earlier list.
        self._made: BoundedCache[tuple[bytes, Key, int], _Made] = BoundedCache(
            "lists", entries=max(1, budget // _WORTH_CACHING), size=budget
        )

    def pieces(self, head: bytes, objects: Sequence[Object], type_meta: bytes) -> Iterable[bytes]:
        """Return the encoded items of a list: a sequence, or an iterator if the list is too large to cache."""
        if not objects:
            return list(encoding.items(head, objects, type_meta))
        key = (type_meta, objects[0].key, len(objects))
        known = self._made.get(key)
        # this comparison is fast for unchanged objects, which are compared by identity first
        if known is not None and known.objects == objects:
            return (head, *known.pieces)
        return self._make(key, head, objects)

    def _make(self, key: tuple[bytes, Key, int], head: bytes, objects: Sequence[Object]) -> Iterable[bytes]:
        making = encoding.items(b"", objects, key[0])
        if self._is_too_large(objects):
            return chain((head,), making)
        pieces = list(making)
        size = sum(map(len, pieces))
        if size >= _WORTH_CACHING:
            self._made.put(key, _Made(objects, pieces), size)
        return (head, *pieces) if len(pieces) > 1 else (head + pieces[0],)

    def _is_too_large(self, objects: Sequence[Object]) -> bool:
        return any(size > self._largest for size in accumulate(len(obj.wire()) for obj in objects))
