"""Stores the items that workers can take now, by priority; within a priority, namespaces take turns.

Guarantees:
- **Priority.** The next item is one of those with the highest priority.
- **Fair between namespaces.** Within one priority, namespaces take turns, and the items of a namespace are taken in the
  order in which they were pushed. For example, if n namespaces have waiting items of one priority, the k-th item of a
  namespace is one of the next k · n items of the priority.
- **No starvation.** Every `SHARE`-th item is taken from the priority whose next item was pushed first. This rule
  prevents that an item of a low priority waits forever while items of a higher priority always wait. In
  controller-runtime, an item waits as long as any item of a higher priority waits.

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
"""The number of items among which one is taken from the priority whose next item was pushed first."""


class _Level(Generic[K]):
    """The items of one priority."""

    __slots__ = ("namespaces", "priority", "size")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        # The items and their tickets, by namespace; the namespaces are in the order of their turns. No entry is empty.
        self.namespaces: OrderedDict[Hashable, OrderedDict[K, int]] = OrderedDict()
        self.size = 0

    def push(self, item: K, namespace: Hashable, ticket: int) -> None:
        waiting = self.namespaces.get(namespace)
        if waiting is None:
            waiting = self.namespaces[namespace] = OrderedDict()
        waiting[item] = ticket
        self.size += 1

    def pop(self) -> K:
        """Remove and return the next item; the item's namespace then takes its next turn after all other namespaces."""
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
        """Return the ticket of the next item; at least one item must wait."""
        return next(iter(next(iter(self.namespaces.values())).values()))


class ReadyItems(Generic[K]):
    """The ready items, in the order in which the queue delivers them. Each item is stored at most once.

    The queue's lock guards this object.
    """

    def __init__(self, namespace_of: Callable[[K], Hashable]) -> None:
        """Create an object without items; items with the same value of `namespace_of` share a turn."""
        self.size = 0
        """The number of waiting items."""
        self._namespace_of = namespace_of
        # The levels by priority, in descending order. An empty level is kept, because it will be used again soon.
        self._levels: dict[int, _Level[K]] = {}
        self._descending: list[_Level[K]] = []
        self._ticket = count()
        self._popped = 0

    def push(self, item: K, priority: int) -> None:
        """Add an item; items of the same namespace and priority that were added earlier are delivered first."""
        level = self._levels.get(priority) or self._new_level(priority)
        level.push(item, self._namespace_of(item), next(self._ticket))
        self.size += 1

    def raise_priority(self, item: K, current: int, priority: int) -> None:
        """Move an item from the priority `current` to `priority`, behind the other items of its namespace."""
        self._levels[current].remove(item, self._namespace_of(item))
        self.size -= 1
        self.push(item, priority)

    def pop(self) -> K:
        """Remove and return the next item; at least one item must wait."""
        self._popped += 1
        self.size -= 1
        waiting = [level for level in self._descending if level.size]
        level = waiting[0] if self._popped % SHARE else min(waiting, key=_Level.next_ticket)
        return level.pop()

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Yield every priority that was used, with the number of items that wait in it."""
        return ((level.priority, level.size) for level in self._descending)

    def clear(self) -> None:
        """Remove all ready items."""
        self._levels.clear()
        self._descending.clear()
        self.size = 0

    def _new_level(self, priority: int) -> _Level[K]:
        level = self._levels[priority] = _Level(priority)
        insort(self._descending, level, key=lambda each: -each.priority)
        return level
