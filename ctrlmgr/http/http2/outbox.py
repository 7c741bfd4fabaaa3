"""Collects the output of an HTTP/2 connection, to send it in few writes.

Guarantees:
- All output of one turn of the event loop is sent at the end of the turn, in one write or, if it is long, in several
  writes. The number of writes matters because each write costs a system call and at least one TLS record.
- Output is sent in order; `flush` sends all of it at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ctrlmgr.http.response_stream import ONE_WRITE


class Outbox:
    """Collects the output of a connection. Used on the event loop's thread only."""

    __slots__ = ("_is_held", "_loop", "_pieces", "_size", "_write")

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], None]) -> None:
        """Create an outbox that sends the collected output with `write`."""
        self._loop = loop
        self._write = write
        self._pieces: list[bytes | memoryview] = []
        self._size = 0
        self._is_held = False  # whether a `flush` is scheduled or promised

    def send(self, *pieces: bytes | memoryview) -> None:
        """Queue parts of frames; they are sent at the end of this turn of the event loop."""
        self._pieces += pieces
        self._size += sum(map(len, pieces))
        if self._size >= ONE_WRITE:
            self._send()
        elif not self._is_held:
            self._is_held = True
            self._loop.call_soon(self.flush)

    def hold(self) -> None:
        """Disable the automatic flush at the end of this turn of the event loop; the caller must call `flush`."""
        self._is_held = True

    def flush(self) -> None:
        """Send the collected output."""
        self._is_held = False
        if self._pieces:
            self._send()

    def close(self) -> None:
        """Drop all pending output, and the reference to the connection."""
        self._pieces.clear()
        self._write = _nothing

    def _send(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._write(b"".join(pieces))


def _nothing(data: bytes) -> None:
    """Do nothing; this function replaces `write` when the connection is closed."""
