"""The way to the connection: answers in one write, and responses that go on for as long as somebody reads.

Guarantees:
- A whole answer is one write: head and body in one TLS record.
- A piece costs one write to the connection, of bytes that may be shared, and no task: an event for a thousand
  watchers is a thousand writes and nothing more (through ASGI's `send`, each in its task, it takes about twice that).
- What nobody reads is bounded: a connection says when its buffer is full (`paused`), and who heeds that never has
  more than a piece beyond it.
- A reader who has stopped reading can be cut off (`abort`) without being waited for.

Whoever answers finds the way in through `scope["extensions"]`, where `StreamingProtocol` has put it. Under another
ASGI server whole answers go through `send`; streams need ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.http.responses import Header, Scope, Send
from ctrlmgr.server.presenting.familiar import FamiliarProtocol

_EXTENSION = "ctrlmgr.stream"


class Disconnected(CtrlmgrError):
    """The client has gone away, or has not read for too long."""


class StreamingProtocol(FamiliarProtocol):
    """A connection whose responses can be written without detours."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start with no stream open."""
        super().__init__(*args, **kwargs)
        self.stream: Stream | None = None
        """The stream that is being written, if any."""
        self._extensions: dict[str, Any] = {_EXTENSION: self}

    @staticmethod
    def of(scope: Scope) -> StreamingProtocol | None:
        """Return the connection of a request; None once it is lost, or where another server has accepted it."""
        protocol: StreamingProtocol | None = scope.get("extensions", {}).get(_EXTENSION)
        return protocol

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def body(self) -> bytes | None:
        """Take the body of the request that is being answered, if all of it has come: then nobody need wait for it."""
        cycle = self.cycle
        if self.pipeline or cycle.more_body or cycle.waiting_for_100_continue or cycle.response_started:
            return None
        taken = bytes(cycle.body)
        cycle.body = bytearray()
        return taken

    def answer(self, code: int, headers: Sequence[Header], body: bytes) -> bool:
        """Write a whole response in one go, as uvicorn's `send` would in two; say whether that could be done.

        It cannot while the connection is full, nor when requests wait behind the one that is being answered.
        """
        cycle, transport = self.cycle, self.transport
        if self.pipeline or cycle.response_started:
            return False
        if cycle.waiting_for_100_continue:  # the client may send the body now or may not: nobody can tell
            cycle.keep_alive = False
        if self.flow.write_paused:
            return False
        head = _head(code, tuple(cycle.default_headers), tuple(headers), cycle.keep_alive)
        shown = body if cycle.scope["method"] != "HEAD" else b""
        transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), shown))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            transport.close()
        cycle.on_response()
        return True

    def resume_writing(self) -> None:
        """Let the stream go on: its reader has read."""
        super().resume_writing()
        if self.stream is not None:
            self.stream.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the stream."""
        super().connection_lost(exc)
        self._extensions.clear()
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.lose()

    def timeout_keep_alive_handler(self) -> None:
        """Drop a connection that has been idle for long, even if its last answer has not been read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()


@lru_cache(maxsize=256)
def _head(code: int, first: tuple[Header, ...], more: tuple[Header, ...], keep_alive: bool) -> bytes:
    """Return the head of a response up to its length; most answers have one of a few."""
    lines = [b"%b: %b\r\n" % header for header in (*first, *more)]
    return b"".join([STATUS_LINE[code], *lines, b"" if keep_alive else b"connection: close\r\n"])


class Stream:
    """The body of one response, in chunks; used on the event loop only."""

    __slots__ = ("_on_lost", "_protocol", "_resumed", "_send", "cut_off", "lost")

    def __init__(self, protocol: StreamingProtocol, send: Send) -> None:
        """Write to the connection of `protocol`; `send` is ASGI's."""
        self.lost = False
        """Whether the client has gone away; what is written then goes nowhere."""
        self.cut_off = False
        """Whether that is because it did not read."""
        self._protocol = protocol
        self._send = send
        self._on_lost: Callable[[], None] | None = None
        self._resumed: asyncio.Future[None] | None = None

    @classmethod
    async def begin(cls, scope: Scope, send: Send, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of a response, at once, and return the stream of its body."""
        protocol = StreamingProtocol.of(scope)
        if protocol is None:
            raise Disconnected
        stream = protocol.stream = cls(protocol, send)
        await send({"type": "http.response.start", "status": code, "headers": headers})
        return stream

    @property
    def paused(self) -> bool:
        """Whether the reader is behind, so that nothing should be written until `drain` returns."""
        return self._protocol.flow.write_paused

    def on_lost(self, call: Callable[[], None]) -> None:
        """Have `call` called when the client goes away, at once if it has."""
        self._on_lost = call
        if self.lost:
            call()

    def write(self, chunks: bytes) -> None:
        """Write one or more pieces that `chunk` has made."""
        if not self.lost:
            self._protocol.transport.write(chunks)

    async def send(self, piece: bytes) -> None:
        """Write a piece as it is, framed as the response's head has it."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

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

    async def end(self) -> None:
        """Complete the response, so that the connection can be used again."""
        self._protocol.stream = None
        await self._send({"type": "http.response.body", "body": b""})

    def abort(self) -> None:
        """Cut the reader off: drop the connection and what has not been read; `lose` follows."""
        self.cut_off = True
        self._protocol.transport.abort()

    def wake(self) -> None:
        """Wake whoever drains."""
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def lose(self) -> None:
        """Note that the client has gone away."""
        self.lost = True
        self.wake()
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()


def chunk(body: bytes) -> bytes:
    """Frame a piece of a body (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(body), body)
