"""Counts the events of the log over time.

Events are counted in blocks of revisions, so that no request reads the whole log. Guarantees:
- Each block is counted only once, because the log never changes. After a compaction, all blocks are counted again.
- One request counts events for at most `PATIENCE` seconds, and returns the last counted revision (`Counted.until`).
  Therefore repeated requests can count a log of any length.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.inspection.database import Database

BLOCK = 64
"""Number of revisions in a block; the number is doubled until there are at most `_MOST` blocks."""

PATIENCE = 1.0
"""Maximum number of seconds that one request spends on counting events."""

_MOST = 16384
_STEP = 16384
"""Number of revisions that one query counts."""


class Group(NamedTuple):
    """A group of events: those of one resource, in one namespace, by one actor."""

    resource: str
    actor: str
    namespace: str


class Block(NamedTuple):
    """The number of events of each group in a range of revisions; times are in microseconds since 1970."""

    first: Revision
    last: Revision
    began: int
    ended: int
    counts: dict[Group, int]


class Counted(NamedTuple):
    """The counted blocks of the log up to the revision `until`."""

    until: Revision
    blocks: list[Block]
    totals: Counter[Group]


_COUNT = """
SELECT (e.revision - 1) / {size} AS block, o.resource, e.actor, o.namespace, min(e.revision), max(e.revision),
    min(e.recorded_at), max(e.recorded_at), count(*)
FROM event AS e JOIN object AS o ON o.id = e.object_id
WHERE e.revision > :after AND e.revision <= :until
GROUP BY 1, 2, 3, 4 ORDER BY 1"""


def count(database: Database, after: Revision, until: Revision, size: int) -> Iterator[Block]:
    """Yield the blocks of `size` revisions that contain events in the given range, beginning with the oldest block."""
    found: dict[int, Block] = {}
    parameters = {"after": after, "until": until}
    for number, resource, actor, namespace, *span, events in database.query(_COUNT.format(size=size), parameters).rows:
        first, last, began, ended = span
        group = Group(resource, actor, namespace)
        if (block := found.get(number)) is None:
            found[number] = Block(first, last, began, ended, {group: events})
            continue
        block.counts[group] = events
        first, last = min(block.first, first), max(block.last, last)
        found[number] = Block(first, last, min(block.began, began), max(block.ended, ended), block.counts)
    yield from found.values()


class Density:
    """The event counts of the log, which all requests of a process share.

    Any thread may use these counts.
    """

    def __init__(self, *, clock: Clock) -> None:
        """Create an instance that has not counted any event yet."""
        self._clock = clock
        # protects the attributes below; held while counting, so that each block is counted only once
        self._lock = threading.Lock()
        self._size = BLOCK
        self._floors = (0, 0)
        self._until = 0
        self._blocks: list[Block] = []
        self._totals: Counter[Group] = Counter()

    def counted(self, database: Database, head: Revision) -> Counted:
        """Count events up to `head`, or until `PATIENCE` has passed.

        The last block of the result may be incomplete.
        """
        began = self._clock.monotonic()
        with self._lock:
            self._begin_again_if_needed(database, head)
            full = head // self._size * self._size
            while self._until < full and self._clock.monotonic() - began < PATIENCE:
                self._count(database, min(full, self._until + max(_STEP, self._size)))
            blocks, totals, until = list(self._blocks), self._totals.copy(), self._until
            size = self._size
        if until == full and head > full:
            rest = list(count(database, full, head, size))
            blocks += rest
            for block in rest:
                totals.update(block.counts)
            until = head
        return Counted(until, blocks, totals)

    def _count(self, database: Database, until: Revision) -> None:
        for block in count(database, self._until, until, self._size):
            self._blocks.append(block)
            self._totals.update(block.counts)
        self._until = until

    def _begin_again_if_needed(self, database: Database, head: Revision) -> None:
        floors = tuple(database.query("SELECT count(*), coalesce(sum(floor), 0) FROM compaction_floor").rows[0])
        size = self._size
        while head > size * _MOST:
            size *= 2
        if (floors, size) != (self._floors, self._size):
            self._floors, self._size, self._until = floors, size, 0
            self._blocks, self._totals = [], Counter()
