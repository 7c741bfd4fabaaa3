"""Stores the items that the workqueue will queue later, each with its time, priority and triggers.

Each item is stored only once. If a stored item is added again, the earlier of both times and the higher of both
priorities apply, and the triggers of both additions are kept. All times are in monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr.workqueue.triggers import Triggers, merged

K = TypeVar("K", bound=Hashable)


class Delayed(NamedTuple):
    """The time when an item becomes ready, its priority, and its triggers."""

    ready_at: float
    priority: int
    triggers: Triggers


class Delays(Generic[K]):
    """Stores items that the queue will queue later. The lock of the queue guards this object."""

    def __init__(self) -> None:
        """Create an empty instance."""
        self._delayed: dict[K, Delayed] = {}
        # Entries (ready at, tie-breaker in the order of adding, item): one for each item in `_delayed`, and stale
        # entries of items that were moved to an earlier time. An entry is stale if its time is not the item's.
        self._schedule: list[tuple[float, int, K]] = []
        self._ticket = count()

    def __len__(self) -> int:
        """Return the number of entries, stale entries included; 0 means that no item is delayed."""
        return len(self._schedule)

    def put(self, item: K, ready_at: float, priority: int, triggers: Triggers) -> bool:
        """Make `item` ready at the time `at`; return whether `item` is now the earliest of all delayed items."""
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
        """Remove and yield, in order, the items that are ready at the given time.

        After a call of `due`, `next_at` returns the time of an item that still waits.
        """
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
        """Return the time when the next item becomes ready; None if no item waits; call `due` before this method."""
        return self._schedule[0][0] if self._schedule else None

    def clear(self) -> None:
        """Remove all delayed items."""
        self._delayed.clear()
        self._schedule.clear()
