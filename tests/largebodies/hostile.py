"""Jobs that no client can ask for: what a worker process does about the worst."""

from __future__ import annotations

import os
from typing import Any

from ctrlmgr.engine.operations import Operation


def greedy(engine: Any, size: int) -> Operation[int]:
    """Take so many bytes."""
    yield from ()
    return len(bytearray(size))


def endless(engine: Any) -> Operation[None]:
    """Never end."""
    yield from ()
    while True:
        pass


def mistaken(engine: Any) -> Operation[None]:
    """Make a mistake."""
    yield from ()
    raise ZeroDivisionError


def pid(engine: Any) -> Operation[int]:
    """Return the number of the process."""
    yield from ()
    return os.getpid()
