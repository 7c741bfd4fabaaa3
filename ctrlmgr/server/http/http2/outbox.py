"""What goes out on a connection: pieces of frames, in as few writes as can be.

Guarantees:
- What is sent in one turn of the event loop goes out in one write at the end of it, or in several where it is long: a
  write is a system call, and TLS makes at least one record of each.
- In order, and at once when it is asked to (`flush`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ctrlmgr.server.http.stream import ONE_WRITE


class Outbox:
    """See the module's docstring; used on the event loop only."""

    __slots__ = ("_is_held", "_loop", "_pieces", "_size", "_write")

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], None]) -> None:
        """Have `write` send what has come together."""
        self._loop = loop
        self._write = write
        self._pieces: list[bytes | memoryview] = []
        self._size = 0
        self._is_held = False  # whether `flush` will be called without being asked for

    def send(self, *pieces: bytes | memoryview) -> None:
        """Send pieces of frames soon, with what else is sent by then."""
        self._pieces += pieces
        self._size += sum(map(len, pieces))
        if self._size >= ONE_WRITE:
            self._send()
        elif not self._is_held:
            self._is_held = True
            self._loop.call_soon(self.flush)

    def hold(self) -> None:
        """Leave it to the caller to flush."""
        self._is_held = True

    def flush(self) -> None:
        """Send what has come together."""
        self._is_held = False
        if self._pieces:
            self._send()

    def close(self) -> None:
        """Send nothing any more, and keep nothing alive."""
        self._pieces.clear()
        self._write = _nothing

    def _send(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._write(b"".join(pieces))


def _nothing(data: bytes) -> None:
    """Stand for a connection that is gone."""
