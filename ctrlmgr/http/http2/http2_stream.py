"""One stream of an HTTP/2 connection carries one request and its response (RFC 9113, sections 5.1, 5.2 and 8.1).

Guarantees:
- The server never exceeds the client's flow-control window. Data that waits for the flow-control window is sent in
  order, and counts as unread.
- If a client reads none of the waiting data for `Bounds.write_timeout` seconds, its stream is reset.
- The flow-control window for a request's body is at most `Bounds.unread_bytes` until the application asks for the body;
  a client must not exceed it. If the length of a body differs from its Content-Length, the server resets the stream.
- A client never takes an incomplete response for a complete one, because the stream of the response is reset.

In this package, `Stream` is the body of a response; a stream of RFC 9113 is a `Channel`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import Header, has_body
from ctrlmgr.http.http2.frames import (
    DATA,
    END_STREAM,
    LARGEST,
    WIDEST,
    Code,
    StreamFault,
    head,
    headers,
    window_update,
)
from ctrlmgr.http.http2.header_blocks import written
from ctrlmgr.http.lazy_timer import LazyTimer
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.response_stream import Framing
from ctrlmgr.http.size_limits import Bounds


class ChannelConnection(Protocol):
    """The interface of an HTTP/2 connection that its channels use."""

    is_paused: bool
    peer: str
    certificates: Sequence[bytes]
    window: int
    """The connection's flow-control window for sending bodies, in bytes."""

    @property
    def date(self) -> Header:
        """The value of the header `Date`."""

    @property
    def bounds(self) -> Bounds:
        """The limits that apply to a client."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that runs the timers."""

    def send(self, *pieces: bytes | memoryview) -> None:
        """Queue parts of frames.

        The parts are sent at the end of this turn of the event loop, together with other output.
        """

    def reset(self, number: int, code: Code) -> None:
        """Reset a stream, and ignore frames that the client still sends on this stream for a short time."""

    def drop(self, number: int) -> None:
        """End a stream on which the client is still sending; the client first gets time to read the response."""

    def shutdown(self) -> None:
        """Send GOAWAY, and close the connection after the running requests have ended."""

    def forget(self, channel: Channel) -> None:
        """Record that a channel has ended."""

    def complete(self, channel: Channel) -> None:
        """Record that the whole response of a channel has been sent."""

    def await_room(self, channel: Channel) -> None:
        """Resume a channel when the client opens the connection's window again."""

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes for a request body; return False if that exceeds a budget."""

    def release(self, count: int) -> None:
        """Release the reserved bytes of a request body."""

    def reserve_head(self, cost: int) -> bool:
        """Reserve `cost` bytes for a request head; return False if that exceeds a budget."""

    def release_head(self, cost: int) -> None:
        """Release the reserved bytes of a request head."""


class Channel:
    """One stream of an HTTP/2 connection: the `Wire` of one request. Used on the event loop's thread only."""

    __slots__ = (
        "_ends",
        "_has_come",
        "_is_over",
        "_length",
        "_received",
        "_room",
        "_takes",
        "_timer",
        "_trunk",
        "_unread",
        "_waiting",
        "_window",
        "exchange",
        "number",
    )

    def __init__(self, number: int, head: Head, trunk: ChannelConnection, window: int) -> None:
        """Create the channel of a request with this head.

        `window` is the client's flow-control window for the response, in bytes.
        """
        self.number = number
        self.exchange = Exchange(head, self, trunk.bounds)
        self._trunk = trunk
        self._length = head.length
        self._received = 0
        self._has_come = False  # whether the whole request has been received
        self._takes = False  # whether the application has asked for the body
        self._room = trunk.bounds.unread_bytes  # number of bytes that the client may still send
        self._unread = 0  # received bytes for which no WINDOW_UPDATE has been sent
        self._window = window  # number of bytes that the server may still send
        self._waiting: deque[memoryview] = deque()  # data of the answer that exceeds the window
        self._ends = False  # whether the answer ends after the data that waits
        self._is_over = False  # whether the server sends no more data
        self._timer: LazyTimer | None = None

    # Input.

    def receive(self, piece: bytes, size: int) -> None:
        """Add a part of the body; `size` is the number of bytes that it used of the flow-control window.

        Raises `StreamFault`.
        """
        self.require_open()
        self._room -= size
        self._received += len(piece)
        if self._room < 0:
            raise StreamFault(Code.FLOW_CONTROL_ERROR, "the body exceeds the flow-control window of the stream")
        self._unread += size
        if piece:
            self.exchange.receive(piece)
        self._make_room()

    def require_open(self) -> None:
        """Raise `StreamFault` if the whole request has been received."""
        if self._has_come:
            raise StreamFault(Code.STREAM_CLOSED, "DATA frame after the end of the request")

    def end(self) -> None:
        """Record that the whole request has been received.

        Raises `StreamFault` if the body is shorter than its Content-Length.
        """
        self.require_open()
        if self._length is not None and self._received != self._length:
            raise StreamFault(Code.PROTOCOL_ERROR, "the length of the body differs from the content-length")
        self._has_come = True
        self.exchange.end()

    def widen(self, count: int) -> None:
        """Change the window by `count` bytes, which may be negative.

        Raises `StreamFault` if the window becomes too large.
        """
        self._window += count
        if self._window > WIDEST:
            raise StreamFault(Code.FLOW_CONTROL_ERROR, "the stream's window exceeds the maximum")
        if count > 0 and self._waiting and self._window > 0:
            self.send_waiting()

    def lose(self) -> None:
        """Record that the client has disconnected or reset the stream."""
        self._is_over = True
        self._waiting.clear()
        self._forget_timer()
        self._part().lose()

    # The exchange calls the following methods.

    @property
    def waits(self) -> bool:
        """Return whether data of the response waits for the flow-control window."""
        return bool(self._waiting)

    @property
    def is_paused(self) -> bool:
        """Return whether the client does not read its pending output."""
        return bool(self._waiting) or self._trunk.is_paused

    @property
    def peer(self) -> str:
        """The client's address; empty if it has none."""
        return self._trunk.peer

    @property
    def certificates(self) -> Sequence[bytes]:
        """The client's certificate, followed by the rest of its chain (DER); the chain is not verified yet."""
        return self._trunk.certificates

    def go_ahead(self) -> None:
        """Send 100 Continue."""
        self._trunk.send(headers(self.number, written(100, self._trunk.date, ()), 0))

    def answer(self, exchange: Exchange, code: int, lines: Sequence[Header], body: bytes, own: Header | None) -> None:
        """Write a whole response."""
        length = len(body) if has_body(code) else None
        block = written(code, self._trunk.date, lines, own=own, length=length)
        if not body or not length or exchange.method == "HEAD":
            self._is_over = True
            self._trunk.send(headers(self.number, block, END_STREAM))
        elif length <= LARGEST and length <= self._window and length <= self._trunk.window:
            self._is_over = True
            self._trunk.window -= length
            self._trunk.send(headers(self.number, block, 0), head(length, DATA, END_STREAM, self.number), body)
        else:
            self._trunk.send(headers(self.number, block, 0))
            self.write(body)

    def begin(self, exchange: Exchange, code: int, lines: Sequence[Header], length: int | None) -> Framing:
        """Write the head of a response whose body follows."""
        self._trunk.send(headers(self.number, written(code, self._trunk.date, lines), 0))
        return Framing.NONE if exchange.method == "HEAD" or not has_body(code) else Framing.PLAIN

    def write(self, data: bytes) -> None:
        """Send a part of the response's body, or keep it until the flow-control window allows sending it."""
        size, trunk = len(data), self._trunk
        if size <= LARGEST and size <= self._window and size <= trunk.window:  # this is true only if no data waits
            self._window -= size
            trunk.window -= size
            trunk.send(head(size, DATA, 0, self.number), data)
        else:
            self._waiting.append(memoryview(data))
            self.send_waiting()

    def finished(self, *, keep_alive: bool) -> None:
        """End the response; data that waits for the flow-control window is sent first."""
        self._ends = True
        if not self._waiting:
            self._end()

    def retire(self) -> None:
        """Send GOAWAY, and close the connection after its running requests, as net/http does (`Connection: close`)."""
        self._trunk.shutdown()

    def abort(self) -> None:
        """Reset the stream, and drop data that has not been sent."""
        self.reset(Code.INTERNAL_ERROR)

    def reset(self, code: Code) -> None:
        """Reset the stream with an error code, and notify the exchange."""
        if not self._is_over:
            self._trunk.reset(self.number, code)
            self.lose()

    def pause_reading(self) -> None:
        """Send no more WINDOW_UPDATEs for the body."""
        self._takes = False

    def resume_reading(self) -> None:
        """Enlarge the flow-control window, so that the client can send the rest of the body."""
        self._takes = True
        self._make_room()

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes for a request body; return False if that exceeds a budget."""
        return self._trunk.reserve(count)

    def release(self, count: int) -> None:
        """Release the reserved bytes of a request body."""
        self._trunk.release(count)

    def reserve_head(self, cost: int) -> bool:
        """Reserve `cost` bytes for a request head; return False if that exceeds a budget."""
        return self._trunk.reserve_head(cost)

    def release_head(self, cost: int) -> None:
        """Release the reserved bytes of a request head."""
        self._trunk.release_head(cost)

    # Output.

    def send_waiting(self) -> None:
        """Send as much waiting data as the flow-control window allows."""
        waiting, trunk = self._waiting, self._trunk
        if not waiting:
            return
        before = self._window
        while waiting and (room := min(self._window, trunk.window, LARGEST)) > 0:
            piece = waiting[0]
            size = min(len(piece), room)
            self._window -= size
            trunk.window -= size
            trunk.send(head(size, DATA, 0, self.number), piece[:size])
            if size == len(piece):
                waiting.popleft()
            else:
                waiting[0] = piece[size:]
        if waiting:
            if trunk.window <= 0:
                trunk.await_room(self)
            if self._timer is None or self._window < before:
                self._time()
            return
        self._forget_timer()
        if self._ends:
            self._end()
        elif self.exchange.stream is not None and not trunk.is_paused:
            self.exchange.stream.wake()

    def _end(self) -> None:
        """Send the end of the response, unless the last data frame has marked the end."""
        if not self._is_over:
            self._is_over = True
            self._trunk.send(head(0, DATA, END_STREAM, self.number))
        self._trunk.complete(self)
        if not self._has_come:  # ignore the rest of the request
            self._trunk.drop(self.number)
        self._part()

    def _part(self) -> Exchange:
        """Detach the exchange and return it; this breaks the reference cycle."""
        exchange = self.exchange
        self._trunk.forget(self)
        del self.exchange
        return exchange

    def _make_room(self) -> None:
        """Send a WINDOW_UPDATE if enough bytes of the body have been received."""
        if self._takes and not self._has_come and 2 * self._unread >= self._trunk.bounds.unread_bytes:
            self._trunk.send(window_update(self.number, self._unread))
            self._room += self._unread
            self._unread = 0

    def _time(self) -> None:
        if self._timer is None:
            trunk = self._trunk
            self._timer = LazyTimer(
                trunk.loop, trunk.bounds.write_timeout, partial(self.reset, Code.FLOW_CONTROL_ERROR)
            )
        self._timer.start()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.close()
            self._timer = None
