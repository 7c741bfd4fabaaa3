"""An HTTP/1.1 connection, which answers requests one by one and enforces the client's limits.

Guarantees:
- Requests are answered in order, one at a time. While the client does not read, the server starts no further request.
- A client is disconnected if it does not complete a head within `Bounds.head_timeout` seconds after it connected or
  began the request. The time limit for a request's head includes other data between requests, such as blank lines, or
  the rest of a body whose request was already answered.
- Malformed input is answered with 400, 431, 417 or 505, and never reaches the application. The server first answers the
  requests before the malformed input. After the response to malformed input, the connection closes, and further input
  is ignored.
- If a client holds a body back (`Expect: 100-continue`) and the response is sent before the body, the connection
  closes. The reason is that the client's next bytes could be the body or a new request.
- If the application switches protocols (`Exchange.switch`), the application receives all further bytes, and the time
  limits for requests no longer apply. If the application answers an upgrade request without a switch, the connection
  closes after the response.
- When the server stops, it marks its next response on each connection as the last (`announce_close`). A stopping server
  does not wait for clients that are idle or have read their last response.
- When a client certificate expires, streams are aborted, and no further request is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from ctrlmgr.http.base_connection import BaseConnection
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import Header, switching_protocols
from ctrlmgr.http.http1_responses import LineAnswers
from ctrlmgr.http.parser import RequestParser
from ctrlmgr.http.request_head import TOO_LARGE, Head, Malformed
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.tunnel import ROOM, Receiver, Side, close_when_written, read_all

_UNREAD = 128 * 1024
"""The number of pending output bytes from which on the client counts as not reading.

For TLS connections, uvloop's default is 512 KiB.
"""


_HELD = 64 * 1024
"""Maximum number of bytes after an upgrade request that are held until the request is answered."""


class Connection(BaseConnection, LineAnswers):
    """An HTTP/1.1 connection: the `Wire` of its requests, the `Sink` of its parser, the protocol of its transport.

    After the switch to another protocol, the connection is a `tunnel.Side`.
    """

    __slots__ = (
        "_current",
        "_has_switched",
        "_is_finishing",
        "_is_last",
        "_parser",
        "_queue",
        "_receiver",
        "_receiving",
        "_refusal",
    )

    def __init__(self, context: ServerContext) -> None:
        """Create a connection that has received no data."""
        super().__init__(context)
        self._parser = RequestParser(self, context.bounds)
        self._current: Exchange | None = None  # the request that is being answered
        self._queue: deque[Exchange] = deque()  # requests that wait for the current one
        self._receiving: Exchange | None = None  # the request whose body is incomplete
        self._refusal: Malformed | None = None  # the error with which the connection ends; further input is ignored
        self._is_last = False  # whether the next answer is the last one, because the server is stopping
        self._has_switched = False  # whether the connection now uses another protocol
        self._is_finishing = False  # whether a connection with another protocol closes after its pending output
        self._receiver: Receiver | None = None  # the receiver of the other protocol's bytes

    # The transport calls the following methods.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Wait for the first request."""
        self._made(transport, _UNREAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify all requests that the client has disconnected."""
        self._refusal = self._refusal or Malformed("")
        for exchange in (self._current, *self._queue):
            if exchange is not None:
                exchange.lose()
        self._queue.clear()
        self._current = self._receiving = None
        self._parser.close()
        self._lost()
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.end()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the shared read buffer or, after a protocol switch, a buffer with room for all readable bytes."""
        return self._context.room(sizehint + ROOM) if self._has_switched else self._context.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes in the buffer."""
        self.receive(bytes((self._context.room() if self._has_switched else self._context.buffer)[:nbytes]))

    def pause_writing(self) -> None:
        """Record that the peer does not read; after a protocol switch, no write timeout applies."""
        if self._has_switched:
            self.is_paused = True
        else:
            super().pause_writing()

    def _reads_again(self) -> None:
        """Resume the response stream, or start the next request."""
        if self._has_switched:
            self._resume_tunnel()
        elif self._current is None:
            self._go_on()
        elif self._current.stream is not None:
            self._current.stream.wake()

    # Input.

    def receive(self, data: bytes) -> None:
        """Parse received bytes, and start the next request."""
        if self._receiver is not None:
            if not self._is_finishing:
                self._receiver.receive(data)
            return
        if self._refusal is not None or self._transport.is_closing():
            return
        self._idleness.cancel()
        try:
            self._parser.feed(data)
        except Malformed as error:
            self._refuse(error)
        if len(self._parser.rest) > _HELD:
            self.pause_reading()
        self._go_on()
        self._bound()

    def on_head(self, head: Head) -> None:
        """Add a request to the queue."""
        self._forget_head_timer()
        self._idleness.cancel()
        exchange = Exchange(head, self, self.bounds)
        if not exchange.hold_head(head):
            raise Malformed(TOO_LARGE)
        if self._is_last:
            exchange.keep_alive = False
        if head.upgrades:
            exchange.switching = self
        self._receiving = exchange
        self._queue.append(exchange)

    def on_body(self, piece: bytes) -> None:
        """Add a part of the current request's body."""
        if self._receiving is not None:
            self._receiving.receive(piece)

    def on_end(self) -> None:
        """Complete the current request.

        If the request was answered before its body ended, restart the timeout for the next head.
        """
        if self._receiving is not None:
            self._receiving.end()
            self._receiving = None
        if self._head_timer is not None:
            self._forget_head_timer()
            self._idleness.start()

    def _bound(self) -> None:
        """Start the timeout for the next head, if the next input must be a head."""
        if self._refusal is not None or self._head_timer is not None:
            return
        parser = self._parser
        if parser.in_head or not (parser.has_ended or self._current or self._queue):
            self._time_head()
        # If not, a request is being answered, for which this module has no timeout.

    def _refuse(self, malformed: Malformed) -> None:
        """Answer malformed input after the responses to earlier requests, and ignore further input."""
        self._refusal = malformed
        # The frames of the traceback refer to this connection.
        malformed.__traceback__ = malformed.__cause__ = malformed.__context__ = None
        self._forget_head_timer()
        broken, self._receiving = self._receiving, None
        if broken is not None:
            broken.lose()  # the body of the request is incomplete
            if broken in self._queue:
                self._queue.remove(broken)
            elif broken is self._current:
                self._current = None
        if self._current is None and not self._queue:
            self._say_refusal(malformed, is_told=broken is None or not broken.is_begun)
        # If earlier requests are not answered yet, `finished` writes the response later.

    def _say_refusal(self, malformed: Malformed, *, is_told: bool = True) -> None:
        if is_told and not self._transport.is_closing():
            status = malformed.status
            head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
            self._transport.write(f"{head}content-length: {len(status)}\r\n\r\n{status}".encode())
        self._close()

    # Output.

    def _go_on(self) -> None:
        """Start the next request if no other request is being answered."""
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
        """Start the next request, or close the connection."""
        self._current = None
        if self._transport.is_closing():
            return
        if not keep_alive:
            self._transport.close()
            if self._is_leaving:
                self._drop_soon()
        elif self._queue:
            self.loop.call_soon(self._go_on)  # let other tasks run in between
        elif self._refusal is not None:
            self._say_refusal(self._refusal)
        else:
            self.resume_reading()
            self._idleness.start()

    def write(self, data: bytes) -> None:
        """Send bytes, or buffer them while the client does not read."""
        if not (self._has_switched and self._transport.is_closing()):
            self._transport.write(data)

    # Another protocol.

    def switch(self, headers: Sequence[Header]) -> Side:
        """Write 101 Switching Protocols, and return this connection as one side of a tunnel."""
        self._has_switched = True
        self._forget_head_timer()
        self._idleness.close()
        if self._write_timer is not None:
            self._write_timer.cancel()
        self.resume_reading()
        read_all(self._transport)
        self._transport.write(switching_protocols(headers))
        return self

    def attach(self, receiver: Receiver) -> None:
        """Pass all further bytes to `receiver`."""
        self._receiver = receiver
        rest, self._parser.rest = self._parser.rest, b""
        if rest:
            receiver.receive(rest)

    def finish(self) -> None:
        """Close the connection after the peer has accepted all pending output."""
        self._is_finishing = True
        self.resume_reading()
        if not self._transport.is_closing():
            close_when_written(self._transport)

    def _resume_tunnel(self) -> None:
        if self._is_finishing:
            self._transport.close()
        elif self._receiver is not None:
            self._receiver.resume()

    # The following methods end the connection.

    def announce_close(self) -> None:
        """Mark the next response as the last, because the server is stopping.

        An idle connection stays open until `shutdown`, because the client may already be sending a request.
        """
        self._is_last = True
        for exchange in (self._current, *self._queue):
            if exchange is not None:
                exchange.keep_alive = False

    def shutdown(self) -> None:
        """Close the connection now if it is idle; if not, close it after the current requests have ended."""
        if self._is_leaving:
            return
        self._is_leaving = True
        self.announce_close()
        if self._current is None and not self._queue:
            self._close()

    def _cut_off(self) -> None:
        """Abort the current stream or tunnel.

        If there is neither, close the connection after the current requests have ended.
        """
        if self._has_switched:
            self.abort()
        elif self._current is not None and self._current.stream is not None:
            self._current.stream.abort()
        else:
            self.shutdown()
