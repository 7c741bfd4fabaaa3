"""Bounds the work that clients' input can cause, in steps of about 0.3 µs.

`bounded(steps)` sets the budget of a piece of work for this thread, `spend(steps)` draws from it. If no budget is set,
steps are not counted. Budgets count steps and not time, so the same input has the same result on every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooMuchWork(Exception):
    """A piece of work takes more steps than it may take."""

    def __init__(self) -> None:
        """Word it for logs; callers that catch it answer in words of their own."""
        super().__init__("takes too many steps")


class _Meter(threading.local):
    left: int | None = None


_meter = _Meter()


def spend(steps: int) -> None:
    """Count steps; raises `TooMuchWork`."""
    left = _meter.left
    if left is None:
        return
    _meter.left = left = left - steps
    if left < 0:
        raise TooMuchWork


@contextmanager
def bounded(steps: int) -> Iterator[None]:
    """Bound the steps spent within to `steps` and to the rest of the outer budget, which they are drawn from too."""
    before = _meter.left
    _meter.left = given = steps if before is None else min(steps, before)
    try:
        yield
    finally:
        _meter.left = None if before is None else before - given + (_meter.left or 0)
