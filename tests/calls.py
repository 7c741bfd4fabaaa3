"""How much work something is, by a measure that no neighbour changes: the calls that the interpreter makes for it.

A second is another number of steps on each machine, and on a busy one each time. The same work on the same input makes
the same calls, of functions in Python and in C. What one call in C does is not seen: see `robustness.attack.growth`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls(work: Callable[[], object]) -> int:
    """Return how many calls this thread makes in doing a piece of work."""
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
