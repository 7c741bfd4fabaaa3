"""The virtual time of a replay, which follows the recording.

Guarantees: `ReplayClock` never goes backward. The clock advances only if a method advances the clock, or if the
replay's thread waits on the clock. `ReplayClock` never blocks. `LogClock` returns the virtual time for events but waits
in real time.
"""

from __future__ import annotations

import threading

from ctrlmgr.clock import Clock, SystemClock

_MICROSECONDS = 1_000_000


class ReplayClock:
    """A `Clock` for the one thread on which queues, controllers and the replay run alternately."""

    def __init__(self) -> None:
        """Create a clock that starts at 1970; the first call of `advance_to` sets the start time."""
        self._now = 0
        self._origin = 0  # the start time, subtracted so that `monotonic` is small and exact to the microsecond

    def now(self) -> int:
        """Return the virtual time in microseconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """Return the virtual seconds since the replay began."""
        return (self._now - self._origin) / _MICROSECONDS

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Advance by `timeout` seconds at once, because no other thread could notify `condition`.

        Raises RuntimeError if no timeout is given, because such a wait would never end.
        """
        if timeout is None:
            raise RuntimeError("a replay has one thread: a wait without a timeout never ends")
        self.advance(timeout)
        return False

    def advance_to(self, now: int) -> None:
        """Advance to `now`, in microseconds since 1970; do nothing if `now` is in the past."""
        if not self._origin:
            self._origin = self._now = now
        elif now > self._now:
            self._now = now

    def advance(self, seconds: float) -> None:
        """Advance by `seconds`, but at least by one microsecond."""
        self._now += max(1, round(seconds * _MICROSECONDS))


class LogClock:
    """The `Clock` of a replay's event log; the log's committer and followers wait in real time."""

    def __init__(self, replay: Clock) -> None:
        """Create a clock that returns the time of `replay` for events."""
        self._replay = replay
        self._system = SystemClock()

    def now(self) -> int:
        """Return the virtual time in microseconds since 1970."""
        return self._replay.now()

    def monotonic(self) -> float:
        """Return the machine's monotonic time in seconds."""
        return self._system.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` in real time."""
        return self._system.wait(condition, timeout)
