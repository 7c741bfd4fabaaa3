"""A crowd: items that come one after the other with hardly a pause, and wait until no more come.

Guarantees:
- The first of a crowd do not wait: who comes alone, or with few others, never does.
- The others wait until none has come for `Pace.lull`, and `Pace.patience` at most. They leave in the order in which
  they came.
- Nothing that one was asked for is lost: a crowd keeps all triggers of an item.

This is for what is worth less at once than what its work would take from those who make more of it: of a thousand
new Services the first is of little use before the last is there. (controller-runtime's priority queue puts such items
behind all others, `handler.LowPriority`; Kubernetes' own controllers are held back by `--kube-api-qps`.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr.api.resource import Revision
from ctrlmgr.workqueue.pace import Pace

K = TypeVar("K", bound=Hashable)


class Waiting(NamedTuple):
    """Since when an item waits (monotonic seconds), and what for."""

    since: float
    triggers: tuple[Revision, ...]


class Crowd(Generic[K]):
    """See the module's docstring; guarded by the lock of its queue. All moments are in monotonic seconds."""

    def __init__(self, pace: Pace) -> None:
        """Have items wait as `pace` says."""
        self._pace = pace
        self._waiting: dict[K, Waiting] = {}  # in the order in which they came
        self._came = 0  # with never a pause of `lull` between two
        self._last_came_at = float("-inf")

    def __len__(self) -> int:
        """Return how many items wait."""
        return len(self._waiting)

    def has_come(self, now: float) -> bool:
        """Count one that has come; return whether it has to wait."""
        if now >= self._last_came_at + self._pace.lull:
            self._came = 0
        self._came += 1
        self._last_came_at = now
        return self._came > self._pace.fewest

    def put(self, item: K, now: float, triggers: tuple[Revision, ...]) -> None:
        """Have an item wait; if it does already, for this too."""
        since, earlier = self._waiting.get(item, Waiting(now, ()))
        self._waiting[item] = Waiting(since, earlier + triggers)

    def pull(self, item: K) -> Waiting | None:
        """Let one leave that is wanted now; None if it does not wait here."""
        return self._waiting.pop(item, None)

    def leaving(self, now: float) -> Iterator[tuple[K, Waiting]]:
        """Yield those that have waited long enough, who are gone then."""
        is_calm = now >= self._last_came_at + self._pace.lull
        while self._waiting:
            item, waiting = next(iter(self._waiting.items()))
            if not is_calm and now < waiting.since + self._pace.patience:
                return
            del self._waiting[item]
            yield item, waiting

    def next_leaves_at(self) -> float | None:
        """Return the moment from which on one may leave if no more come; None if none waits."""
        for waiting in self._waiting.values():
            return min(self._last_came_at + self._pace.lull, waiting.since + self._pace.patience)
        return None

    def clear(self) -> None:
        """Drop all."""
        self._waiting.clear()
