"""One request and its response: the interface between the HTTP server and the application.

Guarantees:
- The server reads the body of a request only when the application asks for it, and never beyond the limit. The server
  sends 100 Continue only when the application asks for the body.
- If the application reads a body in pieces (`piece`), at most `Bounds.unread_bytes` bytes and one read of the
  connection are in memory. The client cannot send more until the application has read these bytes.
- A request has exactly one response: whole (`answer`), in pieces (`begin`), or a switch to another protocol (`switch`).
  Output that is written after the client has disconnected is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.framing import Header
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.response_stream import BodyWriter, Disconnected, Framing, Stream
from ctrlmgr.http.size_limits import Bounds
from ctrlmgr.http.tunnel import Side


class BodyTooLarge(CtrlmgrError):
    """The body is larger than the application allows."""

    default_message = "The body is larger than the application allows."


class BodyTooSlow(CtrlmgrError):
    """The body has not arrived in the time that the application allows."""

    default_message = "The body has not arrived in the time that the application allows."


class TooManyBodies(CtrlmgrError):
    """The bodies of all requests together exceed the server's memory budget."""

    default_message = "The bodies of all requests together exceed the server's memory budget."


class Wire(BodyWriter, Protocol):
    """The connection of a request and its response. Used on the event loop's thread only."""

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""

    @property
    def certificates(self) -> Sequence[bytes]:
        """The client's certificate, followed by the rest of its chain (DER); the chain is not verified yet."""

    def go_ahead(self) -> None:
        """Send 100 Continue."""

    def retire(self) -> None:
        """Ask an HTTP/2 client to send later requests on a new connection; an HTTP/1 connection is not affected."""

    def answer(self, exchange: Exchange, code: int, headers: Sequence[Header], body: bytes, own: Header | None) -> None:
        """Write a whole response with its Content-Length; `own` is an additional header for this response only."""

    def begin(self, exchange: Exchange, code: int, headers: Sequence[Header], length: int | None) -> Framing:
        """Write the head of a response whose body follows; `length` is the body's size in bytes, None if unknown."""

    def finished(self, *, keep_alive: bool) -> None:
        """Record that the current request has been answered."""

    def pause_reading(self) -> None:
        """Stop reading from the client."""

    def resume_reading(self) -> None:
        """Continue reading from the client."""

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes for a request body; return False if that exceeds a budget."""

    def release(self, count: int) -> None:
        """Release the reserved bytes of a request body."""

    def reserve_head(self, cost: int) -> bool:
        """Reserve `cost` bytes for a request head; return False if that exceeds a budget."""

    def release_head(self, cost: int) -> None:
        """Release the reserved bytes of a request head."""


class Switch(Protocol):
    """A connection that can switch to another protocol after the current request.

    Used on the event loop's thread only.
    """

    def switch(self, headers: Sequence[Header]) -> Side:
        """Write 101 Switching Protocols with these headers, and return the connection for raw bytes."""


class Exchange:
    """One request and its response. Used on the event loop's thread only."""

    __slots__ = (
        "_allowed",
        "_body",
        "_bounds",
        "_expects",
        "_has_ended",
        "_held",
        "_is_refused",
        "_on_lost",
        "_reserved",
        "_waiting",
        "_wire",
        "headers",
        "is_answered",
        "is_begun",
        "is_disconnected",
        "is_started",
        "keep_alive",
        "length",
        "method",
        "mounted_at",
        "path",
        "query",
        "side",
        "stream",
        "switching",
        "version",
    )

    def __init__(self, head: Head, wire: Wire, bounds: Bounds) -> None:
        """Create the exchange of the request with this head; its response is written to `wire`."""
        self.method = head.method
        self.path = head.path
        """The URL path as it was sent, with percent escapes."""
        self.mounted_at = b""
        """The start of the URL path that an outer application has removed from `path`; empty if it removed nothing."""
        self.query = head.query
        """The query without the question mark; empty if the request has no query."""
        self.headers = head.headers
        """The request headers in the order in which they were sent, with lower-case names, without Content-Length."""
        self.length = head.length
        """The Content-Length in bytes; None if the request has no such header."""
        self.version = head.version
        """The version of HTTP: `2`, `1.1` or `1.0`."""
        self.keep_alive = head.keep_alive
        """Whether the connection stays open after the response."""
        self.is_started = False
        """Whether the application has received the request."""
        self.is_begun = False
        """Whether a part of the response has been written."""
        self.is_answered = False
        """Whether the response is complete."""
        self.is_disconnected = False
        """Whether the client has disconnected or sent a malformed body."""
        self.stream: Stream | None = None
        """The stream for the body of the response, if the body is written in pieces."""
        self.switching: Switch | None = None
        """The connection, if the client requests a switch to another protocol (RFC 9110, section 7.8); otherwise None.
        """
        self.side: Side | None = None
        """The connection for raw bytes after a switch; None before a switch."""
        self._wire = wire
        self._bounds = bounds
        self._expects = head.expects_continue
        self._body = bytearray()
        self._allowed = bounds.unread_bytes
        self._has_ended = False
        self._held = 0  # bytes that are reserved for the head
        self._is_refused = False
        self._on_lost: Callable[[], object] | None = None
        self._reserved = 0
        self._waiting: asyncio.Future[bool] | None = None

    @property
    def certificates(self) -> Sequence[bytes]:
        """The client's certificate, followed by the rest of its chain (DER); the chain is not verified yet."""
        return self._wire.certificates

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""
        return self._wire.peer

    @property
    def is_complete(self) -> bool:
        """Return whether the whole request has been received."""
        return self._has_ended

    async def body(self, limit: int, patience: float) -> bytes:
        """Return the request body, which may have at most `limit` bytes; wait for it up to `patience` seconds.

        Raises `BodyTooLarge`, `BodyTooSlow` or `TooManyBodies` if a limit is exceeded, and `Disconnected` if the client
        disconnects.
        """
        self._go_ahead()
        self._allowed = limit
        if not (self._has_ended or self.is_disconnected or self._is_refused or len(self._body) > limit):
            self._wire.resume_reading()
            await self._change(patience)
        if self.is_disconnected:
            raise Disconnected
        if self._is_refused:
            raise TooManyBodies
        if len(self._body) > limit:
            raise BodyTooLarge
        if not self._has_ended:
            raise BodyTooSlow
        taken = bytes(self._body)
        self._body = bytearray()
        return taken

    def _go_ahead(self) -> None:
        """Send 100 Continue if the client waits for that response before it sends the body."""
        if self._expects and not self.is_disconnected:
            self._expects = False
            self._wire.go_ahead()

    async def piece(self, patience: float) -> bytes:
        """Return the next part of the body, empty at its end; wait for it up to `patience` seconds.

        Raises `BodyTooSlow` or `TooManyBodies` if a limit is exceeded, and `Disconnected` if the client disconnects.
        """
        self._go_ahead()
        if not (self._body or self._has_ended or self.is_disconnected or self._is_refused):
            self._allowed = 0  # the first bytes of the body wake the task
            self._wire.resume_reading()
            await self._waited(patience)
            self._allowed = self._bounds.unread_bytes
        if self.is_disconnected:
            raise Disconnected
        if self._is_refused:
            raise TooManyBodies
        if not (self._body or self._has_ended):
            raise BodyTooSlow
        taken = bytes(self._body)
        self._forget_body()
        return taken

    @property
    def may_have_body(self) -> bool:
        """Whether the request has a body, or may have a body that has not arrived yet."""
        return bool(self.length or self._body or not self._has_ended)

    def answer(self, code: int, headers: Sequence[Header], body: bytes, own: Header | None = None) -> None:
        """Write a whole response with its Content-Length; `own` is an additional header for this response only."""
        self._begin()
        if not self.is_disconnected:
            self._wire.answer(self, code, headers, body, own)
            self._finish()

    def begin(self, code: int, headers: Sequence[Header]) -> Stream:
        """Write the head of a response, and return the stream for its body.

        Raises `Disconnected` if the client has disconnected.
        """
        self._begin()
        if self.is_disconnected:
            raise Disconnected
        length = next((int(value) for name, value in headers if name == b"content-length"), None)
        framing = self._wire.begin(self, code, headers, length)
        self.stream = Stream(self._wire, framing, None if framing is Framing.NONE else length, self._finish)
        return self.stream

    def switch(self, headers: Sequence[Header]) -> Side:
        """Answer with 101 Switching Protocols, and return the connection for raw bytes.

        Raises `Disconnected` if the client has disconnected. The caller must check that `switching` is set, and must
        close the returned connection.
        """
        if self.is_disconnected or self.switching is None:
            raise Disconnected
        self._begin()
        self.is_answered = True
        self._forget_body()
        self.side = self.switching.switch(headers)
        return self.side

    def retire(self) -> None:
        """Ask an HTTP/2 client to send later requests on a new connection; an HTTP/1 connection is not affected."""
        self._wire.retire()

    def stop_waiting(self) -> None:
        """End the application's wait for the body with the error `BodyTooSlow`."""
        self._wake()

    def on_lost(self, call: Callable[[], object] | None) -> None:
        """Call `call` when the client disconnects, or now if the client has disconnected already.

        If `call` is None, the callback of an earlier call is removed.
        """
        self._on_lost = call
        if self.is_disconnected and call is not None:
            call()

    def abandon(self) -> None:
        """Abort the connection if the response is incomplete, so that the client detects an error."""
        if not (self.is_answered or self.is_disconnected):
            self._wire.abort()

    def _begin(self) -> None:
        if self.is_begun:
            raise RuntimeError("the response to this request has already begun")
        self.is_begun = True
        if self._expects:  # the client may still send the body, so the next bytes could be body or request
            self.keep_alive = False

    def _finish(self) -> None:
        self.is_answered = True
        self._forget_body()
        self._wire.finished(keep_alive=self.keep_alive)

    # The connection calls the following methods.

    def hold_head(self, head: Head) -> bool:
        """Reserve memory for the head if it is long; return False if the head exceeds a budget.

        `hold_head` must be called only once for each exchange.
        """
        cost = head.cost
        if cost <= self._bounds.short_head:
            return True
        if not self._wire.reserve_head(cost):
            return False
        self._held = cost
        return True

    def forget_head(self) -> None:
        """Release the memory that `hold_head` has reserved, when the application has ended.

        When the method returns, the client may still be reading the response.
        """
        if self._held:
            self._wire.release_head(self._held)
            self._held = 0
            self.headers, self.path, self.query = HeaderLines(), b"", b""

    def receive(self, piece: bytes) -> None:
        """Add a part of the body; ignore the part if the request has been answered."""
        if self.is_answered or self.is_disconnected or self._is_refused:
            return
        self._body += piece
        size = len(self._body)
        if size > self._bounds.short_body and not self._reserve(size):
            self._is_refused = True
            self._body = bytearray()
            self._wake()
        elif size > self._allowed:
            if self._waiting is None:
                self._wire.pause_reading()
            self._wake()

    def end(self) -> None:
        """Record that the whole request has been received."""
        self._has_ended = True
        self._wake()

    def lose(self) -> None:
        """Record that the client has disconnected."""
        self.is_disconnected = True
        self._forget_body()
        if not self.is_started:
            self.forget_head()
        self._wake()
        if self.stream is not None:
            self.stream.lose()
        call, self._on_lost = self._on_lost, None
        if call is not None:
            call()

    def _reserve(self, size: int) -> bool:
        if not self._wire.reserve(size - self._reserved):
            return False
        self._reserved = size
        return True

    def _forget_body(self) -> None:
        if self._body:
            self._body = bytearray()
        if self._reserved:
            self._wire.release(self._reserved)
            self._reserved = 0

    async def _change(self, patience: float) -> None:
        """Wait up to `patience` seconds until the body is complete, too large, interrupted or stalled."""
        left, had = patience, len(self._body)
        while await self._waited(min(left, self._bounds.body_pause)):
            left -= self._bounds.body_pause
            came = len(self._body) - had
            if left <= 0 or (self._reserved and came < self._bounds.body_progress):
                return
            had += came

    async def _waited(self, seconds: float) -> bool:
        """Wait until the body changes; return True if it has not changed within the time."""
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self._give_up)
        try:
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(False)

    def _give_up(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(True)


Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""Answers requests."""
