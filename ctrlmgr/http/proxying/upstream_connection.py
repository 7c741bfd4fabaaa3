"""A connection to another server: sends one HTTP/1.1 request at a time, and reads its answer in pieces.

Guarantees:
- At most `AHEAD` bytes of an answer, plus one read, wait for their reader. The server waits meanwhile.
- A writer that calls `drain` exceeds the write buffer by at most one piece.
- The head of an answer is limited in bytes and headers. Interim answers (1xx, except 101) are skipped.
- After 101, `piece` returns the bytes of the other protocol until the server closes.
- An answer that ends too early is an error (`UpstreamClosed`) and never looks complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import httptools

from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamClosed, UpstreamFailed, UpstreamMalformed

AHEAD: Final = 64 * 1024
"""Bytes of an answer that are read before the application asks for them."""
_HEAD_BYTES: Final = 1 << 20
_HEAD_COUNT: Final = 1000
_SWITCHING: Final = 101


class ResponseHead(NamedTuple):
    """The head of another server's answer."""

    code: int
    headers: Sequence[Header]
    """The headers in order, names in lower case."""


class UpstreamConnection(asyncio.Protocol):
    """A connection to another server. Used on the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start without a transport."""
        self.is_used = False
        """Whether an answer was read from this connection before."""
        self.has_answered = False
        """Whether a byte of the current answer has arrived."""
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._method = ""
        self._headers: list[Header] = []
        self._head_size = 0
        self._head: ResponseHead | None = None
        self._body = bytearray()
        self._has_ended = True
        self._is_tunnel = False
        self._is_last = False  # whether the server closes after the current answer
        self._failure: UpstreamFailed | None = None
        self._is_paused = False  # whether the server is behind with reading
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # Methods that the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Attach the transport."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer, if only the end of the connection could end it."""
        self._lose(exc)
        self._transport = None

    def eof_received(self) -> bool:
        """Note that the server sends no more, and let the transport close."""
        self._lose(None)
        return False

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Continue to write."""
        self._is_paused = False
        _wake(self._writer)

    def data_received(self, data: bytes) -> None:
        """Parse a part of an answer."""
        self.has_answered = True
        if self._is_tunnel:
            self._add(data)
        elif self._has_ended:
            self._fail(UpstreamMalformed("Unsolicited response received on idle HTTP channel"))
        else:
            self._parse(data)
        _wake(self._reader)

    def _parse(self, data: bytes) -> None:
        if self._head is None:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._is_tunnel = self._head is not None and self._head.code == _SWITCHING
            if self._is_tunnel:
                self._has_ended = False
                self._add(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if not self._has_ended:
                self._fail(UpstreamMalformed(f"malformed HTTP response: {error}"))
            self._is_last = True  # what follows the answer is no HTTP
        if self._head is None and self._head_size > _HEAD_BYTES:
            self._fail(UpstreamMalformed("malformed HTTP response: the headers are too long"))

    # Methods that httptools calls.

    def on_message_begin(self) -> None:
        """Begin an answer, perhaps an interim one."""
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; a trailer is dropped."""
        if self._head is None and len(self._headers) < _HEAD_COUNT:
            self._headers.append((name.lower(), value.strip(b"\t ")))

    def on_headers_complete(self) -> None:
        """Complete the head, unless the answer is interim."""
        code = self._parser.get_status_code()
        if not 100 <= code < 200 or code == _SWITCHING:
            self._head = ResponseHead(code, tuple(self._headers))
            self._is_last = not self._parser.should_keep_alive()
            if self._method == "HEAD":  # the parser would wait for a body, so this connection is not used again
                self._has_ended = self._is_last = True

    def on_body(self, piece: bytes) -> None:
        """Add a part of the body."""
        if not self._has_ended:
            self._add(piece)

    def on_message_complete(self) -> None:
        """Complete the answer, unless it was interim."""
        if self._head is not None:
            self._has_ended = True

    # Methods that the application calls.

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent."""
        transport = self._transport
        is_open = transport is not None and not transport.is_closing()
        return is_open and self._has_ended and not (self._body or self._is_last or self._is_tunnel or self._failure)

    def begin(self, method: str, head: bytes) -> None:
        """Send the head of a request; raises `UpstreamClosed`."""
        self.is_used = self.has_answered
        self._method, self._head, self._head_size = method, None, 0
        self._has_ended = self._is_last = self.has_answered = False
        self.write(head)

    def write(self, data: bytes) -> None:
        """Send bytes; raises `UpstreamClosed`."""
        if self._transport is None or self._transport.is_closing():
            raise self._failure or UpstreamClosed
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the server has read enough; raises `UpstreamClosed`."""
        if self._is_paused and self._transport is not None:
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._transport is None:
            raise self._failure or UpstreamClosed

    async def head(self) -> ResponseHead:
        """Return the head of the answer; wait for it. Raises `UpstreamFailed`."""
        while self._head is None:
            if self._failure is not None:
                raise self._failure
            await self._wait()
        return self._head

    async def piece(self) -> bytes:
        """Return the next part of the answer's body, empty at its end; wait for it. Raises `UpstreamFailed`."""
        while not (self._body or self._has_ended):
            if self._failure is not None:
                raise self._failure
            await self._wait()
        taken = bytes(self._body)
        self._body.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()  # also after the last part, or an idle connection would not notice its end
        return taken

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def finish(self) -> None:
        """Close the connection after the server has read the rest."""
        if self._transport is not None:
            self._transport.close()

    async def _wait(self) -> None:
        self._reader = self._loop.create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _add(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > AHEAD and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _lose(self, error: Exception | None) -> None:
        """Note that the server sends no more."""
        if self._is_tunnel or self._ends_with_connection():
            self._has_ended = True
        self._is_last = True
        if not self._has_ended:
            lost = UpstreamClosed()
            lost.__cause__ = error
            self._fail(lost)
        _wake(self._reader)
        _wake(self._writer)

    def _ends_with_connection(self) -> bool:
        """Return whether the body of the current answer ends with the connection (RFC 9112, section 6.3)."""
        if self._head is None or self._failure is not None:
            return False
        return {b"content-length", b"transfer-encoding"}.isdisjoint(name for name, _ in self._head.headers)

    def _fail(self, failure: UpstreamFailed) -> None:
        self._failure = self._failure or failure
        self.close()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
