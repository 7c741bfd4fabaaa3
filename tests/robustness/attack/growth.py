"""How the work that an input causes grows with its size: by the processor's time, as a ratio and never as a limit.

A piece of work is timed at two sizes, the larger `FACTOR` times the smaller. If it is linear the times differ by about
that; if it is quadratic by its square. What lies between is decided at `WORST`. A machine that is busy makes both
slower, and the smallest of several tries is what counts: what seems to grow too fast is tried again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

FACTOR = 8
WORST = 3.0
"""How many times more than in proportion the larger input may cost."""

_LEAST = 0.002
"""Seconds below which a time says more about the machine than about the work."""

_TRIES = 2
_AGAIN = 8
"""How many times more it is timed, at both sizes, where it seems to grow too fast."""

_GROWN = 64
"""How far the sizes are increased until the smaller one takes long enough."""


def growth(make: Callable[[int], Any], work: Callable[[Any], object], size: int) -> float:
    """Return how much more than in proportion `work` costs on a larger input; 1.0 is linear.

    `make` makes an input of a size. Errors are part of the work: a refusal is timed like an answer.
    """
    small = _seconds(make(size), work)
    for _ in range(6):
        if small >= _LEAST or size >= _GROWN * 10_000:
            break
        size *= 2
        small = _seconds(make(size), work)
    large = _seconds(make(size * FACTOR), work)
    for _ in range(_AGAIN):
        if large <= WORST * FACTOR * max(small, _LEAST):
            break
        small = min(small, _seconds(make(size), work))
        large = min(large, _seconds(make(size * FACTOR), work))
    return large / max(small, _LEAST) / FACTOR


def _seconds(given: Any, work: Callable[[Any], object]) -> float:
    return min(_once(given, work) for _ in range(_TRIES))


def _once(given: Any, work: Callable[[Any], object]) -> float:
    gc.collect(0)  # the young alone: beside what thousands of tests have left in a process, all take seconds
    gc.disable()
    began = time.thread_time()
    try:
        work(given)
    except Exception as error:  # whatever it comes to is part of what is timed
        str(error)
    finally:
        spent = time.thread_time() - began
        gc.enable()
    return spent
