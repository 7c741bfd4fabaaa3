"""The body of one response, written in pieces while the client reads.

Guarantees:
- Each piece is written with one call, without a task. Several responses may share the bytes of a piece. Writes must be
  cheap, because an event for a thousand watchers needs a thousand writes.
- The amount of unread output is bounded. A connection reports a full buffer (`paused`). A writer that checks `paused`
  before each piece exceeds the buffer by at most one piece.
- A client that has stopped reading can be disconnected immediately (`abort`).
- A client never takes an incomplete response for a complete one, because the connection is closed, or the HTTP/2 stream
  is reset.
- A long response is written in pieces (`send_all`), each after the client has read the previous piece. Small writes
  limit memory, because TLS encrypts each write as a whole, into a buffer that keeps its size until the connection
  closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.framing import LAST_CHUNK, chunk, unchunked

ONE_WRITE = 64 * 1024
"""Maximum size of one write in bytes, which is also the size of the TLS buffer that a connection keeps."""

_TURN = 4
"""The number of pieces that are written before other tasks of the event loop run."""


class Disconnected(CtrlmgrError):
    """The client has disconnected, or has not read for too long."""

    default_message = "The client has disconnected, or has not read for too long."


class Framing(Enum):
    """The way in which a client detects the end of a body."""

    CHUNKED = "each piece says how long it is"
    PLAIN = "the head said how long the body is, the connection says where it ends, or closes there"
    NONE = "there is none: it is the answer to a HEAD"


class BodyWriter(Protocol):
    """The connection to which a body is written. Used on the event loop's thread only."""

    @property
    def is_paused(self) -> bool:
        """Return whether the client does not read its pending output."""

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the client does not read."""

    def abort(self) -> None:
        """Drop unread output, so that the client detects an incomplete response."""


class Stream:
    """The body of one response. Used on the event loop's thread only."""

    __slots__ = ("_finish", "_framing", "_left", "_on_lost", "_outlet", "_resumed", "cut_off", "lost")

    def __init__(self, outlet: BodyWriter, framing: Framing, length: int | None, finish: Callable[[], None]) -> None:
        """Create the stream of a body that is written to `outlet`; `finish` is called when the body ends.

        `length` is the length of the body in bytes, if it is known.
        """
        self.lost = False
        """Whether the client has disconnected; further output is dropped."""
        self.cut_off = False
        """Whether the server has disconnected the client because the client did not read."""
        self._outlet = outlet
        self._framing = framing
        self._left = length
        self._finish = finish
        self._on_lost: Callable[[], None] | None = None
        self._resumed: asyncio.Future[None] | None = None

    @property
    def paused(self) -> bool:
        """Return whether the client does not read its pending output.

        If so, callers should write nothing until `drain` returns.
        """
        return self._outlet.is_paused

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call `call` when the client disconnects, or now if the client has disconnected already."""
        self._on_lost = call
        if self.lost:
            call()

    def write(self, chunks: bytes) -> None:
        """Write chunks that `framing.chunk` has encoded; the same bytes may be written to many clients."""
        if self.lost:
            return
        if self._framing is Framing.CHUNKED:
            self._outlet.write(chunks)
        else:
            self.send(unchunked(chunks))

    def send(self, piece: bytes) -> None:
        """Write a piece without chunk framing."""
        if self.lost or not piece:
            return
        if self._left is not None:
            self._left -= len(piece)
        if self._framing is Framing.CHUNKED:
            self._outlet.write(chunk(piece))
        elif self._framing is Framing.PLAIN:
            self._outlet.write(piece)

    async def send_all(self, pieces: Iterable[bytes], patience: float) -> None:
        """Write pieces without chunk framing, and wait for the client as `drain` does."""
        for number, piece in enumerate(pieces, 1):
            self.send(piece)
            if number % _TURN == 0:
                await asyncio.sleep(0)
            await self.drain(patience)

    async def drain(self, patience: float) -> None:
        """Wait until the client has read enough output; raises `Disconnected` if the client disconnects.

        A client that reads nothing for `patience` seconds is disconnected.
        """
        if self.paused and not self.lost:
            loop = asyncio.get_running_loop()
            self._resumed = loop.create_future()
            timer = loop.call_later(patience, self.abort)
            try:
                await self._resumed
            finally:
                timer.cancel()
                self._resumed = None
        if self.lost:
            raise Disconnected

    def end(self) -> None:
        """Complete the response; the connection can then be reused."""
        if self.lost:
            return
        if self._left:
            self.abort()  # the length differs from the announced length, so the client must not send another request
            return
        if self._framing is Framing.CHUNKED:
            self._outlet.write(LAST_CHUNK)
        finish, self._finish = self._finish, _nothing
        finish()

    def abort(self) -> None:
        """Disconnect the client, and drop unread output. After the abort, the connection calls `lose`."""
        self.cut_off = True
        self._outlet.abort()

    def wake(self) -> None:
        """Wake the task that waits in `drain`."""
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def lose(self) -> None:
        """Record that the client has disconnected."""
        self.lost = True
        self._finish = _nothing
        self.wake()
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()


def _nothing() -> None:
    """Do nothing; this function replaces `finish` after its call, because `finish` refers to the request."""
