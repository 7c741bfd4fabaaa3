"""One queue, one lock, three sets; see the package for what it guarantees.

There is no thread here that waits for delays: a caller waits in `get` no longer than until the earliest
delayed item, and moves it into the queue itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ShutDown
from ctrlmgr.metrics import Durations, QueueReading, watch_queue
from ctrlmgr.workqueue.delays import Delays
from ctrlmgr.workqueue.priority import CHANGE
from ctrlmgr.workqueue.rate_limiter import RateLimiter, default_rate_limiter
from ctrlmgr.workqueue.ready import ReadyItems
from ctrlmgr.workqueue.triggers import Triggers, ascending, merged

K = TypeVar("K", bound=Hashable)

_TICK = 5e-7
"""What is due in half a microsecond is due: moments are sums of floats, and no wait that short is worth its call."""


_Wanted: TypeAlias = tuple[float, Triggers, int]
"""Since when an item has to be processed (monotonic seconds), what for, and its priority."""


def _in_no_namespace(item: Hashable) -> str:
    return ""


class Delivery(msgspec.Struct, Generic[K], frozen=True):
    """An item handed to one worker.

    `triggers` are all the revisions coalesced while it waited, ascending and without repeats; `attempt` is 1 for
    a first try and one more for each rate-limited requeue since the item was last forgotten. `priority` is the highest
    of those that it was added with; an item that is added again to finish this work should keep it.
    """

    item: K
    triggers: tuple[Revision, ...]
    attempt: int
    priority: int = CHANGE


class WorkQueue(Generic[K]):
    """A deduplicating, delaying, rate-limited priority queue for any number of threads."""

    def __init__(
        self,
        name: str,
        *,
        clock: Clock,
        limiter: RateLimiter[K] | None = None,
        namespace_of: Callable[[K], Hashable] = _in_no_namespace,
    ) -> None:
        """Make a queue whose metrics are labelled `name`; the default limiter is Kubernetes' own.

        Of items with the same priority, those for which `namespace_of` returns different values take turns.
        """
        self.name = name
        self._clock = clock
        self._monotonic: Callable[[], float] = clock.monotonic
        self._limiter: RateLimiter[K] = limiter if limiter is not None else default_rate_limiter(clock)

        # Guards every field below.
        self._lock = threading.Lock()
        # What a `with` on the lock does at half the price, for the three calls that every item goes through.
        self._acquire = self._lock.acquire
        self._release = self._lock.release
        # Notified so that, whenever items are queued, min(items, _waiting) of the waiting threads are awake.
        self._ready = threading.Condition(self._lock)
        # Notified when the last item in work is done after shut_down, and when a drain is cut short.
        self._drained = threading.Condition(self._lock)

        # In what order items are handed out. Each is in _dirty with the same priority, none is in _processing.
        self._queue: ReadyItems[K] = ReadyItems(namespace_of)
        # What still has to be processed. Items that are also in _processing are not in _queue: `done` puts them there.
        self._dirty: dict[K, _Wanted] = {}
        # What workers hold, with the moment they got it; may be in _dirty at the same time, never in _queue.
        self._processing: dict[K, float] = {}
        # What is to be added later. Independent of the three sets: an item can wait here and there.
        self._delays: Delays[K] = Delays()
        # Items rate limited and not forgotten since: only for these need the limiter be asked.
        self._limited: set[K] = set()

        # Threads inside `_clock.wait`; each of them wakes no later than the earliest moment in _delays.
        self._waiting = 0
        self._shutting_down = False
        self._draining = False

        self._adds = 0
        self._retries = 0
        # From add to get, and from get to done.
        self._queued = Durations()
        self._worked = Durations()
        watch_queue(self)

    def add(self, item: K, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        """Have `item` processed because of `triggers`; dropped once the queue is shut down.

        An item that waits already keeps the higher of both priorities.
        """
        self._acquire()
        try:
            if not self._shutting_down:
                self._add(item, tuple(triggers), priority)
        finally:
            self._release()

    def add_after(self, item: K, delay: float, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        """Add `item` in `delay` seconds, at once if that is not positive.

        An item that waits for a delay already keeps the earlier of both moments and the higher of both priorities, and
        collects the triggers of both.
        """
        with self._lock:
            if not self._shutting_down:
                self._add_after(item, delay, tuple(triggers), priority)

    def add_rate_limited(self, item: K, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> float:
        """Add `item` when the rate limiter says so; return in how many seconds that is."""
        delay = self._limiter.when(item)
        with self._lock:
            if not self._shutting_down:
                self._limited.add(item)
                self._add_after(item, delay, tuple(triggers), priority)
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
            if (self._delays or not self._queue.size) and not self._wait_until_ready(timeout):
                return None
            item = self._queue.pop()
            added_at, triggers, priority = self._dirty.pop(item)
            now = self._monotonic()
            self._processing[item] = now
            self._queued.observe(now - added_at)
            limited = item in self._limited
        finally:
            self._release()
        attempt = 1 + self._limiter.num_requeues(item) if limited else 1
        return Delivery(item, ascending(triggers), attempt, priority)

    def done(self, item: K) -> None:
        """Give `item` back; if it was added meanwhile it is queued again. Raises ValueError if it was not taken."""
        self._acquire()
        try:
            started_at = self._processing.pop(item, None)
            if started_at is None:
                raise ValueError(f"{item!r} is not being processed")
            self._worked.observe(self._monotonic() - started_at)
            wanted = self._dirty.get(item)
            if wanted is not None:
                self._push(item, wanted[2])
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
            if self._queue.size:
                return 0.0
            wake_at = self._delays.next_at()
            return None if wake_at is None else max(0.0, wake_at - now)

    def shut_down(self, *, drain: bool = False, timeout: float | None = None) -> bool:
        """Drop what is delayed and whatever is added from now on; what is queued can still be had.

        With `drain`, wait up to `timeout` seconds until no item is being processed and return whether that is so;
        a second `shut_down` without it cuts the wait short. Without, return True at once. Safe to call again.
        """
        with self._lock:
            self._shutting_down = True
            self._draining = drain
            self._delays.clear()
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
            self._delays.clear()
            limited, self._limited = self._limited, set()
            self._shutting_down = self._draining = False
        for item in limited:
            self._limiter.forget(item)

    def __len__(self) -> int:
        """Return how many items are ready, those being processed not counted."""
        with self._lock:
            self._promote(self._monotonic())
            return self._queue.size

    def measure(self) -> QueueReading:
        """Return the metrics as they are now; like client-go's, the depth counts items added again while in work."""
        with self._lock:
            now = self._monotonic()
            return QueueReading(
                depths=self._depths(),
                adds=self._adds,
                retries=self._retries,
                queued=self._queued.copy(),
                worked=self._worked.copy(),
                running=[now - started_at for started_at in self._processing.values()],
            )

    # What follows is called with the lock held.

    def _add(self, item: K, triggers: Triggers, priority: int) -> None:
        known = self._dirty.get(item)
        if known is not None:
            self._add_again(item, known, triggers, priority)
            return
        self._adds += 1
        self._dirty[item] = (self._monotonic(), triggers, priority)
        if item not in self._processing:
            self._push(item, priority)

    def _add_again(self, item: K, known: _Wanted, triggers: Triggers, priority: int) -> None:
        added_at, earlier, current = known
        self._dirty[item] = (added_at, merged(earlier, triggers), max(current, priority))
        if priority > current and item not in self._processing:
            self._queue.raise_priority(item, current, priority)

    def _push(self, item: K, priority: int) -> None:
        """Queue an item and wake a thread for it, unless as many are awake already as ever waited.

        Threads that have been notified stay counted in `_waiting` until they run. With more items queued than
        threads waiting, each of them was notified by an earlier push: waking is paid for once a thread, not once
        an item.
        """
        self._queue.push(item, priority)
        if self._waiting >= self._queue.size:
            self._ready.notify()

    def _add_after(self, item: K, delay: float, triggers: Triggers, priority: int) -> None:
        self._retries += 1
        if delay <= 0:
            self._add(item, triggers, priority)
            return
        is_first = self._delays.put(item, self._monotonic() + delay, priority, triggers)
        if is_first and self._waiting:
            # All of them, because any of them may give up before this moment comes.
            self._ready.notify_all()

    def _promote(self, now: float) -> None:
        """Queue what is due."""
        for item, delayed in self._delays.due(now + _TICK):
            self._add(item, delayed.triggers, delayed.priority)

    def _wait_until_ready(self, timeout: float | None) -> bool:
        """Wait until something is queued; False if that was not so within `timeout`."""
        give_up_at = None if timeout is None else self._monotonic() + timeout
        while True:
            now = self._monotonic()
            self._promote(now)
            if self._queue.size:
                return True
            if self._shutting_down:
                raise ShutDown
            if give_up_at is not None and give_up_at <= now + _TICK:
                return False
            wake_at = _earlier(give_up_at, self._delays.next_at())
            self._waiting += 1
            try:
                self._clock.wait(self._ready, None if wake_at is None else wake_at - now)
            finally:
                self._waiting -= 1

    def _depths(self) -> dict[int, int]:
        """Return how many items wait by priority, those that were added again while in work included."""
        depths = {CHANGE: 0, **dict(self._queue.sizes())}
        for item in self._processing:
            wanted = self._dirty.get(item)
            if wanted is not None:
                priority = wanted[2]
                depths[priority] = depths.get(priority, 0) + 1
        return depths

    def _wait_until_drained(self, timeout: float | None) -> bool:
        give_up_at = None if timeout is None else self._monotonic() + timeout
        while self._processing and self._draining:
            left = None if give_up_at is None else give_up_at - self._monotonic()
            if left is not None and left <= _TICK:
                break
            self._clock.wait(self._drained, left)
        return not self._processing


def _earlier(one: float | None, other: float | None) -> float | None:
    """Return the smaller of two moments, either of which may be never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
