"""A connection to another HTTP/1.1 server, as a client: sends a head, and receives the answer in pieces.

Guarantees:
- One request at a time. Informational answers (1xx) except 101 are skipped.
- The body of an answer is read only as fast as the caller takes it, with at most `_WAITING` bytes waiting.
- An answer that ends early raises `Broken`, so it never looks complete.
- After 101 Switching Protocols the connection is a `tunnel.Side`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

import httptools

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.framing import Header
from ctrlmgr.http.tunnel import ROOM, Receiver, close_when_written, read_all

_WAITING: Final = 256 * 1024
"""Bytes of a body that wait for the caller before reading pauses."""
_UNREAD: Final = 128 * 1024
"""Bytes of output from which the server counts as not reading."""
_HEAD: Final = 1 << 20
"""Maximum size in bytes of an answer's head."""
_SHUTDOWN: Final = 30.0
"""Seconds in which the server must read the last output and end its TLS session."""


class Broken(CtrlmgrError):
    """The server has closed the connection before the end of its answer, or has sent no valid HTTP."""


class Answer(NamedTuple):
    """The head of an answer."""

    code: int
    reason: bytes
    headers: Sequence[Header]
    """The headers in order, with names as they were sent."""

    def header(self, name: bytes) -> bytes:
        """Return the first value of a header, whose name is in lower case; empty if it is missing."""
        return next((value for key, value in self.headers if key.lower() == name), b"")


class Upstream(asyncio.BufferedProtocol):
    """A connection to a server. Used on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start with no request."""
        self.is_paused = False
        """Whether the server is behind with reading."""
        self.is_lost = False
        """Whether the connection is closed."""
        self.is_reusable = False
        """Whether the last answer is complete and another request may follow."""
        self._loop = loop
        self._transport: asyncio.Transport
        self._room = memoryview(bytearray(0))
        self._parser: httptools.HttpResponseParser | None = None
        self._reason = b""
        self._headers: list[Header] = []
        self._size = 0
        self._answer: asyncio.Future[Answer] | None = None
        self._is_head = False  # whether the answer has no body, because the request is a HEAD
        self._ends_with_connection = False
        self._is_complete = False
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._is_reading_paused = False
        self._more: asyncio.Future[None] | None = None
        self._problem = ""
        self._receiver: Receiver | None = None
        self._has_switched = self._is_finishing = False
        self._rest = b""

    async def ask(self, head: bytes, *, is_head: bool = False) -> Answer:
        """Send a request without a body, and return the head of its answer; raises `Broken`.

        `is_head` says that the request is a HEAD, whose answer has no body.
        """
        self._parser = httptools.HttpResponseParser(self)
        self._reason, self._headers, self._size, self._problem = b"", [], 0, ""
        self.is_reusable = self._is_complete = self._ends_with_connection = False
        self._is_head = is_head
        self._answer = self._loop.create_future()
        if self.is_lost:
            raise Broken("EOF")
        self._transport.write(head)
        return await self._answer

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body of the answer; raises `Broken` if it ends early."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._waiting -= len(piece)
                if not self._pieces:
                    self.resume_reading()
                yield piece
            if self._is_complete:
                return
            if self._problem:
                raise Broken(self._problem)
            self._more = self._loop.create_future()
            await self._more

    # Methods that the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Attach the transport."""
        self._transport = transport
        transport.set_write_buffer_limits(high=_UNREAD)
        read_all(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return a buffer with room for everything that can be read at once."""
        if len(self._room) < sizehint + ROOM:
            self._room = memoryview(bytearray(sizehint + ROOM))
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes in the buffer."""
        data = bytes(self._room[:nbytes])
        if len(self._room) > _WAITING:  # an idle connection holds no large buffer
            self._room = memoryview(bytearray(0))
        if self._is_finishing:
            return
        if self._receiver is not None:
            self._receiver.receive(data)
        elif self._has_switched:
            self._rest += data
        else:
            self._parse(data)

    def eof_received(self) -> None:
        """Let the transport close."""

    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer, or the tunnel."""
        self.is_lost = True
        self.is_reusable = False
        if self._ends_with_connection and exc is None:
            self._is_complete = True
        self._fail(str(exc) if exc is not None else "unexpected EOF" if self._headers else "EOF")
        receiver, self._receiver = self._receiver, None
        self._parser = None
        if receiver is not None:
            receiver.end()

    def pause_writing(self) -> None:
        """Note that the server does not read."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """Continue with output."""
        self.is_paused = False
        if self._is_finishing:
            self._transport.close()
        elif self._receiver is not None:
            self._receiver.resume()

    # Methods that httptools calls.

    def on_status(self, reason: bytes) -> None:
        """Add a part of the reason phrase."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; a head that is too large breaks the connection."""
        self._size += len(name) + len(value)
        if self._size > _HEAD:
            raise Broken("net/http: server response headers exceeded 1048576 bytes")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Return the head to the caller of `ask`, unless the answer is informational."""
        parser, answer = self._parser, self._answer
        assert parser is not None
        code = parser.get_status_code()
        if 100 <= code < 200 and code != 101:
            return
        head = Answer(code, self._reason, tuple(self._headers))
        if code == 101:
            self._has_switched = True
        elif self._is_head:
            self._is_complete = True
        else:
            is_sized = head.header(b"content-length") or b"chunked" in head.header(b"transfer-encoding").lower()
            self._ends_with_connection = not is_sized
        if answer is not None and not answer.done():
            answer.set_result(head)

    def on_body(self, piece: bytes) -> None:
        """Add a part of the body; pause reading if the caller is behind."""
        self._pieces.append(piece)
        self._waiting += len(piece)
        if self._waiting > _WAITING:
            self.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        """Complete the answer; an informational one is dropped."""
        parser = self._parser
        assert parser is not None
        if parser.get_status_code() < 200:
            self._reason, self._headers = b"", []
            return
        self._is_complete = True
        self.is_reusable = parser.should_keep_alive() and not self._is_head
        self._wake()

    # A side of a tunnel.

    def attach(self, receiver: Receiver) -> None:
        """Pass all further bytes to `receiver`."""
        rest, self._rest = self._rest, b""
        if rest:
            receiver.receive(rest)
        if self.is_lost:
            receiver.end()
        else:
            self._receiver = receiver

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the server does not read; a closed connection drops them."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Stop reading from the server."""
        if not (self._is_reading_paused or self._transport.is_closing()):
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the server."""
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    def finish(self) -> None:
        """Close after the server has accepted all pending output."""
        self._is_finishing = True
        self.resume_reading()
        if not self._transport.is_closing():
            close_when_written(self._transport)

    def abort(self) -> None:
        """Close at once, and drop pending output."""
        self._transport.abort()

    def _parse(self, data: bytes) -> None:
        if self._parser is None or self._is_complete:
            self.abort()  # an answer without a request
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._rest = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._fail(str(cause) if isinstance(cause, Broken) else f"malformed HTTP response: {error}")
            self.abort()

    def _fail(self, problem: str) -> None:
        """End the request with a problem, unless its answer is complete."""
        self._problem = self._problem or problem
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Broken(self._problem))
        self._wake()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


async def dial(host: str, port: int, context: ssl.SSLContext | None, *, name: str = "") -> Upstream:
    """Connect to a server, over TLS with `context` if given; the certificate must be for `name`, by default the host.

    Raises `OSError`, which includes errors of TLS. The caller must limit its duration.
    """
    loop = asyncio.get_running_loop()
    _, upstream = await loop.create_connection(
        lambda: Upstream(loop),
        host,
        port,
        ssl=context,
        server_hostname=(name or host) if context is not None else None,
        ssl_shutdown_timeout=_SHUTDOWN if context is not None else None,
    )
    return upstream
