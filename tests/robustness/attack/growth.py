"""Measures how the work for an input grows with its size, as a ratio of CPU times and never as an absolute time.

The work is timed at two sizes; the larger is `FACTOR` times the smaller. For linear work, the ratio of times is about
`FACTOR`; for quadratic work, it is its square. `WORST` is the limit between both. A busy machine makes both sizes
slower. The smallest of several times counts, and work that seems to grow too fast is timed again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

FACTOR = 8
WORST = 3.0
"""The maximum ratio of the larger input's cost per unit to that of the smaller input."""

_LEAST = 0.002
"""The minimum seconds of a useful measurement; shorter times depend more on the machine than on the work."""

_TRIES = 2
_AGAIN = 8
"""The number of further measurements at both sizes, if the work seems to grow too fast."""

_GROWN = 64
"""The maximum size to which inputs grow until the smaller one takes long enough."""


def growth(make: Callable[[int], Any], work: Callable[[Any], object], size: int) -> float:
    """Return the ratio of the larger input's cost per unit to that of the smaller input; 1.0 is linear.

    `make` makes an input of a size. An error of `work` is not raised: a refusal is timed like an answer.
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
