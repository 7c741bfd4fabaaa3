"""One connection: requests come in, are answered one after the other, and what a client must not do is bounded.

Guarantees:
- Requests are answered in the order in which they came, one at a time; while the client does not read, none is begun.
- A client that has not sent its whole head `Bounds.head_timeout` seconds after it connected, or after it began a
  request, is disconnected. So is one that sends anything else for as long between two requests: blank lines, or the
  rest of a body whose request has been answered; and one that has not read anything for `Bounds.write_timeout`.
- What is no request is answered 400, 431, 417 or 505, and the application never hears of it. What was asked before is
  answered first; then the connection closes, and nothing that comes after is looked at.
- A body that was not asked for (`Expect: 100-continue`, and the answer came instead) is not waited for: the connection
  closes, since what comes next may be that body or a request.
- An upgrade is never made: its request is answered like any, and the connection closes.
- A server that stops tells each client with its next answer that the connection closes (`leave`), and is not held up by
  clients that are idle, or that have read their answer.
- A client certificate that expires while it is connected ends its connection: streams are cut off, and no further
  request is answered. Nothing else is judged of it here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from ctrlmgr.server.http.client_certificates import presented_certificates
from ctrlmgr.server.http.context import ServerContext
from ctrlmgr.server.http.eager import start
from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.framing import Header
from ctrlmgr.server.http.head import Head
from ctrlmgr.server.http.lazy_timer import LazyTimer
from ctrlmgr.server.http.parser import Malformed, RequestParser

log = structlog.get_logger(__name__)

_UNREAD = 128 * 1024
"""Bytes that may wait for a client before it counts as one that does not read; with TLS uvloop would say 512 KiB, for
each connection."""

_LONGEST = 86_400.0
"""Seconds of a timer; what is due later is looked at again."""


class _Gone(asyncio.Transport):
    """What is left of a transport once its connection is lost: it takes anything, and does nothing."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        """Send nothing."""

    def close(self) -> None:
        """Leave it closed."""

    def abort(self) -> None:
        """Leave it closed."""

    def pause_reading(self) -> None:
        """Read nothing."""

    def resume_reading(self) -> None:
        """Read nothing."""

    def get_write_buffer_size(self) -> int:
        return 0


_GONE = _Gone()


class Connection(asyncio.BufferedProtocol):
    """See the module's docstring: a `Wire` for its requests, a `Sink` for its parser, a protocol for its transport."""

    __slots__ = (
        "_certificate",
        "_certificates",
        "_context",
        "_current",
        "_expiry",
        "_head_timer",
        "_idleness",
        "_is_last",
        "_is_leaving",
        "_is_reading_paused",
        "_parser",
        "_peer",
        "_queue",
        "_receiving",
        "_refusal",
        "_transport",
        "_write_timer",
        "is_paused",
    )

    def __init__(self, context: ServerContext) -> None:
        """Start with nothing received."""
        self.is_paused = False
        self._context = context
        self._parser = RequestParser(self, context.bounds)
        self._transport: asyncio.Transport
        self._certificate: Mapping[str, Any] | None = None
        self._certificates: Sequence[bytes] = ()
        self._peer = ""
        self._current: Exchange | None = None  # the request that is being answered
        self._queue: deque[Exchange] = deque()  # those that wait for that
        self._receiving: Exchange | None = None  # the request whose body is awaited
        self._refusal: Malformed | None = None  # the last answer there will be: what else comes is not looked at
        self._is_last = False  # whether the next answer is the last one, because the server stops
        self._is_leaving = False  # whether there is none any more, but for those under way
        self._is_reading_paused = False
        # Ends the wait; a head that comes in one piece, as most do, needs none.
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._idleness = LazyTimer(context.loop, context.bounds.keep_alive, self._end_idleness)

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Begin to wait for the first request."""
        self._transport = transport
        self._context.connections.add(self)
        self._certificate = transport.get_extra_info("peercert") or None
        self._certificates = presented_certificates(transport.get_extra_info("ssl_object"))
        transport.set_write_buffer_limits(high=_UNREAD)
        peer = transport.get_extra_info("peername")
        self._peer = str(peer[0]) if isinstance(peer, tuple) else ""
        if self._certificate is not None:
            self._watch_expiry(self._certificate)
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who answer that the client has gone."""
        self._context.connections.discard(self)
        for timer in (self._head_timer, self._write_timer, self._expiry):
            if timer is not None:
                timer.cancel()
        self._idleness.close()
        self._refusal = self._refusal or Malformed("")
        for exchange in (self._current, *self._queue):
            if exchange is not None:
                exchange.lose()
        self._queue.clear()
        self._current = self._receiving = None
        self._parser.close()
        self._transport = _GONE  # uvloop's holds this, and buffers of hundreds of kilobytes

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the buffer."""
        return self._context.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what is in it."""
        self.receive(bytes(self._context.buffer[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close: a client that sends no more is not waited for."""

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self.is_paused = True
        self._write_timer = self._context.loop.call_later(
            self._context.bounds.write_timeout, self._look_at_reader, self._transport.get_write_buffer_size()
        )

    def resume_writing(self) -> None:
        """Note that it does again: its stream goes on, or its next request is answered."""
        self.is_paused = False
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        if self._current is None:
            self._go_on()
        elif self._current.stream is not None:
            self._current.stream.wake()

    def _look_at_reader(self, unread: int) -> None:
        left = self._transport.get_write_buffer_size()
        if left < unread:
            self._write_timer = self._context.loop.call_later(
                self._context.bounds.write_timeout, self._look_at_reader, left
            )
        else:
            self._transport.abort()

    # What comes in.

    def receive(self, data: bytes) -> None:
        """Parse what has come, and begin to answer what has been asked."""
        if self._refusal is not None or self._transport.is_closing():
            return
        self._idleness.cancel()
        try:
            self._parser.feed(data)
        except Malformed as error:
            self._refuse(error)
        self._go_on()
        self._bound()

    def on_head(self, head: Head) -> None:
        """Take the head of a request."""
        self._forget_head_timer()
        self._idleness.cancel()
        exchange = Exchange(head, self, self._context.bounds)
        if self._is_last:
            exchange.keep_alive = False
        self._receiving = exchange
        self._queue.append(exchange)

    def on_body(self, piece: bytes) -> None:
        """Take a piece of its body."""
        if self._receiving is not None:
            self._receiving.receive(piece)

    def on_end(self) -> None:
        """End a request; if it was answered before it was over, the next one has all the time that any has."""
        if self._receiving is not None:
            self._receiving.end()
            self._receiving = None
        if self._head_timer is not None:
            self._forget_head_timer()
            self._idleness.start()

    def _bound(self) -> None:
        """See that what has begun does not go on for too long."""
        if self._refusal is not None or self._head_timer is not None:
            return
        parser = self._parser
        if parser.in_head or not (parser.has_ended or self._current or self._queue):
            self._time_head()
        # Else a request is to be answered: that takes as long as it takes.

    def _refuse(self, malformed: Malformed) -> None:
        """Answer what is no request, in its turn, and look at nothing else that comes."""
        self._refusal = malformed
        malformed.__traceback__ = malformed.__cause__ = malformed.__context__ = None  # whose frames hold this
        self._forget_head_timer()
        broken, self._receiving = self._receiving, None
        if broken is not None:
            broken.lose()  # what has come of it is worth nothing
            if broken in self._queue:
                self._queue.remove(broken)
            elif broken is self._current:
                self._current = None
        if self._current is None and not self._queue:
            self._say_refusal(malformed, is_told=broken is None or not broken.is_begun)
        # Else there are requests whose answers come first.

    def _say_refusal(self, malformed: Malformed, *, is_told: bool = True) -> None:
        if is_told and not self._transport.is_closing():
            status = malformed.status
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            self._transport.write(f"{head}content-length: {len(status)}\r\n\r\n{status}".encode())
        self._transport.close()
        self._drop_soon()

    # What goes out.

    def _go_on(self) -> None:
        """Begin to answer the next request, if its turn has come."""
        if not self._queue or self._transport.is_closing():
            return
        if self._current is not None or self.is_paused:
            self.pause_reading()
            return
        self._current = exchange = self._queue.popleft()
        if not self._queue:
            self.resume_reading()
        task = start(self._answer(exchange), self._context.loop)
        if task is not None:
            self._context.tasks.add(task)
            task.add_done_callback(self._context.tasks.discard)

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._context.handler(exchange)
        except Exception:
            log.exception("a request was not answered")
        finally:
            if not exchange.is_answered and exchange is self._current:
                self._transport.abort()

    def finished(self, *, keep_alive: bool) -> None:
        """Go on to the next request, unless there must be none."""
        self._current = None
        if self._transport.is_closing():
            return
        if not keep_alive:
            self._transport.close()
            if self._is_leaving:
                self._drop_soon()
        elif self._queue:
            self._context.loop.call_soon(self._go_on)  # others have the loop in between
        elif self._refusal is not None:
            self._say_refusal(self._refusal)
        else:
            self.resume_reading()
            self._idleness.start()

    @property
    def date(self) -> Header:
        """The header that says what time it is."""
        return self._context.date

    @property
    def peer(self) -> str:
        """The address that the client has, empty if it has none."""
        return self._peer

    @property
    def certificates(self) -> Sequence[bytes]:
        """What the client presented (DER), its own certificate first; it has not been judged yet."""
        return self._certificates

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the client does not read."""
        self._transport.write(data)

    def abort(self) -> None:
        """Drop the connection and what has not been read."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """Take in no more than has come."""
        if not (self._is_reading_paused or self._transport.is_closing()):
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take in what comes."""
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of a body may be held, and count them if so."""
        return self._context.reserve(count)

    def release(self, count: int) -> None:
        """Count them no longer."""
        self._context.release(count)

    # How it ends.

    def leave(self) -> None:
        """Let the client have one more answer, which says that it is the last: the server stops.

        An idle connection stays open until `shutdown`: a client that is just sending would lose its request.
        """
        self._is_last = True
        for exchange in (self._current, *self._queue):
            if exchange is not None:
                exchange.keep_alive = False

    def shutdown(self) -> None:
        """Close an idle connection, and any other once what is under way has been answered."""
        if self._is_leaving:
            return
        self._is_leaving = True
        self.leave()
        if self._current is None and not self._queue:
            self._transport.close()
            self._drop_soon()

    def _watch_expiry(self, certificate: Mapping[str, Any]) -> None:
        expires = certificate.get("notAfter")
        if expires:
            left = ssl.cert_time_to_seconds(str(expires)) - self._context.clock.now() / 1_000_000
            if left < 0:
                return  # it was worth nothing from the beginning
            self._expiry = self._context.loop.call_later(min(left, _LONGEST), self._expire, left > _LONGEST)

    def _expire(self, is_early: bool) -> None:
        if is_early and self._certificate is not None:
            self._watch_expiry(self._certificate)
        elif self._current is not None and self._current.stream is not None:
            self._current.stream.abort()
        else:
            self.shutdown()

    def _end_idleness(self) -> None:
        """Close a connection that has been idle for long, even if its last answer has not been read."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.close()

    def _drop_soon(self) -> None:
        """See a closing connection closed: TLS would wait for the client to say goodbye as well.

        A client that is idle, as in every pool of connections, does not read and so does not answer.
        """
        if self._transport.is_closing():
            self._context.loop.call_later(
                self._context.bounds.linger, self._drop, self._transport.get_write_buffer_size()
            )

    def _drop(self, unread: int) -> None:
        """Drop a connection, unless its client has been reading since `unread` bytes were left of its answer."""
        left = self._transport.get_write_buffer_size()
        if left < unread:
            self._context.loop.call_later(self._context.bounds.linger, self._drop, left)
        else:
            self._transport.abort()

    def _time_head(self) -> None:
        self._head_timer = self._context.loop.call_later(self._context.bounds.head_timeout, self._transport.abort)

    def _forget_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
