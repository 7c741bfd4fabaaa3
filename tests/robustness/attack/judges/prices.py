"""The allowed and the measured cost of an input, in seconds of CPU time.

This detects inputs that cost many times too much. On a shared virtual machine, the same work can take twice the time.
`test_price` counts the exact cost per byte in function calls.
"""

from __future__ import annotations

import time

from tests.robustness.attack.inputs import Input
from tests.robustness.attack.questions import PROTOBUF

PER_MEGABYTE = 1.0
PER_PROTOBUF_MEGABYTE = 4.0
"""Seconds per byte; an empty element of a list takes two bytes of protobuf, and four of JSON."""

PER_REQUEST = 0.0005
"""Seconds for each of many requests on a connection, whose cost does not depend on their bytes."""

AT_LEAST = 0.5
"""Seconds: twice the cost of the most expensive input of 70 KB on a machine without other work, with requests of
others.
"""

_ASKED = b" HTTP/1.1\r\n"
_WORK = 50_000
_USUAL = 0.01
"""CPU seconds of `_WORK` on a machine with two cores and no other work."""

_CPU_CLOCK = 2
"""The bits that convert a PID into the id of its CPU clock, as in `clock_getcpuclockid`."""


def allowed(given: Input) -> float:
    """Return the allowed CPU seconds of an input."""
    is_protobuf = given.headers.get("content-type") == PROTOBUF
    for_bytes = given.size / 1e6 * (PER_PROTOBUF_MEGABYTE if is_protobuf else PER_MEGABYTE)
    return max(for_bytes, given.body.count(_ASKED) * PER_REQUEST, AT_LEAST)


def slowness() -> float:
    """Return the factor by which the processor is slower than usual now, at least 1.

    Programs that share the caches of a processor slow each other down.
    """
    began = time.process_time()
    sorted(str(number) for number in range(_WORK))
    return max((time.process_time() - began) / _USUAL, 1.0)


def processor(pid: int) -> float:
    """Return the CPU seconds of a process, 0 if it has ended (Linux)."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    except OSError:
        return 0.0
