"""The items that are to be added later, each with the moment, the priority and the triggers for which.

An item is in it once at most. If it is added again, the earlier moment and the higher priority count, and the triggers
of both are kept. All moments are in monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr.workqueue.triggers import Triggers, merged

K = TypeVar("K", bound=Hashable)


class Delayed(NamedTuple):
    """When an item becomes ready, with which priority, and what for."""

    ready_at: float
    priority: int
    triggers: Triggers


class Delays(Generic[K]):
    """See the module's docstring; the queue's lock guards it."""

    def __init__(self) -> None:
        """Start empty."""
        self._delayed: dict[K, Delayed] = {}
        # (ready at, tie-breaker in order of adding, item): one entry for each item in _delayed, and a stale one for
        # some that have been moved to an earlier moment. An entry is stale if its moment is not that of the item.
        self._schedule: list[tuple[float, int, K]] = []
        self._ticket = count()

    def __len__(self) -> int:
        """Return how many entries there are, stale ones included: 0 means that no item waits."""
        return len(self._schedule)

    def put(self, item: K, ready_at: float, priority: int, triggers: Triggers) -> bool:
        """Have `item` ready at that moment; return whether it is now the first of all."""
        known = self._delayed.get(item)
        if known is not None:
            priority = max(priority, known.priority)
            triggers = merged(known.triggers, triggers)
            if known.ready_at <= ready_at:
                self._delayed[item] = Delayed(known.ready_at, priority, triggers)
                return False
        self._delayed[item] = Delayed(ready_at, priority, triggers)
        heappush(self._schedule, (ready_at, next(self._ticket), item))
        return self._schedule[0][2] is item

    def due(self, until: float) -> Iterator[tuple[K, Delayed]]:
        """Remove and yield, in order, the items that are ready by then. Afterwards `next_at` is that of an item."""
        schedule, delayed = self._schedule, self._delayed
        while schedule:
            ready_at, _, item = schedule[0]
            known = delayed.get(item)
            is_stale = known is None or known.ready_at != ready_at
            if not is_stale and ready_at > until:
                return
            heappop(schedule)
            if known is not None and not is_stale:
                del delayed[item]
                yield item, known

    def next_at(self) -> float | None:
        """Return when the next item becomes ready, None if none waits; call `due` before."""
        return self._schedule[0][0] if self._schedule else None

    def clear(self) -> None:
        """Drop all items."""
        self._delayed.clear()
        self._schedule.clear()
