"""Ctrl-C for commands that work for long: they stop between two steps, where nothing is left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """Work was ended because the user asked for it."""


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Yield what SIGINT or SIGTERM sets; a second signal ends the process as ever."""
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
