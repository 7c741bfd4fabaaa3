"""Functions that measure and print comparisons: the processor time of one call, for our code and an alternative."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

_ROUNDS = 7
_LEAST = 0.02
"""Duration of one round in seconds; a round is so long that the resolution of the clock does not matter."""


def alternative(module: str, package: str) -> ModuleType:
    """Import and return a module of a package that the project does not depend on; exit if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SystemExit(f"this compares with {package}: pip install {package}") from error


def microseconds(call: Callable[..., object], *arguments: object) -> float:
    """Return the processor time of `call(*arguments)` in seconds: the minimum of several rounds."""
    began = time.process_time()
    call(*arguments)
    count = max(1, round(_LEAST / max(time.process_time() - began, 1e-7)))
    return min(_round(call, arguments, count) for _ in range(_ROUNDS)) * 1e6


def once(call: Callable[..., object], *arguments: object) -> tuple[float, str]:
    """Return the processor time in microseconds of a single call, and the name of the error that it raised.

    The name is empty if the call raised no error.
    """
    began = time.process_time()
    try:
        call(*arguments)
    except Exception as error:  # the error that an attacker's input causes is a part of the result
        return (time.process_time() - began) * 1e6, type(error).__name__
    return (time.process_time() - began) * 1e6, ""


def row(name: str, ours: float, others: float, note: str = "") -> None:
    """Print one comparison in microseconds, with the ratio of our time to the alternative's time."""
    print(f"{name:<44} ours {ours:>12,.1f} us   other {others:>14,.1f} us   ratio {ours / others:>8.3f}  {note}")


def _round(call: Callable[..., object], arguments: tuple[object, ...], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        call(*arguments)
    return (time.process_time() - began) / count
