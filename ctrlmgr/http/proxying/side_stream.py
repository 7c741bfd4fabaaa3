"""Reads and writes a connection that has switched protocols, as coroutines.

Guarantees:
- Bytes are read in the order in which they arrived, including those that arrived with the request.
- At most `limit` bytes, plus one read of the connection, wait for their reader. The peer waits meanwhile.
- A writer exceeds the connection's write buffer by at most one piece.
"""

from __future__ import annotations

import asyncio

from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.http.tunnel import Side


class SideStream:
    """The bytes of one `Side` in both directions. Used on the event loop only."""

    __slots__ = ("_limit", "_received", "_side", "_waiting_reader", "_waiting_writer", "is_lost")

    def __init__(self, side: Side, limit: int) -> None:
        """Read from and write to `side`; at most `limit` bytes wait for `read`."""
        self.is_lost = False
        """Whether the connection is closed."""
        self._side = side
        self._limit = limit
        self._received = bytearray()
        self._waiting_reader: asyncio.Future[None] | None = None
        self._waiting_writer: asyncio.Future[None] | None = None
        side.attach(self)

    async def read(self) -> bytes:
        """Return the next received bytes; wait for them. Empty if the connection is closed."""
        if not (self._received or self.is_lost):
            self._side.resume_reading()
            self._waiting_reader = asyncio.get_running_loop().create_future()
            try:
                await self._waiting_reader
            finally:
                self._waiting_reader = None
        taken = bytes(self._received)
        self._received.clear()
        return taken

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait until the peer has read enough; raises `Disconnected`."""
        if not self.is_lost:
            self._side.write(data)
        if self._side.is_paused and not self.is_lost:
            self._waiting_writer = asyncio.get_running_loop().create_future()
            try:
                await self._waiting_writer
            finally:
                self._waiting_writer = None
        if self.is_lost:
            raise Disconnected

    # Methods that the side calls.

    def receive(self, data: bytes) -> None:
        """Add received bytes."""
        self._received += data
        if len(self._received) > self._limit:
            self._side.pause_reading()
        _wake(self._waiting_reader)

    def resume(self) -> None:
        """Note that the peer reads again."""
        _wake(self._waiting_writer)

    def end(self) -> None:
        """Note that the connection is closed. Bytes that arrived before can still be read."""
        self.is_lost = True
        _wake(self._waiting_reader)
        _wake(self._waiting_writer)


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
