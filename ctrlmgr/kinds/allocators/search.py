"""Finds a free value in a range.

Guarantees:
- If the range has a free value, the search returns a free value; otherwise it returns None. The result depends only on
  the view of the objects, the taken values and the random numbers.
- The search first makes at most `PROBES` random look-ups. For example, if half of the values are free, the search needs
  two look-ups on average. Values found by random look-ups are spread evenly, so concurrent writers seldom find the same
  value.
- If the look-ups fail, the search uses a cached bit array of the claimed values, which is built from the view and
  updated from the view's changes. Therefore the search in a full or nearly full range takes little more time. The bit
  array needs one bit for each value, 128 KiB at most. If a range is larger, or the view cannot return changes, the
  search checks the values one by one.
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
"""The maximum number of values of a range with a bit array (a /12 or /108). Larger ranges are never nearly full."""
PROBES = 64
"""The maximum number of random look-ups; after that, all values of a band are searched."""
_MOST_CHANGES = 5000
"""The number of changes in a view from which on the bit array is built again instead of updated."""


class Range(Protocol):
    """A range of values that can be claimed; each value has an index, counted from 0."""

    @property
    def claims(self) -> Resource:
        """The resource of the claim objects."""

    @property
    def count(self) -> int:
        """The number of values in the range."""

    @property
    def bands(self) -> Sequence[tuple[int, int]]:
        """The bands to search, in order.

        A band consists of two indexes: the index of its first value, and the index after its last value.
        """

    def __getitem__(self, index: int) -> str:
        """Return the name of the claim on the value with this index."""

    def index(self, name: str) -> int | None:
        """Return the index of the value that a claim with this name has; None if the value is not in the range."""


class ChangingView(View, Protocol):
    """A view that can also return the changes since an earlier revision."""

    @property
    def revision(self) -> Revision:
        """The revision of the view."""

    def changes_after(self, revision: Revision, resource: Resource, limit: int) -> Sequence[Change] | None:
        """Return the changes of a resource after a revision; None if some of these changes are no longer in memory."""


def _says_what_changed(view: View) -> TypeGuard[ChangingView]:
    return hasattr(view, "changes_after")


class Searcher:
    """Finds free values of one range, in any view."""

    def __init__(self, range: Range) -> None:
        """Create a search in `range`; the constructor does not read any claims."""
        self._range = range
        # The view, and the index that belongs to this view and its thread. If the view is replaced, a new index is
        # created. View and index are replaced as one tuple, so that no thread uses the index of another view.
        self._last: tuple[ref[View], _Index] | None = None

    def find(self, view: View, random: Random, taken: Collection[int] = ()) -> int | None:
        """Return a value that is claimed neither in `view` nor in `taken`; None if there is no such value."""
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
    """The claimed values of a range in one view, stored as a bit array."""

    def __init__(self, range: Range) -> None:
        self._range = range
        self._bits = bitarray(range.count)
        self._revision: Revision | None = None

    def find(self, first: int, end: int, start: int, taken: Collection[int]) -> int | None:
        """Return the first free value of a band after `start`.

        If there is no free value after `start`, return the first free value from the band's beginning.
        """
        with _marked(self._bits, taken):
            found = self._bits.find(0, start, end)
            if found < 0:
                found = self._bits.find(0, first, start)
        return found if found >= 0 else None

    def catch_up(self, view: ChangingView) -> None:
        """Update the bit array to the state of `view`."""
        claims = self._range.claims
        changes = None if self._revision is None else view.changes_after(self._revision, claims, _MOST_CHANGES)
        if changes is None or len(changes) == _MOST_CHANGES:
            self._bits.setall(0)
            for claim in view.list(claims):
                self._set(claim, True)
                claim.forget_decoded()  # the name of each claim is needed only once
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
    """Set bits in addition to the existing bits until the `with` block ends."""
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
    """Make a few random look-ups in a band; return the first free value, or None if no look-up finds one."""
    size = end - first
    for _ in range(min(PROBES, size)):
        candidate = first + random.randrange(size)
        if is_free(candidate):
            return candidate
    return None


def walk(first: int, end: int, start: int, is_free: Callable[[int], bool]) -> int | None:
    """Return the first free value of a band after `start`.

    If there is no free value after `start`, return the first free value from the band's beginning.
    """
    return next((each for each in chain(range(start, end), range(first, start)) if is_free(each)), None)
