"""The workqueue has one lock and three sets; the docstring of the package lists its guarantees.

No thread waits for delayed items. A thread that calls `get` waits at most until the earliest delayed item is due, and
then queues this item itself.
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
"""Items that are due within half a microsecond count as due now, because times are sums of floats, and a shorter wait
is not useful.
"""


_Wanted: TypeAlias = tuple[float, Triggers, int]
"""The time when an item was added (monotonic seconds), with the item's triggers and priority."""


def _in_no_namespace(item: Hashable) -> str:
    return ""


class Delivery(msgspec.Struct, Generic[K], frozen=True):
    """An item that a worker has received from the queue, with the reasons for the delivery.

    `triggers` are all revisions for which the item was added, ascending and without duplicates. `attempt` is 1 for the
    first try, plus one for each rate-limited requeue since `forget` was last called for the item. `priority` is the
    highest priority with which the item was added. A worker that requeues the item to finish its work should requeue
    the item with this priority.
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
        """Create a queue whose metrics are labelled `name`; the default rate limiter is Kubernetes' own.

        Among items of one priority, the namespaces take turns; `namespace_of` returns the namespace of an item.
        """
        self.name = name
        self._clock = clock
        self._monotonic: Callable[[], float] = clock.monotonic
        self._limiter: RateLimiter[K] = limiter if limiter is not None else default_rate_limiter(clock)

        # This lock guards all attributes that follow.
        self._lock = threading.Lock()
        # The methods of the lock; for the three calls that every item passes, they are faster than `with`.
        self._acquire = self._lock.acquire
        self._release = self._lock.release
        # Notified so that, when items are queued, min(items, _waiting) of the waiting threads run.
        self._ready = threading.Condition(self._lock)
        # Notified when the last item in progress is done after `shut_down`, and when a caller aborts a drain.
        self._drained = threading.Condition(self._lock)

        # Orders the items for delivery. The queue contains the items of `_dirty` that are not in `_processing`, with
        # the same priorities.
        self._queue: ReadyItems[K] = ReadyItems(namespace_of)
        # The items that must be processed. Items that are also in `_processing` are not in `_queue` yet: `done` adds
        # them.
        self._dirty: dict[K, _Wanted] = {}
        # The items in progress, with the time of their start. Such items may also be in `_dirty`, but never in
        # `_queue`.
        self._processing: dict[K, float] = {}
        # The items that will be added later, independently of the three sets: an item can be both here and in a set.
        self._delays: Delays[K] = Delays()
        # The items that were rate limited and not forgotten since. Only for these, the limiter is called.
        self._limited: set[K] = set()

        # The number of threads in `_clock.wait`; each returns no later than the earliest time in `_delays`.
        self._waiting = 0
        self._shutting_down = False
        self._draining = False

        self._adds = 0
        self._retries = 0
        # The durations from add to get, and from get to done.
        self._queued = Durations()
        self._worked = Durations()
        watch_queue(self)

    def add(self, item: K, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        """Queue `item` with `triggers`; do nothing if the queue is shut down.

        An item that is already waiting keeps the higher of both priorities.
        """
        self._acquire()
        try:
            if not self._shutting_down:
                self._add(item, tuple(triggers), priority)
        finally:
            self._release()

    def add_after(self, item: K, delay: float, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> None:
        """Add `item` after `delay` seconds; if `delay` is not positive, add it at once.

        If the item is already delayed, the queue keeps the earlier of both times, the higher of both priorities, and
        the triggers of both additions.
        """
        with self._lock:
            if not self._shutting_down:
                self._add_after(item, delay, tuple(triggers), priority)

    def add_rate_limited(self, item: K, triggers: Iterable[Revision] = (), *, priority: int = CHANGE) -> float:
        """Add `item` after the delay that the rate limiter returns; return the delay in seconds."""
        delay = self._limiter.when(item)
        with self._lock:
            if not self._shutting_down:
                self._limited.add(item)
                self._add_after(item, delay, tuple(triggers), priority)
        return delay

    def forget(self, item: K) -> None:
        """Reset the rate limiter for `item`; the queue does not change."""
        with self._lock:
            self._limited.discard(item)
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often `item` was rate limited since `forget` was last called for it."""
        return self._limiter.num_requeues(item)

    def get(self, timeout: float | None = None) -> Delivery[K] | None:
        """Return the next item; the caller must call `done` for the item afterwards.

        Wait up to `timeout` seconds (None means forever), and return None if no item became ready. Raises `ShutDown` if
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
        """Mark `item` as done, and queue `item` again if it was added while it was in progress.

        Raises ValueError if the item is not in progress.
        """
        self._acquire()
        try:
            started_at = self._processing.pop(item, None)
            if started_at is None:
                raise ValueError(f"{item!r} is not being processed")
            self._worked.observe(self._monotonic() - started_at)
            dirty = self._dirty.get(item)
            if dirty is not None:
                self._push(item, dirty[2])
            if self._draining and not self._processing:
                self._drained.notify_all()
        finally:
            self._release()

    @contextmanager
    def processing(self, timeout: float | None = None) -> Iterator[Delivery[K] | None]:
        """Call `get` at the beginning of a `with` block, and `done` at the end of the block."""
        delivery = self.get(timeout)
        try:
            yield delivery
        finally:
            if delivery is not None:
                self.done(delivery.item)

    def next_ready_in(self) -> float | None:
        """Return the seconds until an item is ready; 0.0 if an item is ready now, None if no item waits."""
        with self._lock:
            now = self._monotonic()
            self._promote(now)
            if self._queue.size:
                return 0.0
            wake_at = self._delays.next_at()
            return None if wake_at is None else max(0.0, wake_at - now)

    def shut_down(self, *, drain: bool = False, timeout: float | None = None) -> bool:
        """Drop delayed items and all later additions; workers still receive the queued items.

        If `drain` is set, wait up to `timeout` seconds until no item is in progress; return whether no item is in
        progress. If another thread calls `shut_down` without `drain`, the drain ends early. If `drain` is not set,
        return True at once. `shut_down` may be called several times.
        """
        with self._lock:
            self._shutting_down = True
            self._draining = drain
            self._delays.clear()
            self._ready.notify_all()
            self._drained.notify_all()
            return self._wait_until_drained(timeout) if drain else True

    def reopen(self) -> None:
        """Accept items again after `shut_down`, like a new queue; drop the remaining items and all failure counts.

        Raises RuntimeError if any item is in progress.
        """
        with self._lock:
            if self._processing:
                raise RuntimeError(f"{self.name} still processes items")
            self._queue.clear()
            self._dirty.clear()
            self._delays.clear()
            limited, self._limited = self._limited, set()
            self._shutting_down = self._draining = False
        for item in limited:
            self._limiter.forget(item)

    def __len__(self) -> int:
        """Return the number of ready items, without the items in progress."""
        with self._lock:
            self._promote(self._monotonic())
            return self._queue.size

    def measure(self) -> QueueReading:
        """Return the current metrics of the queue.

        As in client-go, the depth includes items that were added again while they are in progress.
        """
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

    # The caller of the following methods must hold the lock.

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
        """Queue an item, and wake a thread for it unless enough are awake.

        `_waiting` counts a notified thread until the thread runs. If more items are queued than threads wait, earlier
        calls of `_push` have already notified all waiting threads. Therefore `_push` notifies each thread only once,
        and not for each item.
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
            # All threads are notified, because the wait of any thread may end before this time.
            self._ready.notify_all()

    def _promote(self, now: float) -> None:
        """Queue the delayed items that are due."""
        for item, delayed in self._delays.due(now + _TICK):
            self._add(item, delayed.triggers, delayed.priority)

    def _wait_until_ready(self, timeout: float | None) -> bool:
        """Wait until an item is queued; return False after `timeout` seconds."""
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
        """Return the number of waiting items by priority, including items in progress that were added again."""
        depths = {CHANGE: 0, **dict(self._queue.sizes())}
        for item in self._processing:
            dirty = self._dirty.get(item)
            if dirty is not None:
                priority = dirty[2]
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
    """Return the earlier of two times; None means never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
