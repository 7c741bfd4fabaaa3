"""Measures the processor time of another process (Linux)."""

from __future__ import annotations

import time

_SCHEDULED = 2
"""Return the clock ID of a process by its PID, as `clock_getcpuclockid` does (`CPUCLOCK_SCHED` in posix-timers.h)."""


def spent(process: int) -> float:
    """Return the processor time of a process in seconds, including threads that have ended."""
    return time.clock_gettime(~process << 3 | _SCHEDULED)
