"""Reading into one buffer: what stands between a transport and its connection.

uvloop reads TLS into a fresh 256 KiB for each piece that comes, unless the protocol lends it a buffer. All connections
of a loop can share one, since what is read is handed on before anything else is read: that spares each request the
allocation, and each idle watcher the heap that would be torn by it (see `interpreter.tune`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from ctrlmgr.server.http.stream import StreamingProtocol

_SIZE = 64 * 1024


class BufferedConnection(asyncio.BufferedProtocol):
    """Passes everything on to a `StreamingProtocol`."""

    __slots__ = ("_connection", "_view")

    def __init__(self, view: memoryview, **uvicorn: Any) -> None:
        """Read into `view`; the rest is what uvicorn makes its protocols of."""
        self._connection = StreamingProtocol(**uvicorn)
        self._view = view

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._connection.connection_made(transport)  # type: ignore[arg-type]  # uvicorn listens for streams only

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the buffer."""
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what is in it."""
        self._connection.data_received(bytes(self._view[:nbytes]))

    def eof_received(self) -> None:
        """Note that the client sends no more."""
        self._connection.eof_received()

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Note that it does again."""
        self._connection.resume_writing()


class BufferedConnections:
    """Makes the connections of one server."""

    def __init__(self) -> None:
        """Make the buffer that they share."""
        self._view = memoryview(bytearray(_SIZE))

    def __call__(self, **uvicorn: Any) -> BufferedConnection:
        """Make a connection of what uvicorn gives its protocols."""
        return BufferedConnection(self._view, **uvicorn)
