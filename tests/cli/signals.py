"""Starts processes with the signal dispositions of a process that a user starts in a terminal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_usual(number: signal.Signals) -> Iterator[None]:
    """Restore the default action of a signal for processes that start within the block.

    The parent of the test process may ignore the signal: `nohup` ignores SIGHUP, and a shell script's `&` ignores
    SIGINT.
    """
    usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        yield
    finally:
        signal.signal(number, before)
