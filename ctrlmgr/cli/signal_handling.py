"""Handles Ctrl-C for long commands, so that they stop between two steps and leave no step incomplete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Raised when the user has stopped the command."""


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets; a second signal ends the process."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
