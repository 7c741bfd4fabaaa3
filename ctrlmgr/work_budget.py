"""Limits the work that clients' input can cause, counted in steps of about 0.3 µs.

`bounded(steps)` sets a budget of steps for the current thread, and `spend(steps)` subtracts steps from the budget. If
no budget is set, steps are not counted. Budgets count steps and not time, so the same input has the same result on
every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooMuchWork(Exception):
    """Raised if a computation exceeds its budget of steps."""

    def __init__(self) -> None:
        """Create an error with a message for logs; callers that catch this error show their own messages."""
        super().__init__("takes too many steps")


class _Meter(threading.local):
    left: int | None = None


_meter = _Meter()


def spend(steps: int) -> None:
    """Subtract steps from the budget of this thread; raises `TooMuchWork` if the budget is exceeded."""
    left = _meter.left
    if left is None:
        return
    _meter.left = left = left - steps
    if left < 0:
        raise TooMuchWork


@contextmanager
def bounded(steps: int) -> Iterator[None]:
    """Limit the steps in this block to `steps` and to the remaining outer budget; the steps reduce both budgets."""
    before = _meter.left
    _meter.left = given = steps if before is None else min(steps, before)
    try:
        yield
    finally:
        _meter.left = None if before is None else before - given + (_meter.left or 0)
