"""The allowed and the measured cost of a hostile input, in seconds of CPU time.

The comparison detects inputs whose cost is many times too high. The allowed cost has a margin, because the same work
can take twice the time on a shared virtual machine. `test_price` measures the cost per byte more exactly, in function
calls.
"""

from __future__ import annotations

import time

from tests.robustness.attack.inputs import Input
from tests.robustness.attack.questions import PROTOBUF

PER_MEGABYTE = 1.0
PER_PROTOBUF_MEGABYTE = 4.0
"""Allowed seconds per byte; an empty element of a list takes two bytes in protobuf, and four in JSON."""

PER_REQUEST = 0.0005
"""Allowed seconds for each of many requests on a connection, whose cost does not depend on their bytes."""

AT_LEAST = 0.5
"""Allowed seconds for any input: twice the cost of the most expensive input of 70 KB on a machine without other work,
while other clients send requests.
"""

_ASKED = b" HTTP/1.1\r\n"
_WORK = 50_000
_USUAL = 0.01
"""CPU seconds that `_WORK` takes on a machine with two cores and no other work."""

_CPU_CLOCK = 2
"""The bits that convert a PID into the id of its CPU clock, as in `clock_getcpuclockid`."""


def allowed(given: Input) -> float:
    """Return the allowed CPU seconds of an input."""
    is_protobuf = given.headers.get("content-type") == PROTOBUF
    for_bytes = given.size / 1e6 * (PER_PROTOBUF_MEGABYTE if is_protobuf else PER_MEGABYTE)
    return max(for_bytes, given.body.count(_ASKED) * PER_REQUEST, AT_LEAST)


def slowness() -> float:
    """Return the factor, at least 1, by which the processor is currently slower than usual.

    The processor is slower while other programs use its caches.
    """
    began = time.process_time()
    sorted(str(number) for number in range(_WORK))
    return max((time.process_time() - began) / _USUAL, 1.0)


def processor(pid: int) -> float:
    """Return the CPU seconds of a process; return 0 if the process has ended (Linux)."""
    try:
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    except OSError:
        return 0.0
