"""The processor time of another process (Linux)."""

from __future__ import annotations

import time

_SCHEDULED = 2
"""`CPUCLOCK_SCHED` (linux/posix-timers.h): the clock of a process by its id, as in `clock_getcpuclockid`."""


def spent(process: int) -> float:
    """Return the processor time of a process in seconds, with its ended threads."""
    return time.clock_gettime(~process << 3 | _SCHEDULED)
