"""Signals as processes know them that a person starts in a terminal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_usual(number: signal.Signals) -> Iterator[None]:
    """Make a signal end processes that start within the block, unless they handle it.

    What started the tests may have it ignored: `nohup` does so with SIGHUP, a script's `&` with SIGINT.
    """
    usual = signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)
    try:
        yield
    finally:
        signal.signal(number, before)
