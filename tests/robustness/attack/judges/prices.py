"""The allowed and the measured cost of an input, in seconds of processor time.

This finds what is many times too dear. On a virtual machine beside others the same work takes up to twice the seconds.
What a byte costs exactly, `test_price` counts in calls.
"""

from __future__ import annotations

import time

from tests.robustness.attack.inputs import Input
from tests.robustness.attack.questions import PROTOBUF

PER_MEGABYTE = 1.0
PER_PROTOBUF_MEGABYTE = 4.0
"""Seconds; an empty element of a list takes two bytes of protobuf, and four of JSON."""

PER_REQUEST = 0.0005
"""Seconds for each of many requests of a connection: what a request costs is not its bytes."""

AT_LEAST = 0.5
"""Seconds: twice what the dearest input of 70 KB takes on a quiet machine, with what others ask meanwhile."""

_ASKED = b" HTTP/1.1\r\n"
_WORK = 50_000
_USUAL = 0.01
"""Seconds of the processor that `_WORK` takes on a machine of two cores that does nothing else."""

_CPU_CLOCK = 2
"""What makes a clock of the number of a process, as `clock_getcpuclockid` does."""


def allowed(given: Input) -> float:
    """Return the seconds that an input may cost."""
    is_protobuf = given.headers.get("content-type") == PROTOBUF
    for_bytes = given.size / 1e6 * (PER_PROTOBUF_MEGABYTE if is_protobuf else PER_MEGABYTE)
    return max(for_bytes, given.body.count(_ASKED) * PER_REQUEST, AT_LEAST)


def slowness() -> float:
    """Return how many times as long as usual the processor takes for some work now, 1 at least.

    Programs that share the caches of a processor make each other slow.
    """
    began = time.process_time()
    sorted(str(number) for number in range(_WORK))
    return max((time.process_time() - began) / _USUAL, 1.0)


def processor(pid: int) -> float:
    """Return the seconds of the processor that a process has had, 0 if it has ended (Linux)."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    except OSError:
        return 0.0
