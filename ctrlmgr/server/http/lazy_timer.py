"""A timer that is set for every request and runs out for hardly any.

Guarantees: `call` is called once `seconds` have passed since the last `start` without a `cancel`, not before; setting
and cancelling cost no timer of the event loop, since the one that is there only looks whether it is time when it runs
out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LazyTimer:
    """See the module's docstring; used on the event loop only."""

    __slots__ = ("_call", "_due", "_handle", "_loop", "_seconds")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, call: Callable[[], object]) -> None:
        """Call `call` on `loop` when `seconds` have passed."""
        self._loop = loop
        self._seconds = seconds
        self._call = call
        self._due: float | None = None
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to wait, from now on."""
        self._due = self._loop.time() + self._seconds
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds, self._look)

    def cancel(self) -> None:
        """Wait no longer."""
        self._due = None

    def close(self) -> None:
        """Cancel, and keep nothing alive."""
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
    """Stand for what is to be called, once it no longer is."""
