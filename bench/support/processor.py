"""The processor time of another process (Linux)."""

from __future__ import annotations

import time

_SCHEDULED = 2
"""`CPUCLOCK_SCHED` (linux/posix-timers.h): the clock of a process by its number, as `clock_getcpuclockid` makes it."""


def spent(process: int) -> float:
    """Return the seconds of processor time that a process has used, with those of its threads that have ended."""
    return time.clock_gettime(~process << 3 | _SCHEDULED)
