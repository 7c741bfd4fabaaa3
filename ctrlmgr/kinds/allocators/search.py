"""Finds a free value in a range.

Guarantees:
- If there is a free value, one is found, otherwise None is returned. The same random numbers find the same value.
- It takes a few random look-ups, on average 1/(free share), but never more than `PROBES`. The values found are spread
  evenly, so concurrent writers seldom find the same one.
- After that, a bit array of the claimed values is used, which is built from the view and updated from its changes.
  Therefore a full or nearly full range does not cost much more. The array needs one bit for each value, 128 KiB at
  most. Larger ranges, and views without changes, are searched value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from random import Random
from typing import Protocol, TypeGuard
from weakref import ref

from bitarray import bitarray

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.engine.strategy import View
from ctrlmgr.informer.informer import Change

LARGEST_INDEX = 1 << 20
"""Ranges with more values than a /12 or /108 have no bit array: they are far from full, or nothing helps."""
PROBES = 64
"""The number of random look-ups before the rest of a band is searched."""
_MOST_CHANGES = 5000
"""If there are more changes, the bit array is built again."""


class Range(Protocol):
    """Values that can be claimed, counted from 0."""

    @property
    def claims(self) -> Resource:
        """The resource of the claims."""

    @property
    def count(self) -> int:
        """The number of values."""

    @property
    def bands(self) -> Sequence[tuple[int, int]]:
        """The bands to search, in order: the first value and the one after the last."""

    def __getitem__(self, index: int) -> str:
        """Return the name of the claim on a value."""

    def index(self, name: str) -> int | None:
        """Return the value of a claim, None if it is not in the range."""


class ChangingView(View, Protocol):
    """A view that also has changes."""

    @property
    def revision(self) -> Revision:
        """The revision of the view."""

    def changes_after(self, revision: Revision, resource: Resource, limit: int) -> Sequence[Change] | None:
        """Return changes of a resource after a revision, None if some of them are no longer held."""


def _says_what_changed(view: View) -> TypeGuard[ChangingView]:
    return hasattr(view, "changes_after")


class Searcher:
    """Finds free values of one range, for decisions on any view."""

    def __init__(self, range: Range) -> None:
        """Search `range`; nothing is read yet."""
        self._range = range
        # The index belongs to one view and its thread; for another view, a new index is built. Both are replaced
        # together, so that no thread uses the index of another view.
        self._last: tuple[ref[View], _Index] | None = None

    def find(self, view: View, random: Random, taken: Collection[int] = ()) -> int | None:
        """Return a value that is neither claimed in `view` nor in `taken`, None if there is none."""
        is_free = _free_in(view, self._range, taken)
        for first, end in self._range.bands:
            if end > first:
                found = probe(first, end, is_free, random)
                if found is None:
                    start = first + random.randrange(end - first)
                    if self._range.count <= LARGEST_INDEX and _says_what_changed(view):
                        found = self._index(view).find(first, end, start, taken)
                    else:
                        found = walk(first, end, start, is_free)
                if found is not None:
                    return found
        return None

    def _index(self, view: ChangingView) -> _Index:
        last = self._last
        if last is None or last[0]() is not view:
            last = self._last = (ref(view), _Index(self._range))
        last[1].catch_up(view)
        return last[1]


class _Index:
    """The claimed values of a range in one view, as bits."""

    def __init__(self, range: Range) -> None:
        self._range = range
        self._bits = bitarray(range.count)
        self._revision: Revision | None = None

    def find(self, first: int, end: int, start: int, taken: Collection[int]) -> int | None:
        """Return the first free value of a band from `start` on, or else from the band's beginning."""
        with _marked(self._bits, taken):
            found = self._bits.find(0, start, end)
            if found < 0:
                found = self._bits.find(0, first, start)
        return found if found >= 0 else None

    def catch_up(self, view: ChangingView) -> None:
        """Update the bits to the state of `view`."""
        claims = self._range.claims
        changes = None if self._revision is None else view.changes_after(self._revision, claims, _MOST_CHANGES)
        if changes is None or len(changes) == _MOST_CHANGES:
            self._bits.setall(0)
            for claim in view.list(claims):
                self._set(claim, True)
                claim.forget_decoded()  # each name is needed only once
        else:
            for change in changes:
                self._set(change.object, change.new is not None)
        self._revision = view.revision

    def _set(self, claim: Object, there: bool) -> None:
        index = self._range.index(claim.name)
        if index is not None:
            self._bits[index] = there


@contextmanager
def _marked(bits: bitarray, taken: Collection[int]) -> Iterator[None]:
    """Set additional bits within a block."""
    marked = [index for index in taken if not bits[index]]
    for index in marked:
        bits[index] = 1
    try:
        yield
    finally:
        for index in marked:
            bits[index] = 0


def _free_in(view: View, range: Range, taken: Collection[int]) -> Callable[[int], bool]:
    get, claims = view.get, range.claims
    return lambda index: index not in taken and get(claims, Key("", range[index])) is None


def probe(first: int, end: int, is_free: Callable[[int], bool], random: Random) -> int | None:
    """Return a free value of a band if a few random look-ups find one."""
    size = end - first
    for _ in range(min(PROBES, size)):
        candidate = first + random.randrange(size)
        if is_free(candidate):
            return candidate
    return None


def walk(first: int, end: int, start: int, is_free: Callable[[int], bool]) -> int | None:
    """Return the first free value of a band from `start` on, or else from the band's beginning."""
    return next((each for each in chain(range(start, end), range(first, start)) if is_free(each)), None)
