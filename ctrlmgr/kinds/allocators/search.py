"""Finding something free in a range.

Guarantees:
- Something free is found if there is anything, None is returned if there is nothing, and the same random numbers find
  the same.
- It takes a few look-ups at random, as many as 1/(free share) on average, but never more than `PROBES`; what is found
  is spread evenly, so that writers who do not know of each other seldom find the same.
- Past that, what is claimed is known as bits, made from the view and kept by following its changes, so that neither a
  full range nor a nearly full one costs much more. That takes a bit for each value, 128 KiB at the most. Only larger
  ranges, and views that cannot say what changed, are gone through value by value.
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
"""Ranges with more values than a /12 or /108 has are not indexed: they are far from full, or nothing helps."""
PROBES = 64
"""Independent draws before the rest of a band is looked at."""
_MOST_CHANGES = 5000
"""With more changes than that, one begins again."""


class Range(Protocol):
    """Values that can be claimed, counted from 0."""

    @property
    def claims(self) -> Resource:
        """What the objects are that claim a value."""

    @property
    def count(self) -> int:
        """How many values there are."""

    @property
    def bands(self) -> Sequence[tuple[int, int]]:
        """Where to look, in this order: the first value and the one after the last."""

    def __getitem__(self, index: int) -> str:
        """Return what the claim on a value is called."""

    def index(self, name: str) -> int | None:
        """Return which value a claim is on, None if it is on none of these."""


class ChangingView(View, Protocol):
    """A view that can also say what changed."""

    @property
    def revision(self) -> Revision:
        """What the view is as of."""

    def changes_after(self, revision: Revision, resource: Resource, limit: int) -> Sequence[Change] | None:
        """Return changes of a resource after a revision, None if some of them are gone."""


def _says_what_changed(view: View) -> TypeGuard[ChangingView]:
    return hasattr(view, "changes_after")


class Searcher:
    """Finds free values of one range, for decisions on any view."""

    def __init__(self, range: Range) -> None:
        """Take the range; nothing is read yet."""
        self._range = range
        # The index belongs to one view and to the thread that view belongs to; who comes with another view makes
        # another index. Both are replaced together, so no thread sees one that is of another view.
        self._last: tuple[ref[View], _Index] | None = None

    def find(self, view: View, random: Random, taken: Collection[int] = ()) -> int | None:
        """Return a value that is neither claimed in `view` nor in `taken` (of the range), None if there is none."""
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
    """What is claimed of a range in one view, as bits."""

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
        """Become what `view` says."""
        claims = self._range.claims
        changes = None if self._revision is None else view.changes_after(self._revision, claims, _MOST_CHANGES)
        if changes is None or len(changes) == _MOST_CHANGES:
            self._bits.setall(0)
            for claim in view.list(claims):
                self._set(claim, True)
                claim.forget_decoded()  # the names of all of them are needed once, and never again
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
    """Have some more bits set for a while."""
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
    """Return a free value of a band if a few draws come upon one."""
    size = end - first
    for _ in range(min(PROBES, size)):
        candidate = first + random.randrange(size)
        if is_free(candidate):
            return candidate
    return None


def walk(first: int, end: int, start: int, is_free: Callable[[int], bool]) -> int | None:
    """Return the first free value of a band from `start` on, or else from the band's beginning."""
    return next((each for each in chain(range(start, end), range(first, start)) if is_free(each)), None)
