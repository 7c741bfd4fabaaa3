"""A connection on which HTTP/1.1 is spoken: requests are answered one by one, and what a client may do is bounded.

Guarantees:
- Requests are answered in the order in which they came, one at a time; while the client does not read, none is begun.
- A client that has not sent its whole head `Bounds.head_timeout` seconds after it connected, or after it began a
  request, is disconnected. So is one that sends anything else for as long between two requests: blank lines, or the
  rest of a body whose request has been answered.
- What is no request is answered 400, 431, 417 or 505, and the application never hears of it. What was asked before is
  answered first; then the connection closes, and nothing that comes after is looked at.
- A body that was not asked for (`Expect: 100-continue`, and the answer came instead) is not waited for: the connection
  closes, since what comes next may be that body or a request.
- An upgrade is never made: its request is answered like any, and the connection closes.
- A server that stops tells each client with its next answer that the connection closes (`leave`), and is not held up by
  clients that are idle, or that have read their answer.
- Of a client certificate that expires, streams are cut off, and no further request is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ctrlmgr.server.http.context import ServerContext
from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.head import TOO_LARGE, Head, Malformed
from ctrlmgr.server.http.line_answers import LineAnswers
from ctrlmgr.server.http.parser import RequestParser
from ctrlmgr.server.http.transported import Transported

_UNREAD = 128 * 1024
"""Bytes that may wait for a client before it counts as one that does not read; with TLS uvloop would say 512 KiB, for
each connection."""


class Connection(Transported, LineAnswers):
    """See the module's docstring: a `Wire` for its requests, a `Sink` for its parser, a protocol for its transport."""

    __slots__ = (
        "_current",
        "_is_last",
        "_parser",
        "_queue",
        "_receiving",
        "_refusal",
    )

    def __init__(self, context: ServerContext) -> None:
        """Start with nothing received."""
        super().__init__(context)
        self._parser = RequestParser(self, context.bounds)
        self._current: Exchange | None = None  # the request that is being answered
        self._queue: deque[Exchange] = deque()  # those that wait for that
        self._receiving: Exchange | None = None  # the request whose body is awaited
        self._refusal: Malformed | None = None  # the last answer there will be: what else comes is not looked at
        self._is_last = False  # whether the next answer is the last one, because the server stops

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Begin to wait for the first request."""
        self._made(transport, _UNREAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who answer that the client has gone."""
        self._refusal = self._refusal or Malformed("")
        for exchange in (self._current, *self._queue):
            if exchange is not None:
                exchange.lose()
        self._queue.clear()
        self._current = self._receiving = None
        self._parser.close()
        self._lost()

    def _reads_again(self) -> None:
        """Go on with the stream, or with the next request."""
        if self._current is None:
            self._go_on()
        elif self._current.stream is not None:
            self._current.stream.wake()

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
        exchange = Exchange(head, self, self.bounds)
        if not exchange.hold_head(head):
            raise Malformed(TOO_LARGE)
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
        self._close()

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
        self._start(exchange)

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
            self.loop.call_soon(self._go_on)  # others have the loop in between
        elif self._refusal is not None:
            self._say_refusal(self._refusal)
        else:
            self.resume_reading()
            self._idleness.start()

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the client does not read."""
        self._transport.write(data)

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
            self._close()

    def _cut_off(self) -> None:
        """End a stream, and let anything else be answered."""
        if self._current is not None and self._current.stream is not None:
            self._current.stream.abort()
        else:
            self.shutdown()
