"""A connection to another server, which sends one HTTP/1.1 request at a time and reads the response in pieces.

Guarantees:
- The connection holds at most `AHEAD` bytes of a response, plus one read, until the application reads them. While the
  application does not read, the other server must wait.
- If the application calls `drain` after each piece, the output exceeds the write buffer by at most one piece.
- The bytes and headers of a response's head are limited. Interim responses (1xx, except 101) are skipped.
- After 101 Switching Protocols, the connection is a `tunnel.Side`.
- If a response ends too early, `UpstreamClosed` is raised, so the application never takes an incomplete response for a
  complete one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import httptools

from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamClosed, UpstreamFailed, UpstreamMalformed
from ctrlmgr.http.tunnel import ROOM, Receiver, close_when_written, read_all

AHEAD: Final = 256 * 1024
"""Maximum bytes of a response that are read before the application asks for them."""
_UNREAD: Final = 128 * 1024
"""The number of pending output bytes from which on the other server counts as not reading."""
_HEAD_BYTES: Final = 1 << 20
_HEAD_COUNT: Final = 1000
_SWITCHING: Final = 101
_FINISH: Final = 30.0
"""Maximum seconds that the server may take to accept the rest of the output and end its TLS session."""


class ResponseHead(NamedTuple):
    """The head of another server's response."""

    code: int
    headers: Sequence[Header]
    """The response headers in the order in which they were sent, with names in lower case."""

    def header(self, name: bytes) -> bytes:
        """Return the first value of a header, whose name is in lower case; empty if the response has no such header."""
        return next((value for key, value in self.headers if key == name), b"")


class ReadBuffer:
    """The buffer into which all connections of an event loop read; its content is copied before the next read.

    The buffer is shared, because a separate buffer for each waiting connection would need about 100 KB.
    """

    def __init__(self) -> None:
        """Create a connection with an empty buffer."""
        self._room = memoryview(b"")

    def room(self, size: int) -> memoryview:
        """Return the buffer with room for at least `size` bytes."""
        if len(self._room) < size:
            self._room = memoryview(bytearray(size))
        return self._room


class UpstreamConnection(asyncio.BufferedProtocol):
    """A connection to another server. Used on the event loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, buffer: ReadBuffer) -> None:
        """Start without a transport; all connections of the event loop share `buffer`."""
        self.has_answered = False
        """Whether at least one byte of the current response has arrived."""
        self.is_paused = False
        """Whether the server does not read its pending input."""
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._buffer = buffer
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._method = ""
        self._headers: list[Header] = []
        self._head_size = 0
        self._head: ResponseHead | None = None
        self._body = bytearray()
        self._has_ended = True
        self._has_switched = self._is_finishing = False
        self._is_last = False  # whether the server closes after the current answer
        self._is_reading_paused = False
        self._failure: UpstreamFailed | None = None
        self._receiver: Receiver | None = None
        self._finishing: asyncio.TimerHandle | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # The transport calls the following methods.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Store the transport of the new connection."""
        self._transport = transport
        transport.set_write_buffer_limits(high=_UNREAD)
        read_all(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the response or the tunnel, because the connection is lost."""
        self._transport = self._parser = None
        if self._finishing is not None:
            self._finishing.cancel()
        if exc is None and self._ends_with_connection():
            self._has_ended = True
        if not self._has_ended:
            lost = UpstreamClosed()
            lost.__cause__ = exc
            self._failure = self._failure or lost
        _wake(self._reader)
        _wake(self._writer)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.end()

    def eof_received(self) -> None:
        """Let the transport close when the server has closed its sending side."""

    def pause_writing(self) -> None:
        """Record that the server does not read."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Let the writer continue, because the server reads again."""
        self.is_paused = False
        _wake(self._writer)
        if self._is_finishing and self._transport is not None:
            self._transport.close()
        elif self._receiver is not None:
            self._receiver.resume()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return a buffer with room for everything that can be read at once."""
        return self._buffer.room(sizehint + ROOM)

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes in the buffer."""
        data = bytes(self._buffer.room(nbytes)[:nbytes])
        self.has_answered = True
        if self._is_finishing:
            return
        if self._receiver is not None:
            self._receiver.receive(data)
        elif self._has_switched:
            self._add(data)
        elif self._has_ended:
            self._fail(UpstreamMalformed("Unsolicited response received on idle HTTP channel"))
        else:
            self._parse(data)
        _wake(self._reader)

    def _parse(self, data: bytes) -> None:
        if self._head is None:
            self._head_size += len(data)
        assert self._parser is not None, "it exists while the connection is open"
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._has_switched:
                self._add(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            if not self._has_ended:
                self._fail(UpstreamMalformed(f"malformed HTTP response: {error}"))
            self._is_last = True  # the bytes after the answer are not HTTP
        if self._head is None and self._head_size > _HEAD_BYTES:
            self._fail(UpstreamMalformed("net/http: server response headers exceeded 1048576 bytes"))

    # httptools calls the following methods.

    def on_message_begin(self) -> None:
        """Begin a response, which may be an interim response."""
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; ignore a trailer."""
        if self._head is None and len(self._headers) < _HEAD_COUNT:
            self._headers.append((name.lower(), value.strip(b"\t ")))

    def on_headers_complete(self) -> None:
        """Complete the head of the response, unless the response is interim."""
        assert self._parser is not None, "it calls this method"
        code = self._parser.get_status_code()
        if 100 <= code < 200 and code != _SWITCHING:
            return
        self._head = ResponseHead(code, tuple(self._headers))
        self._has_switched = code == _SWITCHING
        self._is_last = not self._parser.should_keep_alive()
        if self._method == "HEAD":  # the parser would wait for a body, so this connection is not used again
            self._has_ended = self._is_last = True

    def on_body(self, piece: bytes) -> None:
        """Add a part of the response's body."""
        if not self._has_ended:
            self._add(piece)

    def on_message_complete(self) -> None:
        """Complete the response, unless it was interim."""
        if self._head is not None and not self._has_switched:
            self._has_ended = True

    # The application calls the following methods.

    @property
    def is_idle(self) -> bool:
        """Whether another request can be sent on this connection."""
        is_over = self._has_ended and not (self._body or self._is_last or self._has_switched or self._failure)
        return is_over and self._open is not None

    def begin(self, method: str, head: bytes) -> None:
        """Send the head of a request; raises `UpstreamClosed` if the server has closed the connection."""
        if self._open is None:
            raise self._failure or UpstreamClosed
        self._method, self._head, self._head_size = method, None, 0
        self._has_ended = self._is_last = self.has_answered = False
        self.write(head)

    async def drain(self) -> None:
        """Wait until the server has read enough output; raises `UpstreamClosed` if the server closes the connection."""
        if self.is_paused and self._transport is not None:
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._open is None:
            raise self._failure or UpstreamClosed

    async def head(self) -> ResponseHead:
        """Wait for the head of the response, and return it. Raises `UpstreamFailed`."""
        while self._head is None:
            if self._failure is not None:
                raise self._failure
            await self._wait()
        return self._head

    async def piece(self) -> bytes:
        """Wait for the next part of the response's body, and return it; empty at its end. Raises `UpstreamFailed`."""
        while not (self._body or self._has_ended):
            if self._failure is not None:
                raise self._failure
            await self._wait()
        taken = bytes(self._body)
        self._body.clear()
        self.resume_reading()  # also after the last part, because otherwise an idle connection would not detect its end
        return taken

    def close(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # Methods of a side of a tunnel.

    def attach(self, receiver: Receiver) -> None:
        """Pass all further bytes to `receiver`."""
        rest = bytes(self._body)
        self._body.clear()
        self.resume_reading()
        if rest:
            receiver.receive(rest)
        if self._transport is None:
            receiver.end()
        else:
            self._receiver = receiver

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the server does not read; a closed connection drops them."""
        transport = self._open
        if transport is not None:
            transport.write(data)

    def pause_reading(self) -> None:
        """Stop reading bytes from the other server."""
        transport = self._open
        if transport is not None and not self._is_reading_paused:
            self._is_reading_paused = True
            transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading bytes from the other server."""
        transport = self._open
        if transport is not None and self._is_reading_paused:
            self._is_reading_paused = False
            transport.resume_reading()

    def finish(self) -> None:
        """Close the connection when the server has accepted all pending output, or after `_FINISH` seconds."""
        self._is_finishing = True
        self.resume_reading()
        if self._open is not None:
            self._finishing = self._finishing or self._loop.call_later(_FINISH, self.abort)
            close_when_written(self._open)

    def abort(self) -> None:
        """Close the connection at once, and drop pending output."""
        self.close()

    @property
    def _open(self) -> asyncio.Transport | None:
        """The transport; None if it is closed or closing."""
        transport = self._transport
        return None if transport is None or transport.is_closing() else transport

    async def _wait(self) -> None:
        self._reader = self._loop.create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _add(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > AHEAD:
            self.pause_reading()

    def _ends_with_connection(self) -> bool:
        """Return whether the response's body ends with the end of the connection (RFC 9112, section 6.3)."""
        if self._head is None or self._failure is not None or self._has_switched:
            return False
        return {b"content-length", b"transfer-encoding"}.isdisjoint(name for name, _ in self._head.headers)

    def _fail(self, failure: UpstreamFailed) -> None:
        self._failure = self._failure or failure
        self.close()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
