"""Collects audit events in batches, and delivers them on a separate thread.

Guarantees:
- `add` never blocks: if the buffer is full, `add` drops the event and counts the drop.
- A batch is delivered when the batch is full, or when the first event of the batch has waited for `max_wait` seconds.
  `stop` delivers the remaining events.
- If `qps` is set, at most `qps` batches are delivered per second, except during a burst.

Source: apiserver `plugin/pkg/audit/buffered/buffered.go`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from ctrlmgr import threads
from ctrlmgr.clock import Clock

T = TypeVar("T")


class Batching(NamedTuple):
    """The settings with which audit events are collected in batches."""

    buffer_size: int = 10_000
    """The maximum number of events that wait for delivery."""
    max_size: int = 1
    """The maximum number of events in a batch."""
    max_wait: float = 30.0
    """The maximum time in seconds that an event waits for its batch to fill."""
    qps: float = 0.0
    """The maximum number of batches per second; 0 means no limit."""
    burst: int = 1
    """The maximum number of batches in a burst that exceeds the rate."""


class Batches(Generic[T]):
    """Collects events in batches; only one thread may add events."""

    def __init__(
        self,
        batching: Batching,
        hand_on: Callable[[Sequence[T]], None],
        *,
        name: str,
        clock: Clock,
        dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        """Deliver each batch with `hand_on` on a thread named `name`; call `dropped` with the number of lost events."""
        self._batching = batching
        self._hand_on = hand_on
        self._clock = clock
        self._dropped = dropped
        self._waiting: deque[T] = deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_stopping = False
        self._first = 0.0  # when the oldest waiting event was added
        self._tokens, self._filled_at = float(batching.burst), clock.monotonic()
        self._name = name
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threads.start(self._name, self._run)

    def add(self, events: Sequence[T]) -> None:
        """Add audit events to the buffer of the next batches."""
        with self._lock:  # the bare lock is entered without a Python call, unlike the condition
            before = len(self._waiting)
            room = self._batching.buffer_size - before
            if len(events) > room:
                self._dropped(len(events) - room)
                events = events[:room]
            if not events:
                return
            if not before:
                self._first = self._clock.monotonic()
            self._waiting.extend(events)
            if not before or before < self._batching.max_size <= len(self._waiting):
                self._changed.notify()

    def stop(self) -> None:
        """Deliver the remaining events, and stop the thread."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            self._hand_on(batch)

    def _next(self) -> Sequence[T] | None:
        """Wait until the next batch is due and return it.

        Return None after `stop`, when all batches have been delivered.
        """
        with self._changed:
            while (pause := self._pause()) is None or pause > 0:
                if self._is_stopping and not self._waiting:
                    return None
                self._clock.wait(self._changed, pause)
            self._tokens -= 1
            batch = [self._waiting.popleft() for _ in range(min(self._batching.max_size, len(self._waiting)))]
            self._first = self._clock.monotonic()
            return batch

    def _pause(self) -> float | None:
        """Return the seconds until the next batch is due; 0 if a batch is due now, None if no event waits."""
        if not self._waiting:
            return None
        if self._is_stopping:
            return 0.0
        now = self._clock.monotonic()
        full = len(self._waiting) >= self._batching.max_size
        due = 0.0 if full else max(0.0, self._first + self._batching.max_wait - now)
        return max(due, self._until_allowed(now))

    def _until_allowed(self, now: float) -> float:
        qps = self._batching.qps
        if not qps:
            return 0.0
        self._tokens = min(float(self._batching.burst), self._tokens + (now - self._filled_at) * qps)
        self._filled_at = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / qps
