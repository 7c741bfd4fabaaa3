"""Measures how the work for an input grows with the size of the input, as a ratio of CPU times and never as an absolute
time.

The work is timed at two sizes; the larger size is `FACTOR` times the smaller. For linear work, the ratio of the times
is about `FACTOR`; for quadratic work, the ratio is about the square of `FACTOR`. `WORST` is the limit between linear
and quadratic growth. A busy machine makes the work slower at both sizes. The smallest of several times counts, and work
that seems to grow too fast is measured again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

FACTOR = 8
WORST = 3.0
"""The maximum ratio of the larger input's cost per byte to the smaller input's cost per byte."""

_LEAST = 0.002
"""The minimum seconds of a useful measurement; shorter times depend more on the machine than on the work."""

_TRIES = 2
_AGAIN = 8
"""The number of further measurements at both sizes, if the work seems to grow too fast in the first measurement."""

_GROWN = 64
"""The maximum size to which inputs grow until the work for the smaller input takes long enough to be measured."""


def growth(make: Callable[[int], Any], work: Callable[[Any], object], size: int) -> float:
    """Return the ratio of the larger input's cost per byte to the smaller input's cost per byte; 1.0 means linear work.

    `make` creates an input of a given size. An error that `work` raises is ignored: a refusal is timed like a
    successful response.
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
    gc.collect(0)  # only the young generation: with all objects of earlier tests, a collection takes seconds
    gc.disable()
    began = time.thread_time()
    try:
        work(given)
    except Exception as error:  # errors are part of the timed work
        str(error)
    finally:
        spent = time.thread_time() - began
        gc.enable()
    return spent
