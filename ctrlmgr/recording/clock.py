"""Time in a replay: it stands where the recording is, and is not waited for.

Guarantees: `ReplayClock` never goes back, moves only when it is told to or when its one thread waits, and never
blocks. `LogClock` stamps events with that time but waits for databases in the machine's.
"""

from __future__ import annotations

import threading

from ctrlmgr.clock import Clock, SystemClock

_MICROSECONDS = 1_000_000


class ReplayClock:
    """A `Clock` for one thread: queues, controllers and the driver all run on it in turn."""

    def __init__(self) -> None:
        """Start at 1970; the first `advance_to` sets the scene and takes no time."""
        self._now = 0
        self._origin = 0  # kept apart so that `monotonic` is small, hence exact to the microsecond

    def now(self) -> int:
        """Return where the replay is, microseconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds since the replay began."""
        return (self._now - self._origin) / _MICROSECONDS

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Let `timeout` seconds pass at once: there is no other thread that could notify `condition`.

        Raises RuntimeError without a timeout, since that wait would never end.
        """
        if timeout is None:
            raise RuntimeError("a replay has one thread: what it waits for without a timeout never comes")
        self.advance(timeout)
        return False

    def advance_to(self, now: int) -> None:
        """Move to `now`, microseconds since 1970; stay if that is in the past."""
        if not self._origin:
            self._origin = self._now = now
        elif now > self._now:
            self._now = now

    def advance(self, seconds: float) -> None:
        """Move on by `seconds`, at least a microsecond, so that what was due in that time is due now."""
        self._now += max(1, round(seconds * _MICROSECONDS))


class LogClock:
    """The `Clock` for a replay's event log: its committer and its followers wait in real time."""

    def __init__(self, replay: Clock) -> None:
        """Stamp events with `replay`'s time."""
        self._replay = replay
        self._system = SystemClock()

    def now(self) -> int:
        """Return where the replay is, microseconds since 1970."""
        return self._replay.now()

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return self._system.monotonic()

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` in real time."""
        return self._system.wait(condition, timeout)
