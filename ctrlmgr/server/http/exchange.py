"""One request and its answer: what the server hands to the application, and the whole seam between the two.

Guarantees:
- A body is taken in only as far as the application asks for it, and never beyond the limit it names; a client that
  waits to be told (`Expect: 100-continue`) is told so only then.
- There is one answer, whole (`answer`) or in pieces (`begin`); what is said after the client has gone away goes
  nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.http.bounds import Bounds
from ctrlmgr.server.http.framing import Header
from ctrlmgr.server.http.head import Head
from ctrlmgr.server.http.stream import Disconnected, Framing, Outlet, Stream


class BodyTooLarge(CtrlmgrError):
    """A body is larger than the application takes."""


class BodyTooSlow(CtrlmgrError):
    """A body has not come in the time that the application gives it."""


class TooManyBodies(CtrlmgrError):
    """The bodies of all requests together are more than the server holds."""


class Wire(Outlet, Protocol):
    """What a request came on and its answer goes to; used on the event loop only."""

    @property
    def peer(self) -> str:
        """The address that the client has, empty if it has none."""

    @property
    def certificates(self) -> Sequence[bytes]:
        """What the client presented (DER), its own certificate first; it has not been judged yet."""

    def go_ahead(self) -> None:
        """Tell a client that waits for it to send its body."""

    def answer(self, exchange: Exchange, code: int, headers: Sequence[Header], body: bytes, own: Header | None) -> None:
        """Write a whole answer; its length is said by this, and `own` is a header more."""

    def begin(self, exchange: Exchange, code: int, headers: Sequence[Header], length: int | None) -> Framing:
        """Write the head of an answer whose body follows, of `length` bytes if the headers say so."""

    def finished(self, *, keep_alive: bool) -> None:
        """Note that the request which was being answered has its answer."""

    def pause_reading(self) -> None:
        """Take in no more than has come."""

    def resume_reading(self) -> None:
        """Take in what comes."""

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of a body may be held, and count them if so."""

    def release(self, count: int) -> None:
        """Count them no longer."""

    def reserve_head(self, cost: int) -> bool:
        """Return whether a head of `cost` bytes may be held, and count them if so."""

    def release_head(self, cost: int) -> None:
        """Stop counting a head."""


class Exchange:
    """See the module's docstring; used on the event loop only."""

    __slots__ = (
        "_allowed",
        "_body",
        "_bounds",
        "_expects",
        "_has_ended",
        "_held",
        "_is_refused",
        "_reserved",
        "_waiting",
        "_wire",
        "headers",
        "is_answered",
        "is_begun",
        "is_lost",
        "is_started",
        "keep_alive",
        "length",
        "method",
        "path",
        "query",
        "stream",
        "version",
    )

    def __init__(self, head: Head, wire: Wire, bounds: Bounds) -> None:
        """Answer the request with this head on `wire`."""
        self.method = head.method
        self.path = head.path
        """The path as it was sent, escapes and all."""
        self.query = head.query
        """What follows the question mark in the target; empty without one."""
        self.headers = head.headers
        """The headers in the order in which they came, names in lower case, but for Content-Length."""
        self.length = head.length
        """The bytes of the body, as Content-Length says; None if it does not."""
        self.version = head.version
        """The version of HTTP: `2`, `1.1` or `1.0`."""
        self.keep_alive = head.keep_alive
        """Whether the connection goes on after the answer."""
        self.is_started = False
        """Whether the application has been asked for an answer."""
        self.is_begun = False
        """Whether the answer has begun to be written."""
        self.is_answered = False
        """Whether it is complete."""
        self.is_lost = False
        """Whether the client has gone away, or what it sent turned out to be no request."""
        self.stream: Stream | None = None
        """The body of the answer, if it is written in pieces."""
        self._wire = wire
        self._bounds = bounds
        self._expects = head.expects_continue
        self._body = bytearray()
        self._allowed = bounds.unread_bytes
        self._has_ended = False
        self._held = 0  # bytes that the head counts for
        self._is_refused = False
        self._reserved = 0
        self._waiting: asyncio.Future[bool] | None = None

    @property
    def certificates(self) -> Sequence[bytes]:
        """What the client presented (DER), its own certificate first; it has not been judged yet."""
        return self._wire.certificates

    @property
    def peer(self) -> str:
        """The address that the client has, empty if it has none."""
        return self._wire.peer

    @property
    def has_come(self) -> bool:
        """Whether all of the request is here."""
        return self._has_ended

    async def body(self, limit: int, patience: float) -> bytes:
        """Return the body, of `limit` bytes at most, once it has come, which may take `patience` seconds.

        Raises `BodyTooLarge`, `BodyTooSlow`, `TooManyBodies`, or `Disconnected`.
        """
        if self._expects and not self.is_lost:
            self._expects = False
            self._wire.go_ahead()
        self._allowed = limit
        if not (self._has_ended or self.is_lost or self._is_refused or len(self._body) > limit):
            self._wire.resume_reading()
            await self._change(patience)
        if self.is_lost:
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

    def answer(self, code: int, headers: Sequence[Header], body: bytes, own: Header | None = None) -> None:
        """Write a whole answer, head and body in one; its length is said by this, and `own` is a header more."""
        self._begin()
        if not self.is_lost:
            self._wire.answer(self, code, headers, body, own)
            self._finish()

    def begin(self, code: int, headers: Sequence[Header]) -> Stream:
        """Write the head of an answer, and return the stream of its body; raises `Disconnected`."""
        self._begin()
        if self.is_lost:
            raise Disconnected
        length = next((int(value) for name, value in headers if name == b"content-length"), None)
        framing = self._wire.begin(self, code, headers, length)
        self.stream = Stream(self._wire, framing, None if framing is Framing.NONE else length, self._finish)
        return self.stream

    def abandon(self) -> None:
        """Have the client see that there will be no answer, or no more of it, if it has not had all of one."""
        if not (self.is_answered or self.is_lost):
            self._wire.abort()

    def _begin(self) -> None:
        if self.is_begun:
            raise RuntimeError("a request is answered once")
        self.is_begun = True
        if self._expects:  # the client may send the body now or may not: nothing that comes next can be told apart
            self.keep_alive = False

    def _finish(self) -> None:
        self.is_answered = True
        self._forget_body()
        self._wire.finished(keep_alive=self.keep_alive)

    # What the connection tells.

    def hold_head(self, head: Head) -> bool:
        """Return whether this head may be held, and count it if it is long; called once."""
        cost = head.cost
        if cost <= self._bounds.short_head:
            return True
        if not self._wire.reserve_head(cost):
            return False
        self._held = cost
        return True

    def forget_head(self) -> None:
        """Drop a long head: the application is done with it, though the answer may still wait for its reader."""
        if self._held:
            self._wire.release_head(self._held)
            self._held = 0
            self.headers, self.path, self.query = HeaderLines(), b"", b""

    def receive(self, piece: bytes) -> None:
        """Take a piece of the body; what comes after the answer is of no interest."""
        if self.is_answered or self.is_lost or self._is_refused:
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
        """Note that all of the request has come."""
        self._has_ended = True
        self._wake()

    def lose(self) -> None:
        """Note that the client has gone away."""
        self.is_lost = True
        self._forget_body()
        if not self.is_started:
            self.forget_head()
        self._wake()
        if self.stream is not None:
            self.stream.lose()

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
        """Return when the body is complete, too large or lost, stalls, or `patience` seconds have passed."""
        left, had = patience, len(self._body)
        while await self._waited(min(left, self._bounds.body_pause)):
            left -= self._bounds.body_pause
            came = len(self._body) - had
            if left <= 0 or (self._reserved and came < self._bounds.body_progress):
                return
            had += came

    async def _waited(self, seconds: float) -> bool:
        """Wait for a change of the body; return whether there was none."""
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
"""What answers requests."""
