"""Measures work by the number of function calls in the interpreter, which other programs do not influence.

The number of instructions per second differs between machines and varies with their load. The same work on the same
input makes the same calls of functions in Python and in C. The work within one C function is not measured here: see
`robustness.attack.growth`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """Return the number of function calls that this thread makes while it runs `work`."""
    made = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return made
