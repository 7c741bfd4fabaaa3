"""A timer that is cheap to restart and rarely fires.

Guarantees: the timer calls `call` when `seconds` have passed since the last `start`, unless `cancel` was called.
`start` and `cancel` do not create or cancel a timer of the event loop. When the existing timer of the event loop fires,
it checks the time and restarts itself if necessary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LazyTimer:
    """A timer that is cheap to restart. Used on the event loop's thread only."""

    __slots__ = ("_call", "_due", "_handle", "_loop", "_seconds")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], object]) -> None:
        """Create a timer that calls `call` on `loop` after `seconds`."""
        self._loop = loop
        self._seconds = seconds
        self._call = call
        self._due: float | None = None
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the timer, or set a running timer to a new time."""
        self._due = self._loop.time() + self._seconds
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds, self._look)

    def cancel(self) -> None:
        """Stop the timer."""
        self._due = None

    @property
    def waited(self) -> float:
        """The seconds since the timer was started; 0 if it is stopped."""
        return 0.0 if self._due is None else self._seconds - (self._due - self._loop.time())

    def close(self) -> None:
        """Stop the timer, and drop its reference to `call`."""
        self._due = None
        self._call = _nothing
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _look(self) -> None:
        self._handle = None
        if self._due is None:
            return
        left = self._due - self._loop.time()
        if left > 0:
            self._handle = self._loop.call_later(left, self._look)
        else:
            self._due = None
            self._call()


def _nothing() -> None:
    """Do nothing; this function replaces `call` when the timer is closed."""
