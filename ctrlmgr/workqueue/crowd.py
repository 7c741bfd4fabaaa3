"""Crowds: items that come one after the other with hardly a pause, and wait until no more come.

Guarantees:
- The first of a crowd do not wait: who comes alone, or with few others, never does. No crowd waits for another's.
- The others wait until none has come for `Pace.lull`, and `Pace.patience` at most. They leave in the order in which
  they came.
- Nothing that one was asked for is lost: all triggers of an item that waits are kept.

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


class _Crowd(Generic[K]):
    """One of them."""

    __slots__ = ("came", "last_came_at", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[K, Waiting] = {}  # in the order in which they came
        self.came = 0  # with never a pause of `lull` between two
        self.last_came_at = float("-inf")


class Crowds(Generic[K]):
    """See the module's docstring; guarded by the lock of its queue. All moments are in monotonic seconds."""

    def __init__(self, pace: Pace) -> None:
        """Have items wait as `pace` says."""
        self._pace = pace
        self._crowds: dict[Hashable, _Crowd[K]] = {}  # those of which one has come a moment ago, or waits
        self._places: dict[K, _Crowd[K]] = {}  # where each waits that does

    def __len__(self) -> int:
        """Return how many items wait."""
        return len(self._places)

    def has_come(self, name: Hashable, now: float) -> bool:
        """Count one that has come to the crowd of that name; return whether it has to wait."""
        crowd = self._crowds.get(name)
        if crowd is None:
            self._crowds = {each: known for each, known in self._crowds.items() if not self._is_over(known, now)}
            crowd = self._crowds[name] = _Crowd()
        if self._is_calm(crowd, now):
            crowd.came = 0
        crowd.came += 1
        crowd.last_came_at = now
        return crowd.came > self._pace.fewest

    def put(self, item: K, name: Hashable, now: float, triggers: tuple[Revision, ...]) -> None:
        """Have an item wait in the crowd that it has come to; if it waits already, for this too."""
        crowd = self._places.setdefault(item, self._crowds[name])
        since, earlier = crowd.waiting.get(item, Waiting(now, ()))
        crowd.waiting[item] = Waiting(since, earlier + triggers)

    def pull(self, item: K) -> Waiting | None:
        """Let one leave that is wanted now; None if it does not wait."""
        crowd = self._places.pop(item, None)
        return None if crowd is None else crowd.waiting.pop(item)

    def leaving(self, now: float) -> Iterator[tuple[K, Waiting]]:
        """Yield those that have waited long enough, who are gone then."""
        for crowd in self._crowds.values():
            is_calm = self._is_calm(crowd, now)
            while crowd.waiting:
                item, waiting = next(iter(crowd.waiting.items()))
                if not is_calm and now < waiting.since + self._pace.patience:
                    break
                del crowd.waiting[item], self._places[item]
                yield item, waiting

    def next_leaves_at(self) -> float | None:
        """Return the moment from which on one may leave if no more come; None if none waits."""
        return min((self._leaves_at(crowd) for crowd in self._crowds.values() if crowd.waiting), default=None)

    def clear(self) -> None:
        """Drop all."""
        self._crowds.clear()
        self._places.clear()

    def _leaves_at(self, crowd: _Crowd[K]) -> float:
        oldest = next(iter(crowd.waiting.values()))
        return min(crowd.last_came_at + self._pace.lull, oldest.since + self._pace.patience)

    def _is_calm(self, crowd: _Crowd[K], now: float) -> bool:
        return now >= crowd.last_came_at + self._pace.lull

    def _is_over(self, crowd: _Crowd[K], now: float) -> bool:
        return not crowd.waiting and self._is_calm(crowd, now)
