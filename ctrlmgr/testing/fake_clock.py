"""A clock whose time changes only when a test steps it.

Guarantees:
- Time changes only in the methods `step` and `set`.
- A step fires the deadlines that it passes in their order. While a deadline fires, the clock has the time of the
  deadline. A thread that waits until 30 and then until 50 reads the times 30 and 50, even if one step passes both.
- After a step has notified a thread, the thread does not count as waiting until it blocks again. Therefore
  `wait_for_waiters(1); step(30); wait_for_waiters(1); step(20)` cannot overtake the thread.
- If a thread never blocks (`get(timeout=0)`), the test needs no other thread to step the clock.

A thread that was notified by another thread, and has not run yet, still counts as waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass

_MICROSECONDS = 1_000_000


@dataclass(eq=False, slots=True)
class _Waiter:
    thread: threading.Thread
    condition: threading.Condition
    deadline: int | None
    fired: bool = False


class FakeClock:
    """A `Clock` for tests and simulations. Only one thread may step the clock.

    Any number of threads may read the clock or wait on it.
    """

    def __init__(self, now_us: int = 1_767_225_600_000_000, *, patience: float = 1.0) -> None:
        """Create a clock that starts at `now_us` (microseconds since 1970; by default the beginning of 2026).

        `patience` is the maximum time, in real seconds, that a step waits until the notified threads block again. A
        step takes the whole `patience` only if a notified thread does not block again.
        """
        # The microseconds since this clock was created. The value is an integer, so that three steps of 0.1 are 0.3.
        self._elapsed = 0
        # `now()` always returns `_epoch + _elapsed`.
        self._epoch = now_us
        self._patience = patience
        # This lock guards all attributes of the instance. Never held while a waiter's condition is acquired.
        self._changed = threading.Condition(threading.Lock())
        # The threads that block in `wait` and that no step has notified.
        self._waiters: list[_Waiter] = []

    def now(self) -> int:
        """Return the wall clock's time in microseconds since 1970."""
        return self._epoch + self._elapsed

    def monotonic(self) -> float:
        """Return the sum of all steps of the clock so far, in seconds."""
        return self._elapsed / _MICROSECONDS

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition`, which the caller holds, until notified (True) or until time passes `timeout` (False).

        A timeout of less than half a microsecond returns False without releasing the condition.
        """
        micros = None if timeout is None else round(timeout * _MICROSECONDS)
        if micros is not None and micros <= 0:
            return False
        with self._changed:
            deadline = None if micros is None else self._elapsed + micros
            waiter = _Waiter(threading.current_thread(), condition, deadline)
            self._waiters.append(waiter)
            self._changed.notify_all()
        condition.wait()
        with self._changed:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return not waiter.fired

    def step(self, seconds: float) -> None:
        """Advance time, and fire the deadlines in order; raises ValueError for a negative step."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        target = self._elapsed + round(seconds * _MICROSECONDS)
        while (deadline := self._next_deadline(target)) is not None:
            self._elapsed = deadline
            woken = self._wake(deadline)
            if deadline < target:
                self._wait_until_blocked(woken)
        self._elapsed = target

    def set(self, now_us: int) -> None:
        """Set the wall clock to `now_us`.

        A later time counts as a step; an earlier time changes only the wall clock.
        """
        ahead = now_us - self.now()
        if ahead >= 0:
            self.step(ahead / _MICROSECONDS)
        self._epoch = now_us - self._elapsed

    def wait_for_waiters(self, n: int, timeout: float = 10.0) -> None:
        """Wait until at least `n` threads block in `wait`.

        Raises TimeoutError if fewer threads block after `timeout` real seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._waiters) >= n, timeout):
                raise TimeoutError(f"{len(self._waiters)} of {n} threads wait on the clock")

    def next_deadline_in(self) -> float | None:
        """Return the seconds until the earliest deadline; None if there is no deadline."""
        with self._changed:
            deadlines = [waiter.deadline for waiter in self._waiters if waiter.deadline is not None]
            return (min(deadlines) - self._elapsed) / _MICROSECONDS if deadlines else None

    def _next_deadline(self, target: int) -> int | None:
        with self._changed:
            due = [w.deadline for w in self._waiters if w.deadline is not None and w.deadline <= target]
            return min(due, default=None)

    def _wake(self, deadline: int) -> Collection[threading.Thread]:
        """Notify all threads whose deadline has passed, and remove them from the waiters.

        A condition can only notify all of its waiters, so waiters whose deadline has not passed are also notified and
        removed. The notified waiters handle this notification like any other notification: every waiter checks its
        condition again.
        """
        with self._changed:
            due = [w for w in self._waiters if w.deadline is not None and w.deadline <= deadline]
            for waiter in due:
                waiter.fired = True
            conditions = {waiter.condition for waiter in due}
            woken = {w.thread for w in self._waiters if w.condition in conditions}
            self._waiters = [w for w in self._waiters if w.condition not in conditions]
        for condition in conditions:
            # A waiter holds its condition from its registration until it blocks. Therefore the waiter blocks when the
            # condition is acquired here.
            with condition:
                condition.notify_all()
        return woken

    def _wait_until_blocked(self, woken: Collection[threading.Thread]) -> None:
        """Wait until the notified threads block again or have ended, at most `patience` real seconds."""
        pause = 0.01
        with self._changed:
            for _ in range(max(1, round(self._patience / pause))):
                blocked = {waiter.thread for waiter in self._waiters}
                if all(thread in blocked or not thread.is_alive() for thread in woken):
                    return
                self._changed.wait(pause)
