"""Counts, per period, the frames that cost the server more than the client.

Guarantees: the server closes a connection before the client has sent twice the allowed number of costly frames. The
counter reads the clock only if the limit is exceeded.
"""

from __future__ import annotations

import asyncio

from ctrlmgr.http.http2.frames import Code, ConnectionFault


class Flood:
    """A counter of costly frames on one connection. Used on the event loop's thread only."""

    __slots__ = ("_count", "_ends", "_loop", "_most", "_seconds", "_what")

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int, seconds: float, what: str) -> None:
        """Create a counter that allows `most` frames within `seconds`; `what` is the error message for the client."""
        self._loop = loop
        self._most = most
        self._seconds = seconds
        self._what = what
        self._count = 0
        self._ends = loop.time() + seconds

    def add(self, count: int = 1) -> None:
        """Add `count` to the number of costly frames; raises `ConnectionFault` if the limit is exceeded."""
        self._count += count
        if self._count <= self._most:
            return
        now = self._loop.time()
        if now < self._ends:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, self._what)
        self._count, self._ends = count, now + self._seconds

    def make_up(self) -> None:
        """Subtract one from the count for a useful request; the count is never less than `-most`."""
        self._count = max(self._count - 1, -self._most)
