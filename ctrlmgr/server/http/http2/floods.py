"""How often a client may do what costs the server more than the client: counts that start again after a while.

Guarantees: a client passes at most twice the count before its connection ends. Counting reads the clock only once the
count is exceeded.
"""

from __future__ import annotations

import asyncio

from ctrlmgr.server.http.http2.frames import Code, ConnectionFault


class Flood:
    """One count of a connection; used on the event loop only."""

    __slots__ = ("_count", "_ends", "_loop", "_most", "_seconds", "_what")

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int, seconds: float, what: str) -> None:
        """Allow `most` within `seconds`; `what` tells the client what it did too often."""
        self._loop = loop
        self._most = most
        self._seconds = seconds
        self._what = what
        self._count = 0
        self._ends = loop.time() + seconds

    def hear(self, count: int = 1) -> None:
        """Count `count` more; raises `ConnectionFault`."""
        self._count += count
        if self._count <= self._most:
            return
        now = self._loop.time()
        if now < self._ends:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, self._what)
        self._count, self._ends = count, now + self._seconds

    def make_up(self) -> None:
        """Count one less, for something useful that the client did; at most `most` of these are kept for later."""
        self._count = max(self._count - 1, -self._most)
