"""Everything that reads the time or waits does it through a `Clock`, so that tests and replay own both.

`now` goes into objects and events and is never used to order anything; `monotonic` is for deadlines; `wait` is
the one place where a thread sleeps on a condition with a timeout.
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
"""What RFC 3339 can say, in microseconds since 1970."""
_SECONDS: Final = 64
"""Seconds that are kept as they are written."""
_latest = (0, "1970-01-01T00:00:00.")
"""The second of which a time was written last, and how each time of it begins: most are of the same."""
_THREE_DIGITS: Final = tuple(f"{number:03d}" for number in range(1000))
"""To have a number formatted takes as long as all the rest of writing a time."""


class Clock(Protocol):
    """Time as the rest of ctrlmgr sees it."""

    def now(self) -> int:
        """Return the wall clock: microseconds since 1970, UTC."""

    def monotonic(self) -> float:
        """Return seconds that only grow; meaningful as differences."""

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` (held by the caller) up to `timeout` seconds; False if the time ran out."""


def pause(clock: Clock, seconds: float) -> None:
    """Sleep on a clock; no time at all if that is not positive."""
    condition = threading.Condition()  # which nobody notifies
    with condition:
        clock.wait(condition, seconds)


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        """Read the machine's own clocks."""
        # Asked twenty times a request: so there is no function of ours around the system's.
        self.monotonic: Callable[[], float] = partial(time.clock_gettime, _MONOTONIC)
        """Return seconds since an arbitrary moment, suspended time included where the system counts it."""

    def now(self) -> int:
        """Return the wall clock: microseconds since 1970, UTC."""
        return time.time_ns() // 1000

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        """Wait on `condition` up to `timeout` seconds."""
        return condition.wait(timeout if timeout is None else min(timeout, threading.TIMEOUT_MAX))


class OtherTime:
    """What the time is somewhere else, in a recording or in the past, while waiting goes by another clock."""

    def __init__(self, now: Callable[[], int], clock: Clock) -> None:
        """Take the wall clock from `now`, microseconds since 1970, and the rest from `clock`."""
        self.now = now
        self.monotonic = clock.monotonic
        self.wait = clock.wait


def format_time(microseconds: int) -> str:
    """Write a wall-clock time as Kubernetes' MicroTime: `2026-01-02T03:04:05.123456Z`."""
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
    """Write a wall-clock time as Kubernetes' Time, whole seconds: `2026-01-02T03:04:05Z`."""
    if not _FIRST <= microseconds <= _LAST:
        microseconds = _nearest(microseconds)
    return f"{_second(microseconds // 1_000_000)}Z"


def _nearest(microseconds: int) -> int:
    """Return the first or the last time there is, for what lies before the year 1 or after the year 9999."""
    return min(max(microseconds, _FIRST), _LAST)


@lru_cache(_SECONDS)
def _second(second: int) -> str:
    """Return the beginning of all times within a second: most of what is written at a time is of one or two."""
    return (_NAIVE_EPOCH + timedelta(seconds=second)).isoformat(timespec="seconds")


def parse_time(text: str) -> int:
    """Read an RFC 3339 time into microseconds since 1970; raises ValueError when it is not one."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - _EPOCH) // timedelta(microseconds=1)
