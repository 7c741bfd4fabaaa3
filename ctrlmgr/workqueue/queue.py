"""One queue, one lock, three sets; see the package for what it guarantees.

There is no thread here that waits for delays: a caller waits in `get` no longer than until the earliest
delayed item, and moves it into the queue itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeAlias, TypeVar

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ShutDown
from ctrlmgr.metrics import Durations, QueueReading, watch_queue
from ctrlmgr.workqueue.crowd import Crowds
from ctrlmgr.workqueue.pace import Pace
from ctrlmgr.workqueue.rate_limiter import RateLimiter, default_rate_limiter

K = TypeVar("K", bound=Hashable)

_Triggers: TypeAlias = tuple[Revision, ...] | set[Revision]
"""Revisions as they came (a tuple: one add) or merged (a set: several)."""

_PAST = float("-inf")
_TICK = 5e-7
"""What is due in half a microsecond is due: moments are sums of floats, and no wait that short is worth its call."""


class Delivery(msgspec.Struct, Generic[K], frozen=True):
    """An item handed to one worker.

    `triggers` are all the revisions coalesced while it waited, ascending and without repeats; `attempt` is 1 for
    a first try and one more for each rate-limited requeue since the item was last forgotten.
    """

    item: K
    triggers: tuple[Revision, ...]
    attempt: int


class WorkQueue(Generic[K]):
    """A deduplicating, delaying, rate-limited queue for any number of threads."""

    def __init__(
        self, name: str, *, clock: Clock, limiter: RateLimiter[K] | None = None, pace: Pace | None = None
    ) -> None:
        """Make a queue whose metrics are labelled `name`; the default limiter is Kubernetes' own.

        Without a `pace` every item is handed out at once.
        """
        self.name = name
        self._clock = clock
        self._monotonic: Callable[[], float] = clock.monotonic
        self._limiter: RateLimiter[K] = limiter if limiter is not None else default_rate_limiter(clock)

        # Guards every field below.
        self._lock = threading.Lock()
        self._pace = pace
        # What waits until no more like it comes; none of it is in _queue or _dirty, some may be in _processing.
        self._crowds: Crowds[K] | None = None if pace is None else Crowds(pace)
        # When an item was last handed out, and last added, one that waited already included: what the pace asks.
        self._handed_out_at = self._added_at = _PAST
        # What a `with` on the lock does at half the price, for the three calls that every item goes through.
        self._acquire = self._lock.acquire
        self._release = self._lock.release
        # Notified so that, whenever items are queued, min(items, _waiting) of the waiting threads are awake.
        self._ready = threading.Condition(self._lock)
        # Notified when the last item in work is done after shut_down, and when a drain is cut short.
        self._drained = threading.Condition(self._lock)

        # In what order items are handed out. Each is in _dirty, none is in _processing, none is here twice.
        self._queue: deque[K] = deque()
        # What still has to be processed, with the moment it was added and its triggers. Those that are also in
        # _processing are not in _queue: `done` puts them there.
        self._dirty: dict[K, tuple[float, _Triggers]] = {}
        # What workers hold, with the moment they got it; may be in _dirty at the same time, never in _queue.
        self._processing: dict[K, float] = {}

        # When each delayed item becomes ready (monotonic seconds), and its triggers. Independent of the three
        # sets: an item can wait here and there.
        self._delayed: dict[K, tuple[float, _Triggers]] = {}
        # (ready at, tie-breaker in order of adding, item): one entry for each in _delayed, and for some that have
        # been moved to an earlier moment a stale one, recognised by its moment.
        self._schedule: list[tuple[float, int, K]] = []
        self._ticket = count()
        # Items rate limited and not forgotten since: only for these need the limiter be asked.
        self._limited: set[K] = set()

        # Threads inside `_clock.wait`; each of them wakes no later than the earliest moment in _schedule.
        self._waiting = 0
        self._shutting_down = False
        self._draining = False

        self._adds = 0
        self._retries = 0
        # From add to get, and from get to done.
        self._queued = Durations()
        self._worked = Durations()
        watch_queue(self)

    def add(self, item: K, triggers: Iterable[Revision] = ()) -> None:
        """Have `item` processed because of `triggers`; dropped once the queue is shut down."""
        self._acquire()
        try:
            if not self._shutting_down:
                self._add(item, tuple(triggers))
        finally:
            self._release()

    def add_when_calm(self, item: K, crowd: Hashable, triggers: Iterable[Revision] = ()) -> None:
        """Add `item` when no more come to its crowd, if many do (see `crowd`). Without a pace, and alone, at once.

        One that is added otherwise meanwhile waits no longer.
        """
        if self._crowds is None:
            self.add(item, triggers)
            return
        with self._lock:
            if self._shutting_down:
                return
            now = self._monotonic()
            if not self._crowds.has_come(crowd, now) or item in self._dirty:
                self._add(item, tuple(triggers))
                return
            self._crowds.put(item, crowd, now, tuple(triggers))
            if self._waiting and len(self._crowds) == 1:
                self._ready.notify_all()  # none of them knows of a moment yet; from now on each does

    def add_after(self, item: K, delay: float, triggers: Iterable[Revision] = ()) -> None:
        """Add `item` in `delay` seconds, at once if that is not positive.

        An item that waits already keeps the earlier of both moments and collects the triggers of both.
        """
        with self._lock:
            if not self._shutting_down:
                self._add_after(item, delay, tuple(triggers))

    def add_rate_limited(self, item: K, triggers: Iterable[Revision] = ()) -> float:
        """Add `item` when the rate limiter says so; return in how many seconds that is."""
        delay = self._limiter.when(item)
        with self._lock:
            if not self._shutting_down:
                self._limited.add(item)
                self._add_after(item, delay, tuple(triggers))
        return delay

    def forget(self, item: K) -> None:
        """Have the rate limiter start afresh with `item`; does not touch the queue."""
        with self._lock:
            self._limited.discard(item)
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often `item` was rate limited since it was last forgotten."""
        return self._limiter.num_requeues(item)

    def get(self, timeout: float | None = None) -> Delivery[K] | None:
        """Take the next item; the caller must call `done`.

        Waits up to `timeout` seconds (None: for ever) and returns None when nothing came. Raises `ShutDown` once
        the queue is shut down and empty.
        """
        self._acquire()
        try:
            if (self._schedule or not self._queue or self._pace) and not self._wait_until_ready(timeout):
                return None
            item = self._queue.popleft()
            added_at, triggers = self._dirty.pop(item)
            now = self._handed_out_at = self._monotonic()
            self._processing[item] = now
            self._queued.observe(now - added_at)
            limited = item in self._limited
        finally:
            self._release()
        return Delivery(item, _ascending(triggers), 1 + self._limiter.num_requeues(item) if limited else 1)

    def done(self, item: K) -> None:
        """Give `item` back; if it was added meanwhile it is queued again. Raises ValueError if it was not taken."""
        self._acquire()
        try:
            started_at = self._processing.pop(item, None)
            if started_at is None:
                raise ValueError(f"{item!r} is not being processed")
            self._worked.observe(self._monotonic() - started_at)
            if item in self._dirty:
                self._push(item)
            if self._draining and not self._processing:
                self._drained.notify_all()
        finally:
            self._release()

    @contextmanager
    def processing(self, timeout: float | None = None) -> Iterator[Delivery[K] | None]:
        """`get` for the length of a `with` block, whose end, however it comes, is `done`."""
        delivery = self.get(timeout)
        try:
            yield delivery
        finally:
            if delivery is not None:
                self.done(delivery.item)

    def next_ready_in(self) -> float | None:
        """Return the seconds until an item can be had, 0.0 if one can now, None if nothing waits."""
        with self._lock:
            now = self._monotonic()
            self._promote(now)
            if self._queue:
                return max(0.0, self._held_until() - now)
            wake_at = self._next_moment()
            return None if wake_at is None else max(0.0, wake_at - now)

    def shut_down(self, *, drain: bool = False, timeout: float | None = None) -> bool:
        """Drop what is delayed and whatever is added from now on; what is queued can still be had.

        With `drain`, wait up to `timeout` seconds until no item is being processed and return whether that is so;
        a second `shut_down` without it cuts the wait short. Without, return True at once. Safe to call again.
        """
        with self._lock:
            self._shutting_down = True
            self._draining = drain
            self._drop_crowds()
            self._delayed.clear()
            self._schedule.clear()
            self._ready.notify_all()
            self._drained.notify_all()
            return self._wait_until_drained(timeout) if drain else True

    def reopen(self) -> None:
        """Take items again after `shut_down`, as if new: what was left is dropped, failures are forgotten.

        Raises RuntimeError while anything is being processed.
        """
        with self._lock:
            if self._processing:
                raise RuntimeError(f"{self.name} is still at work")
            self._queue.clear()
            self._dirty.clear()
            self._drop_crowds()
            self._delayed.clear()
            self._schedule.clear()
            limited, self._limited = self._limited, set()
            self._shutting_down = self._draining = False
        for item in limited:
            self._limiter.forget(item)

    def __len__(self) -> int:
        """Return how many items are ready, those being processed not counted."""
        with self._lock:
            self._promote(self._monotonic())
            return len(self._queue)

    def measure(self) -> QueueReading:
        """Return the metrics as they are now; like client-go's, the depth counts items added again while in work."""
        with self._lock:
            now = self._monotonic()
            return QueueReading(
                depth=len(self._dirty) + len(self._crowds or ()),
                adds=self._adds,
                retries=self._retries,
                queued=self._queued.copy(),
                worked=self._worked.copy(),
                running=[now - started_at for started_at in self._processing.values()],
            )

    # What follows is called with the lock held.

    def _add(self, item: K, triggers: _Triggers) -> None:
        now = self._monotonic()
        self._added_at = now
        known = self._dirty.get(item)
        if known is not None:
            added_at, earlier = known
            self._dirty[item] = (added_at, _merged(earlier, triggers))
            return
        if self._crowds and (waited := self._crowds.pull(item)):
            self._enter(item, waited.since, _merged(waited.triggers, triggers))
        else:
            self._enter(item, now, triggers)

    def _enter(self, item: K, since: float, triggers: _Triggers) -> None:
        """Take in an item that is in none of the sets but perhaps in work."""
        self._adds += 1
        self._dirty[item] = (since, triggers)
        if item not in self._processing:
            self._push(item)

    def _push(self, item: K) -> None:
        """Queue an item and wake a thread for it, unless as many are awake already as ever waited.

        Threads that have been notified stay counted in `_waiting` until they run. With more items queued than
        threads waiting, each of them was notified by an earlier push: waking is paid for once a thread, not once
        an item.
        """
        self._queue.append(item)
        if self._waiting >= len(self._queue):
            self._ready.notify()

    def _add_after(self, item: K, delay: float, triggers: _Triggers) -> None:
        self._retries += 1
        if delay <= 0:
            self._add(item, triggers)
            return
        ready_at = self._monotonic() + delay
        known = self._delayed.get(item)
        if known is not None:
            scheduled_at, earlier = known
            triggers = _merged(earlier, triggers)
            if scheduled_at <= ready_at:
                self._delayed[item] = (scheduled_at, triggers)
                return
        self._delayed[item] = (ready_at, triggers)
        heappush(self._schedule, (ready_at, next(self._ticket), item))
        if self._waiting and self._schedule[0][2] is item:
            # All of them, because any of them may give up before this moment comes.
            self._ready.notify_all()

    def _promote(self, now: float) -> None:
        """Queue what is due, and leave in front of the schedule something that is really waiting."""
        if self._crowds:
            for each, waited in self._crowds.leaving(now + _TICK):
                self._enter(each, waited.since, waited.triggers)
        schedule, delayed = self._schedule, self._delayed
        while schedule:
            ready_at, _, item = schedule[0]
            known = delayed.get(item)
            stale = known is None or known[0] != ready_at
            if not stale and ready_at > now + _TICK:
                return
            heappop(schedule)
            if known is not None and not stale:
                del delayed[item]
                self._add(item, known[1])

    def _wait_until_ready(self, timeout: float | None) -> bool:
        """Wait until something in the queue may be had; False if that was not so within `timeout`."""
        give_up_at = None if timeout is None else self._monotonic() + timeout
        while True:
            now = self._monotonic()
            self._promote(now)
            held_until = self._held_until() if self._queue else None
            if held_until is not None and (self._shutting_down or held_until <= now + _TICK):
                return True
            if self._shutting_down:
                raise ShutDown
            if give_up_at is not None and give_up_at <= now + _TICK:
                return False
            wake_at = _earlier(_earlier(give_up_at, self._next_moment()), held_until)
            self._waiting += 1
            try:
                self._clock.wait(self._ready, None if wake_at is None else wake_at - now)
            finally:
                self._waiting -= 1

    def _next_moment(self) -> float | None:
        """Return when something that is not queued yet is due; None if nothing waits for a moment."""
        scheduled_at = self._schedule[0][0] if self._schedule else None
        return _earlier(scheduled_at, self._crowds.next_leaves_at()) if self._crowds else scheduled_at

    def _drop_crowds(self) -> None:
        if self._crowds is not None:
            self._crowds.clear()

    def _held_until(self) -> float:
        """Return the moment from which on the next of what is queued may be had; it may have passed."""
        pace = self._pace
        return _PAST if pace is None else pace.holds_until(len(self._queue), self._handed_out_at, self._added_at)

    def _wait_until_drained(self, timeout: float | None) -> bool:
        give_up_at = None if timeout is None else self._monotonic() + timeout
        while self._processing and self._draining:
            left = None if give_up_at is None else give_up_at - self._monotonic()
            if left is not None and left <= _TICK:
                break
            self._clock.wait(self._drained, left)
        return not self._processing


def _merged(earlier: _Triggers, more: _Triggers) -> _Triggers:
    """Return the union; a set is the queue's own and grows in place, so that merging costs what is new."""
    if isinstance(earlier, set):
        earlier.update(more)
        return earlier
    return {*earlier, *more} if more else earlier


def _earlier(one: float | None, other: float | None) -> float | None:
    """Return the smaller of two moments, either of which may be never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _ascending(triggers: _Triggers) -> tuple[Revision, ...]:
    if isinstance(triggers, tuple) and len(triggers) < 2:
        return triggers
    return tuple(sorted(set(triggers)))
