"""The items that workers can take: in order of priority, and fair between namespaces within one priority.

Guarantees:
- **Priority.** The next item is one of the highest priority that waits.
- **Fair between namespaces.** Within one priority, namespaces take turns, and a namespace's items leave in the order in
  which they were pushed. So with n namespaces that wait, an item that is the k-th of its namespace leaves within k · n
  items of that priority.
- **No starvation.** Every `SHARE`-th item is taken from the priority whose next item was pushed first. So items of a
  low priority leave even if items of a higher priority wait all the time. controller-runtime has no such rule: there
  an item waits as long as any item of a higher priority does.

Every operation takes constant time for a fixed number of priorities.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from itertools import count
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

SHARE: Final = 16
"""Every `SHARE`-th item is taken from the priority whose next item was pushed first."""


class _Level(Generic[K]):
    """The items of one priority."""

    __slots__ = ("namespaces", "priority", "size")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        # Items with their tickets, by namespace in the order of turns. No entry is empty.
        self.namespaces: OrderedDict[Hashable, OrderedDict[K, int]] = OrderedDict()
        self.size = 0

    def push(self, item: K, namespace: Hashable, ticket: int) -> None:
        waiting = self.namespaces.get(namespace)
        if waiting is None:
            waiting = self.namespaces[namespace] = OrderedDict()
        waiting[item] = ticket
        self.size += 1

    def pop(self) -> K:
        """Remove and return the next item; move its namespace behind the others."""
        namespace, waiting = next(iter(self.namespaces.items()))
        item, _ = waiting.popitem(last=False)
        if waiting:
            self.namespaces.move_to_end(namespace)
        else:
            del self.namespaces[namespace]
        self.size -= 1
        return item

    def remove(self, item: K, namespace: Hashable) -> None:
        waiting = self.namespaces[namespace]
        del waiting[item]
        if not waiting:
            del self.namespaces[namespace]
        self.size -= 1

    def next_ticket(self) -> int:
        """Return the ticket of the next item; the level must not be empty."""
        return next(iter(next(iter(self.namespaces.values())).values()))


class ReadyItems(Generic[K]):
    """The ready items in their order of delivery. An item is in it at most once; the queue's lock guards it."""

    def __init__(self, namespace_of: Callable[[K], Hashable]) -> None:
        """Start empty; items with the same value of `namespace_of` share a turn."""
        self.size = 0
        """Number of waiting items."""
        self._namespace_of = namespace_of
        # By priority, and in descending order. An empty level is kept, because it is used again soon.
        self._levels: dict[int, _Level[K]] = {}
        self._descending: list[_Level[K]] = []
        self._ticket = count()
        self._popped = 0

    def push(self, item: K, priority: int) -> None:
        """Add an item behind those with its namespace and priority."""
        level = self._levels.get(priority) or self._new_level(priority)
        level.push(item, self._namespace_of(item), next(self._ticket))
        self.size += 1

    def raise_priority(self, item: K, current: int, priority: int) -> None:
        """Move an item from priority `current` behind those of its namespace with `priority`."""
        self._levels[current].remove(item, self._namespace_of(item))
        self.size -= 1
        self.push(item, priority)

    def pop(self) -> K:
        """Remove and return the next item; at least one must wait."""
        self._popped += 1
        self.size -= 1
        waiting = [level for level in self._descending if level.size]
        level = waiting[0] if self._popped % SHARE else min(waiting, key=_Level.next_ticket)
        return level.pop()

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield every priority used so far, with its number of waiting items."""
        return ((level.priority, level.size) for level in self._descending)

    def clear(self) -> None:
        """Drop all items."""
        self._levels.clear()
        self._descending.clear()
        self.size = 0

    def _new_level(self, priority: int) -> _Level[K]:
        level = self._levels[priority] = _Level(priority)
        insort(self._descending, level, key=lambda each: -each.priority)
        return level
