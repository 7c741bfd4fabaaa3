"""Results that are remembered for texts worth it: what is said over and over in a cluster is short, and comes again.

Guarantees:
- Nothing is kept of a text longer than a function's bound. A cache that counts entries alone is as large as its filler
  likes: some thousand texts of the three megabytes that a request may have.
- Nothing is kept of what comes once, and of what a very large body holds nothing longer than the body (`for_now`). An
  object that stays, made while there is a large body, keeps the mebibyte in which it lies from going back to the system
  with all that was made of the body.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class _Keyed(Hashable, Protocol):
    def __len__(self) -> int: ...


K = TypeVar("K", bound=_Keyed)

_ABSENT: Any = object()


class _Thread(threading.local):
    """What this thread works on."""

    known: dict[object, dict[Any, Any]] | None = None
    """Results of functions for as long as a large body is worked on; None while there is none."""


_thread = _Thread()


@contextmanager
def for_now() -> Iterator[None]:
    """Have what this thread comes by meanwhile remembered until the end alone: of a large body most never returns."""
    before, _thread.known = _thread.known, {}
    try:
        yield
    finally:
        _thread.known = before


class Returning:
    """Says what comes again, as far as it can tell: a table of a fixed size, in which the later takes the place.

    It makes no objects, and any thread may ask. What looks like another thing is taken for it, so it may say too early
    that something comes again, and, where two things take turns in a place, never.
    """

    def __init__(self, size: int = 4096) -> None:
        """Know the last of each of `size` places, 8 bytes each."""
        self._size = size
        self._seen = array("q", bytes(8 * size))

    def __call__(self, thing: Hashable) -> bool:
        """Say whether a thing has been here before, and remember that it has."""
        if _thread.known is not None:
            return False
        mark = hash(thing)
        place = mark % self._size
        if self._seen[place] == mark:
            return True
        self._seen[place] = mark
        return False


def remembered(*, entries: int, longest: int) -> Callable[[Callable[[K], T]], Callable[[K], T]]:
    """Decorate a function of a text or tuple: up to `entries` results, for those no longer than `longest`, are kept.

    They are kept from the second time on; when there are too many, it begins anew. Errors are not kept: they are raised
    anew.
    """

    def decorate(function: Callable[[K], T]) -> Callable[[K], T]:
        kept: dict[K, T] = {}
        returns = Returning(max(entries, 4096))

        @wraps(function)
        def call(given: K) -> T:
            found = kept.get(given, _ABSENT)
            if found is not _ABSENT:
                return found  # type: ignore[no-any-return]  # of the type that was kept
            if len(given) > longest:
                return function(given)
            known = kept if _thread.known is None else _thread.known.setdefault(call, {})
            if known is not kept and (found := known.get(given, _ABSENT)) is not _ABSENT:
                return found  # type: ignore[no-any-return]  # the same
            result = function(given)
            if known is not kept or returns(given):
                if len(known) >= entries:
                    known.clear()
                known[given] = result
            return result

        return call

    return decorate
