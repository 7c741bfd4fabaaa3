"""One request and its answer: the interface between the server and the application.

Guarantees:
- A body is read only if the application asks for it, and never beyond the limit. The server sends 100 Continue only
  then.
- If a body is read in pieces (`piece`), at most `Bounds.unread_bytes` and one read of the connection are in memory. If
  more is pending, the client must wait.
- A request has exactly one answer: whole (`answer`), in pieces (`begin`), or a switch to another protocol (`switch`).
  Output after the client has disconnected is dropped.
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


class BodyTooSlow(CtrlmgrError):
    """The body has not arrived in the time that the application allows."""


class TooManyBodies(CtrlmgrError):
    """The bodies of all requests together exceed the server's memory budget."""


class Wire(BodyWriter, Protocol):
    """The connection of a request and its answer. Used on the event loop only."""

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""

    @property
    def certificates(self) -> Sequence[bytes]:
        """The client's certificates (DER), the client's own first; not yet verified."""

    def go_ahead(self) -> None:
        """Send 100 Continue."""

    def retire(self) -> None:
        """Ask an HTTP/2 client to send later requests on a new connection; a connection of HTTP/1 stays."""

    def answer(self, exchange: Exchange, code: int, headers: Sequence[Header], body: bytes, own: Header | None) -> None:
        """Write a whole answer, with the header for its length; `own` is an additional header."""

    def begin(self, exchange: Exchange, code: int, headers: Sequence[Header], length: int | None) -> Framing:
        """Write the head of an answer whose body follows; `length` is its size in bytes, None if unknown."""

    def finished(self, *, keep_alive: bool) -> None:
        """Note that the current request has been answered."""

    def pause_reading(self) -> None:
        """Stop reading from the client."""

    def resume_reading(self) -> None:
        """Continue reading from the client."""

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes of a body; return False if that exceeds a budget."""

    def release(self, count: int) -> None:
        """Release reserved bytes of a body."""

    def reserve_head(self, cost: int) -> bool:
        """Reserve `cost` bytes of a head; return False if that exceeds a budget."""

    def release_head(self, cost: int) -> None:
        """Release reserved bytes of a head."""


class Switch(Protocol):
    """A connection that can switch to another protocol after the current request. Used on the event loop only."""

    def switch(self, headers: Sequence[Header]) -> Side:
        """Write 101 Switching Protocols with these headers, and return the connection for raw bytes."""


class Exchange:
    """One request and its answer. Used on the event loop only."""

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
        "path",
        "query",
        "side",
        "stream",
        "switching",
        "version",
    )

    def __init__(self, head: Head, wire: Wire, bounds: Bounds) -> None:
        """Create the exchange of the request with this head; its answer is written to `wire`."""
        self.method = head.method
        self.path = head.path
        """The path as it was sent, with escapes."""
        self.query = head.query
        """The query without the question mark; empty if the request has no query."""
        self.headers = head.headers
        """The headers in their order, with names in lower case, without Content-Length."""
        self.length = head.length
        """The Content-Length in bytes; None if it was not sent."""
        self.version = head.version
        """The version of HTTP: `2`, `1.1` or `1.0`."""
        self.keep_alive = head.keep_alive
        """Whether the connection stays open after the answer."""
        self.is_started = False
        """Whether the application has received the request."""
        self.is_begun = False
        """Whether a part of the answer has been written."""
        self.is_answered = False
        """Whether the answer is complete."""
        self.is_disconnected = False
        """Whether the client has disconnected or sent a malformed body."""
        self.stream: Stream | None = None
        """The stream for the body of the answer, if the body is written in pieces."""
        self.switching: Switch | None = None
        """The connection, if the client asks to switch to another protocol (RFC 9110, section 7.8)."""
        self.side: Side | None = None
        """The connection for raw bytes, after the switch."""
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
        """The client's certificates (DER), the client's own first; not yet verified."""
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
        """Return the body, which may have at most `limit` bytes; wait for it up to `patience` seconds.

        Raises `BodyTooLarge`, `BodyTooSlow`, `TooManyBodies`, or `Disconnected`.
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
        """Send 100 Continue if the client waits for that before it sends the body."""
        if self._expects and not self.is_disconnected:
            self._expects = False
            self._wire.go_ahead()

    async def piece(self, patience: float) -> bytes:
        """Return the next part of the body, empty at its end; wait for it up to `patience` seconds.

        Raises `BodyTooSlow`, `TooManyBodies`, or `Disconnected`.
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
        """Write a whole answer (head and body), with the header for its length; `own` is an additional header."""
        self._begin()
        if not self.is_disconnected:
            self._wire.answer(self, code, headers, body, own)
            self._finish()

    def begin(self, code: int, headers: Sequence[Header]) -> Stream:
        """Write the head of an answer, and return the stream for its body; raises `Disconnected`."""
        self._begin()
        if self.is_disconnected:
            raise Disconnected
        length = next((int(value) for name, value in headers if name == b"content-length"), None)
        framing = self._wire.begin(self, code, headers, length)
        self.stream = Stream(self._wire, framing, None if framing is Framing.NONE else length, self._finish)
        return self.stream

    def switch(self, headers: Sequence[Header]) -> Side:
        """Answer 101 Switching Protocols, and return the connection for raw bytes; raises `Disconnected`.

        Callers must check that `switching` is set. The caller must close the connection.
        """
        if self.is_disconnected or self.switching is None:
            raise Disconnected
        self._begin()
        self.is_answered = True
        self._forget_body()
        self.side = self.switching.switch(headers)
        return self.side

    def retire(self) -> None:
        """Ask an HTTP/2 client to send later requests on a new connection; a connection of HTTP/1 stays."""
        self._wire.retire()

    def on_lost(self, call: Callable[[], object] | None) -> None:
        """Call `call` when the client disconnects, or now if it has disconnected. None cancels an earlier call."""
        self._on_lost = call
        if self.is_disconnected and call is not None:
            call()

    def abandon(self) -> None:
        """Abort the connection if the answer is incomplete, so that the client sees an error."""
        if not (self.is_answered or self.is_disconnected):
            self._wire.abort()

    def _begin(self) -> None:
        if self.is_begun:
            raise RuntimeError("a request is answered once")
        self.is_begun = True
        if self._expects:  # the client may still send the body, so the next bytes could be body or request
            self.keep_alive = False

    def _finish(self) -> None:
        self.is_answered = True
        self._forget_body()
        self._wire.finished(keep_alive=self.keep_alive)

    # Methods that the connection calls.

    def hold_head(self, head: Head) -> bool:
        """Reserve the memory of a long head; return False if that exceeds a budget.

        The method must be called only once.
        """
        cost = head.cost
        if cost <= self._bounds.short_head:
            return True
        if not self._wire.reserve_head(cost):
            return False
        self._held = cost
        return True

    def forget_head(self) -> None:
        """Release the memory of a long head when the application has ended; the client may still read the answer."""
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
        """Note that the whole request has been received."""
        self._has_ended = True
        self._wake()

    def lose(self) -> None:
        """Note that the client has disconnected."""
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
        """Wait until the body is complete, too large, lost or stalled, or until `patience` seconds have passed."""
        left, had = patience, len(self._body)
        while await self._waited(min(left, self._bounds.body_pause)):
            left -= self._bounds.body_pause
            came = len(self._body) - had
            if left <= 0 or (self._reserved and came < self._bounds.body_progress):
                return
            had += came

    async def _waited(self, seconds: float) -> bool:
        """Wait for a change of the body; return True if the body has not changed within the time."""
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
