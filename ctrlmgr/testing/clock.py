"""A clock that stands still until a test steps it.

Guarantees:
- Time moves only in `step` and `set`, and never in the middle of a thread's turn by itself.
- A step fires the deadlines it passes one after the other, each at its own moment: who waits until 30 and then
  until 50 sees 30 and then 50, however far the step goes.
- A waiter that a step has woken is forgotten at once; it counts again only when it has blocked again. So
  `wait_for_waiters(1); step(30); wait_for_waiters(1); step(20)` cannot overtake the thread it drives.
- A single thread that never blocks (`get(timeout=0)`) needs no other to step for it.

What it cannot see is a thread that another has notified and that has not run yet: it still counts as
waiting.
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
    """A `Clock` for tests and simulations; one thread steps it, any number read it and wait on it."""

    def __init__(self, now_us: int = 1_767_225_600_000_000, *, patience: float = 1.0) -> None:
        """Start at `now_us` (microseconds since 1970; by default the first moment of 2026).

        `patience` is how long, in real seconds, a step that goes past a deadline waits for the threads it has
        woken to block again before it moves on; it is only ever used up by a thread that went off to do
        something else.
        """
        # Microseconds since this clock was made. Whole numbers, so that stepping by 0.1 three times is 0.3.
        self._elapsed = 0
        # now() is always _epoch + _elapsed.
        self._epoch = now_us
        self._patience = patience
        # Guards everything here. Never held while a waiter's own condition is being taken.
        self._changed = threading.Condition(threading.Lock())
        # Exactly the threads that block in `wait` and that no step has woken.
        self._waiters: list[_Waiter] = []

    def now(self) -> int:
        """Return the wall clock: microseconds since 1970."""
        return self._epoch + self._elapsed

    def monotonic(self) -> float:
        """Return the seconds stepped so far."""
        return self._elapsed / _MICROSECONDS

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Block on `condition` (held by the caller) until notified (True) or until time is stepped past `timeout`.

        Less than half a microsecond is no wait at all: it returns False without letting go of the condition.
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
        """Move time forward, firing the deadlines on the way in order; raises ValueError for a negative step."""
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
        """Set the wall clock to `now_us`: forward is a step, backward moves the wall clock alone."""
        ahead = now_us - self.now()
        if ahead >= 0:
            self.step(ahead / _MICROSECONDS)
        self._epoch = now_us - self._elapsed

    def wait_for_waiters(self, n: int, timeout: float = 10.0) -> None:
        """Return once at least `n` threads block in `wait`; raises TimeoutError after `timeout` real seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._waiters) >= n, timeout):
                raise TimeoutError(f"{len(self._waiters)} of {n} threads wait on the clock")

    def next_deadline_in(self) -> float | None:
        """Return the seconds until the earliest deadline that is waited for, None if there is none."""
        with self._changed:
            deadlines = [waiter.deadline for waiter in self._waiters if waiter.deadline is not None]
            return (min(deadlines) - self._elapsed) / _MICROSECONDS if deadlines else None

    def _next_deadline(self, target: int) -> int | None:
        with self._changed:
            due = [w.deadline for w in self._waiters if w.deadline is not None and w.deadline <= target]
            return min(due, default=None)

    def _wake(self, deadline: int) -> Collection[threading.Thread]:
        """Wake all that are due, and forget them.

        A condition can only wake all of its waiters, so those that are not due are woken and forgotten with the
        others; to them it looks like a notification, after which every caller looks again.
        """
        with self._changed:
            due = [w for w in self._waiters if w.deadline is not None and w.deadline <= deadline]
            for waiter in due:
                waiter.fired = True
            conditions = {waiter.condition for waiter in due}
            woken = {w.thread for w in self._waiters if w.condition in conditions}
            self._waiters = [w for w in self._waiters if w.condition not in conditions]
        for condition in conditions:
            # A waiter holds its condition from registering until it blocks, so taking it here means: it blocks.
            with condition:
                condition.notify_all()
        return woken

    def _wait_until_blocked(self, woken: Collection[threading.Thread]) -> None:
        """Wait until the woken threads block again or have ended, at most `patience` real seconds."""
        pause = 0.01
        with self._changed:
            for _ in range(max(1, round(self._patience / pause))):
                blocked = {waiter.thread for waiter in self._waiters}
                if all(thread in blocked or not thread.is_alive() for thread in woken):
                    return
                self._changed.wait(pause)
