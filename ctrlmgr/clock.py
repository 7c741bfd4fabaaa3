"""Defines the interface of clocks, and the clock of the machine.

All other modules read the time and wait through a `Clock`, so that tests and replays can control the time.

Objects and events store times that `now` returns; no code compares these times to order events. Code that measures
deadlines uses `monotonic`. Code that waits for a condition with a timeout uses `wait`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Final, Protocol

_MONOTONIC: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # of UTC, and written so
_FIRST = (datetime.min - _NAIVE_EPOCH) // timedelta(microseconds=1)  # noqa: DTZ901  # as above
_LAST = (datetime.max - _NAIVE_EPOCH) // timedelta(microseconds=1)  # noqa: DTZ901  # as above
"""The range of RFC 3339 times, in microseconds since 1970."""
_SECONDS: Final = 64
"""The number of seconds whose formatted strings are cached."""
_latest = (0, "1970-01-01T00:00:00.")
"""The second of the last formatted time, and its formatted string. The last second and its string are kept because
consecutive times are mostly within the same second.
"""
_THREE_DIGITS: Final = tuple(f"{number:03d}" for number in range(1000))
"""The strings of small numbers are precomputed, because formatting a number takes as long as the rest of `format_time`.
"""


class Clock(Protocol):
    """The interface of clocks."""

    def now(self) -> int:
        """Return the time of the wall clock: microseconds since 1970, UTC."""

    def monotonic(self) -> float:
        """Return the time of a monotonic clock in seconds; only the difference of two results is meaningful."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` (held by the caller) for up to `timeout` seconds; return False after a timeout."""


def pause(clock: Clock, seconds: float) -> None:
    """Sleep for `seconds` on a clock; return immediately if `seconds` is not positive."""
    condition = threading.Condition()  # never notified
    with condition:
        clock.wait(condition, seconds)


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        """Create a clock that uses the machine's clocks."""
        # A request reads the monotonic clock about twenty times, so no Python function encloses the system call.
        self.monotonic: Callable[[], float] = partial(time.clock_gettime, _MONOTONIC)
        """Return the seconds since an arbitrary point in time, including the time of suspension if the system counts
        it.
        """

    def now(self) -> int:
        """Return the time of the wall clock: microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` for up to `timeout` seconds."""
        return condition.wait(timeout if timeout is None else min(timeout, threading.TIMEOUT_MAX))


class OtherTime:
    """A clock whose `now` is another time, such as the time of a recording; `wait` and `monotonic` use a real clock."""

    def __init__(self, now: Callable[[], int], clock: Clock) -> None:
        """Read the wall clock from `now` (microseconds since 1970), and use `clock` for the other methods."""
        self.now = now
        self.monotonic = clock.monotonic
        self.wait = clock.wait


def format_time(microseconds: int) -> str:
    """Return a wall-clock time in the format of Kubernetes' MicroTime: `2026-01-02T03:04:05.123456Z`."""
    global _latest
    began, text = _latest
    rest = microseconds - began
    if not 0 <= rest < 1_000_000:
        if not _FIRST <= microseconds <= _LAST:
            microseconds = _nearest(microseconds)
        second, rest = divmod(microseconds, 1_000_000)
        text = f"{_second(second)}."
        _latest = (microseconds - rest, text)
    return f"{text}{_THREE_DIGITS[rest // 1000]}{_THREE_DIGITS[rest % 1000]}Z"


def format_time_seconds(microseconds: int) -> str:
    """Return a wall-clock time in the format of Kubernetes' Time, in whole seconds: `2026-01-02T03:04:05Z`."""
    if not _FIRST <= microseconds <= _LAST:
        microseconds = _nearest(microseconds)
    return f"{_second(microseconds // 1_000_000)}Z"


def _nearest(microseconds: int) -> int:
    """Return a time in microseconds, clamped to the years 1 to 9999."""
    return min(max(microseconds, _FIRST), _LAST)


@lru_cache(_SECONDS)
def _second(second: int) -> str:
    """Return the formatted string of a second; the result is cached, because consecutive times often share a second."""
    return (_NAIVE_EPOCH + timedelta(seconds=second)).isoformat(timespec="seconds")


def parse_time(text: str) -> int:
    """Return an RFC 3339 time as microseconds since 1970; raises ValueError if the string is malformed."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)
