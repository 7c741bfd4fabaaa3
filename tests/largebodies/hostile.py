"""Jobs that clients cannot request; they test how a worker process handles the worst case."""

from __future__ import annotations

import os
from typing import Any

from ctrlmgr.engine.operations import Operation


def greedy(engine: Any, size: int) -> Operation[int]:
    """Allocate this number of bytes of memory."""
    yield from ()
    return len(bytearray(size))


def endless(engine: Any) -> Operation[None]:
    """Never end."""
    yield from ()
    while True:
        pass


def mistaken(engine: Any) -> Operation[None]:
    """Raise an unexpected error."""
    yield from ()
    raise ZeroDivisionError


def pid(engine: Any) -> Operation[int]:
    """Return the PID."""
    yield from ()
    return os.getpid()
