"""The body of one answer, in pieces that go on for as long as the client reads them.

Guarantees:
- A piece costs one write to the connection, of bytes that may be shared, and no task: an event for a thousand watchers
  is a thousand writes and nothing more.
- What a client does not read is bounded: a connection says when its buffer is full (`paused`), and a writer that heeds
  that never has more than a piece beyond it.
- A client that has stopped reading can be cut off (`abort`) without being waited for.
- An answer that breaks off is never taken for a whole one: its connection is dropped, or its HTTP/2 stream reset.
- A long answer goes in pieces (`send_all`), each when its reader has come so far, and never holds up the loop: what is
  written at once TLS encrypts at once, into a buffer that is as large from then on until the connection closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.http.framing import LAST_CHUNK, chunk, unchunked

ONE_WRITE = 64 * 1024
"""Bytes that are written as one, and the TLS buffer that a connection may well keep."""

_TURN = 4
"""Pieces that are written before others have the loop: less than half a millisecond."""


class Disconnected(CtrlmgrError):
    """The client has gone away, or has not read for too long."""


class Framing(Enum):
    """How a client knows where a body ends."""

    CHUNKED = "each piece says how long it is"
    PLAIN = "the head said how long the body is, the connection says where it ends, or closes there"
    NONE = "there is none: it is the answer to a HEAD"


class Outlet(Protocol):
    """Where the pieces of a body go; used on the event loop only."""

    @property
    def is_paused(self) -> bool:
        """Whether the client is behind with reading."""

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the client does not read."""

    def abort(self) -> None:
        """Drop what has not been read, so that the client cannot take it for a whole answer."""


class Stream:
    """See the module's docstring; used on the event loop only."""

    __slots__ = ("_finish", "_framing", "_left", "_on_lost", "_outlet", "_resumed", "cut_off", "lost")

    def __init__(self, outlet: Outlet, framing: Framing, length: int | None, finish: Callable[[], None]) -> None:
        """Write to `outlet` a body of `length` bytes, if that has been said, and call `finish` at its end."""
        self.lost = False
        """Whether the client has gone away; what is written then goes nowhere."""
        self.cut_off = False
        """Whether that is because it did not read."""
        self._outlet = outlet
        self._framing = framing
        self._left = length
        self._finish = finish
        self._on_lost: Callable[[], None] | None = None
        self._resumed: asyncio.Future[None] | None = None

    @property
    def paused(self) -> bool:
        """Whether the reader is behind, so that nothing should be written until `drain` returns."""
        return self._outlet.is_paused

    def on_lost(self, call: Callable[[], None]) -> None:
        """Have `call` called when the client goes away, at once if it has."""
        self._on_lost = call
        if self.lost:
            call()

    def write(self, chunks: bytes) -> None:
        """Write one or more pieces that `framing.chunk` has made: the same bytes may be written to many."""
        if self.lost:
            return
        if self._framing is Framing.CHUNKED:
            self._outlet.write(chunks)
        else:
            self.send(unchunked(chunks))

    def send(self, piece: bytes) -> None:
        """Write a piece that is not framed yet."""
        if self.lost or not piece:
            return
        if self._left is not None:
            self._left -= len(piece)
        if self._framing is Framing.CHUNKED:
            self._outlet.write(chunk(piece))
        elif self._framing is Framing.PLAIN:
            self._outlet.write(piece)

    async def send_all(self, pieces: Iterable[bytes], patience: float) -> None:
        """Write pieces that are not framed yet, for a reader that is waited for as by `drain`."""
        for number, piece in enumerate(pieces, 1):
            self.send(piece)
            if number % _TURN == 0:
                await asyncio.sleep(0)
            await self.drain(patience)

    async def drain(self, patience: float) -> None:
        """Return when the reader has caught up; raises `Disconnected` if it goes away.

        One that has read nothing `patience` seconds from now is cut off.
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
        """Complete the answer, so that the connection can be used again."""
        if self.lost:
            return
        if self._left:
            self.abort()  # more or less than was announced: the client must not go on
            return
        if self._framing is Framing.CHUNKED:
            self._outlet.write(LAST_CHUNK)
        finish, self._finish = self._finish, _nothing
        finish()

    def abort(self) -> None:
        """Cut the reader off, and drop what has not been read; `lose` follows."""
        self.cut_off = True
        self._outlet.abort()

    def wake(self) -> None:
        """Wake the task that drains."""
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def lose(self) -> None:
        """Note that the client has gone away."""
        self.lost = True
        self._finish = _nothing
        self.wake()
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()


def _nothing() -> None:
    """Stand for what is called at the end, which holds the stream and all of its request, once it was called."""
