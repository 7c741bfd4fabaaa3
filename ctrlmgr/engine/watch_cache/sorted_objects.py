"""A collection of objects, sorted by path, for any number of objects.

Guarantees: the cost of reading a span depends on the number of objects in the span. Inserting or removing an object
moves at most one block of other objects, so the cost does not depend on the total number of objects.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from ctrlmgr.api.object import Object

BLOCK = 2000
"""The number of objects in a block after a split; a block is split when it has twice this number."""


class SortedObjects:
    """Objects sorted by unique paths; only one thread may use it."""

    __slots__ = ("_blocks", "_count", "_firsts", "_paths")

    def __init__(self, pairs: Sequence[tuple[str, Object]] = ()) -> None:
        """Create a collection of pairs of path and object, which must be sorted."""
        cuts = range(0, len(pairs), BLOCK)
        # Invariant: _blocks[i][j] is the object at _paths[i][j], and _firsts[i] == _paths[i][0]. Every block contains
        # at least one object. The paths of all blocks, one after the other, are sorted.
        self._paths = [[path for path, _ in pairs[cut : cut + BLOCK]] for cut in cuts]
        self._blocks = [[obj for _, obj in pairs[cut : cut + BLOCK]] for cut in cuts]
        self._firsts = [paths[0] for paths in self._paths]
        self._count = len(pairs)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str) or not self._firsts:
            return False
        paths = self._paths[self._block_of(path)]
        at = bisect_left(paths, path)
        return at < len(paths) and paths[at] == path

    def _block_of(self, path: str) -> int:
        """Return the index of the block that contains a path, or would contain it."""
        return max(bisect_right(self._firsts, path) - 1, 0)

    def put(self, path: str, obj: Object) -> None:
        """Insert an object, or replace the object that has the same path."""
        if not self._firsts:
            self._firsts, self._paths, self._blocks = [path], [[path]], [[obj]]
            self._count = 1
            return
        number = self._block_of(path)
        paths, block = self._paths[number], self._blocks[number]
        at = bisect_left(paths, path)
        if at < len(paths) and paths[at] == path:
            block[at] = obj
            return
        paths.insert(at, path)
        block.insert(at, obj)
        self._count += 1
        self._firsts[number] = paths[0]
        if len(paths) >= 2 * BLOCK:
            self._cut(number)

    def _cut(self, number: int) -> None:
        paths, block = self._paths[number], self._blocks[number]
        self._paths[number : number + 1] = [paths[:BLOCK], paths[BLOCK:]]
        self._blocks[number : number + 1] = [block[:BLOCK], block[BLOCK:]]
        self._firsts.insert(number + 1, paths[BLOCK])

    def remove(self, path: str) -> None:
        """Remove the object at a path, which must exist."""
        number = self._block_of(path)
        paths, block = self._paths[number], self._blocks[number]
        at = bisect_left(paths, path)
        del paths[at], block[at]
        self._count -= 1
        if paths:
            self._firsts[number] = paths[0]
        else:
            del self._paths[number], self._blocks[number], self._firsts[number]

    def list(self, start: str, end: str) -> list[Object]:
        """Return the objects from `start` on and before `end`, in order, as a new list.

        An empty `end` means no upper bound.
        """
        if len(self._blocks) == 1:
            first, last = _bounds(self._paths[0], start, end)
            return self._blocks[0][first:last]
        found: list[Object] = []
        for number, first, last in self._stretches(start, end):
            found += self._blocks[number][first:last]
        return found

    def count(self, start: str, end: str) -> int:
        """Return the number of objects from `start` on and before `end`."""
        return sum(last - first for _, first, last in self._stretches(start, end))

    def items(self, start: str, end: str) -> Iterator[tuple[str, Object]]:
        """Yield paths and objects from `start` on and before `end`, in order.

        The collection must not change during the iteration.
        """
        for number, first, last in self._stretches(start, end):
            paths, block = self._paths[number], self._blocks[number]
            for at in range(first, last):
                yield paths[at], block[at]

    def _stretches(self, start: str, end: str) -> Iterator[tuple[int, int, int]]:
        """Yield the index of each block that overlaps a span, and the bounds of the span in this block."""
        if not self._firsts:
            return
        last = bisect_left(self._firsts, end) if end else len(self._firsts)
        for number in range(self._block_of(start) if start else 0, last):
            first, stop = _bounds(self._paths[number], start, end)
            if first < stop:
                yield number, first, stop


def _bounds(paths: Sequence[str], start: str, end: str) -> tuple[int, int]:
    return bisect_left(paths, start) if start else 0, bisect_left(paths, end) if end else len(paths)
