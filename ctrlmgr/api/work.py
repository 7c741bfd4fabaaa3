"""Bounds the work that what a client sent or stored can cause, in steps: about 0.3 µs each.

`bounded(steps)` sets the budget of a piece of work for this thread, `spend(steps)` draws from it. Steps that are spent
where no budget is set are not counted. Clocks decide nothing, so the same input has the same result on every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooMuchWork(Exception):
    """A piece of work takes more steps than it may take."""

    def __init__(self) -> None:
        """Say it for logs; those who catch it have their own words."""
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
    """Bound what is spent within to `steps`; it is drawn from the budget around it, if one is set, and bound by it."""
    before = _meter.left
    _meter.left = given = steps if before is None else min(steps, before)
    try:
        yield
    finally:
        _meter.left = None if before is None else before - given + (_meter.left or 0)
