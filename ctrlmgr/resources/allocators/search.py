"""Finding something free in a range.

Guarantees:
- Something free is found if there is anything, None is returned if there is nothing, and the same random numbers find
  the same.
- A view that can say what changed (the cacher can) is followed: what is claimed is known as bits, and neither a full
  range nor a nearly full one costs more than an empty one. That takes a bit for each value, 128 KiB at the most.
- Larger ranges, and other views, are asked value by value, which costs 1/(free share) questions on average.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Protocol, TypeGuard
from weakref import ref

from bitarray import bitarray

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.informer.informer import Change
from ctrlmgr.resources.strategy import View

LARGEST_INDEX = 1 << 20
"""Ranges with more values than a /12 or /108 has are not indexed: they are far from full, or nothing helps."""
PROBES = 64
"""Independent draws before going through a band value by value; they keep what is taken spread out evenly, so that
the walk from a random place is seldom long when it comes to it."""
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
    """Finds free values of one range, for whoever decides on any view."""

    def __init__(self, range: Range) -> None:
        """Take the range; nothing is read yet."""
        self._range = range
        # The index belongs to one view and to the thread that view belongs to; who comes with another view makes
        # another index. Both are replaced together, so nobody ever sees one that is not of his view.
        self._last: tuple[ref[View], _Index] | None = None

    def find(self, view: View, random: Random, taken: Collection[int] = ()) -> int | None:
        """Return a value that is neither claimed in `view` nor in `taken`, None if there is none."""
        if self._range.count > LARGEST_INDEX or not _says_what_changed(view):
            return find_free(self._range.bands, _free_in(view, self._range, taken), random)
        last = self._last
        if last is None or last[0]() is not view:
            last = self._last = (ref(view), _Index(self._range))
        return last[1].find(view, random, taken)


class _Index:
    """What is claimed of a range in one view, as bits."""

    def __init__(self, range: Range) -> None:
        self._range = range
        self._bits = bitarray(range.count)
        self._revision: Revision | None = None

    def find(self, view: ChangingView, random: Random, taken: Collection[int]) -> int | None:
        self._catch_up(view)
        with _marked(self._bits, taken):
            for first, end in self._range.bands:
                if end > first and (found := _from_anywhere(self._bits, first, end, random)) >= 0:
                    return found
        return None

    def _catch_up(self, view: ChangingView) -> None:
        claims = self._range.claims
        changes = None if self._revision is None else view.changes_after(self._revision, claims, _MOST_CHANGES)
        if changes is None or len(changes) == _MOST_CHANGES:
            self._bits.setall(0)
            for claim in view.list(claims):
                self._set(claim, True)
                claim.forget_decoded()  # the names of all of them are needed once, and never again
        else:
            for change in changes:
                if (changed := change.new or change.old) is not None:
                    self._set(changed, change.new is not None)
        self._revision = view.revision

    def _set(self, claim: Object, there: bool) -> None:
        index = self._range.index(claim.name)
        if index is not None:
            self._bits[index] = there


def _from_anywhere(bits: bitarray, first: int, end: int, random: Random) -> int:
    start = first + random.randrange(end - first)
    found = bits.find(0, start, end)
    return found if found >= 0 else bits.find(0, first, start)


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


def find_free(bands: Sequence[tuple[int, int]], is_free: Callable[[int], bool], random: Random) -> int | None:
    """Return a free value of the first band that has one; `is_free` is asked about one value at a time."""
    for first, end in bands:
        if end > first and (found := _walk(first, end - first, is_free, random)) is not None:
            return found
    return None


def _walk(first: int, size: int, is_free: Callable[[int], bool], random: Random) -> int | None:
    for _ in range(min(PROBES, size)):
        candidate = first + random.randrange(size)
        if is_free(candidate):
            return candidate
    start = random.randrange(size)
    for step in range(size):
        candidate = first + (start + step) % size
        if is_free(candidate):
            return candidate
    return None
