"""Measures work by the number of function calls of the interpreter, which other programs do not influence.

The number of instructions in a second differs between machines and varies with their load. Equal work on equal input
makes equal calls of functions in Python and in C. The work within one C function is not measured: see
`robustness.attack.growth`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls that this thread makes for some work."""
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
