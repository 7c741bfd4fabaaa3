"""One stream of an HTTP/2 connection: the way of a request and its answer (RFC 9113, sections 5.1, 5.2 and 8.1).

Guarantees:
- No more is sent than the client has room for. What has to wait for room goes in order, and counts as unread.
- A client that takes nothing of what waits for `Bounds.write_timeout` loses the stream.
- No more of a body is taken in than its windows allow, and of one that has not been asked for no more than
  `Bounds.unread_bytes`. A body that is not as long as was announced ends the stream.
- An answer that breaks off is never taken for a whole one: its stream is reset.

`Stream` is the body of an answer everywhere here; what RFC 9113 calls a stream is a channel.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ctrlmgr.server.http.bounds import Bounds
from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.framing import Header, has_body
from ctrlmgr.server.http.head import Head
from ctrlmgr.server.http.http2.blocks import written
from ctrlmgr.server.http.http2.frames import (
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
from ctrlmgr.server.http.lazy_timer import LazyTimer
from ctrlmgr.server.http.stream import Framing


class Trunk(Protocol):
    """The connection, as its channels see it."""

    is_paused: bool
    peer: str
    certificates: Sequence[bytes]
    window: int
    """Bytes of bodies that the client has room for, whatever stream they are on."""

    @property
    def date(self) -> Header:
        """The header that says what time it is."""

    @property
    def bounds(self) -> Bounds:
        """What a client may take."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where timers are set."""

    def send(self, *pieces: bytes | memoryview) -> None:
        """Send pieces of frames soon, with what else is sent by then."""

    def reset(self, number: int, code: Code) -> None:
        """End a stream here, on which the client may still send for a moment."""

    def drop(self, number: int) -> None:
        """Be done with a stream on which the client still sends, once it has had a moment to read its answer."""

    def forget(self, channel: Channel) -> None:
        """Note that a channel is over."""

    def complete(self, channel: Channel) -> None:
        """Note that the whole answer of a channel has been sent."""

    def await_room(self, channel: Channel) -> None:
        """Have a channel go on when the client has room again on the connection."""

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of a body may be held, and count them if so."""

    def release(self, count: int) -> None:
        """Count them no longer."""

    def reserve_head(self, cost: int) -> bool:
        """Return whether a head of `cost` bytes may be held, and count them if so."""

    def release_head(self, cost: int) -> None:
        """Stop counting a head."""


class Channel:
    """See the module's docstring: a `Wire` for one request; used on the event loop only."""

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

    def __init__(self, number: int, head: Head, trunk: Trunk, window: int) -> None:
        """Begin with a request's head; the client has room for `window` bytes of its answer."""
        self.number = number
        self.exchange = Exchange(head, self, trunk.bounds)
        self._trunk = trunk
        self._length = head.length
        self._received = 0
        self._has_come = False  # whether all of the request is here
        self._takes = False  # whether the body has been asked for, so that there is room for more of it
        self._room = trunk.bounds.unread_bytes  # bytes that the client may send
        self._unread = 0  # bytes that it has sent, and not been given room for again
        self._window = window  # bytes that it has room for
        self._waiting: deque[memoryview] = deque()  # what it has no room for
        self._ends = False  # whether the answer is over with that
        self._is_over = False  # whether nothing is sent any more
        self._timer: LazyTimer | None = None

    # What comes in.

    def receive(self, piece: bytes, size: int) -> None:
        """Take a piece of the body, which took `size` bytes of the window; raises `StreamFault`."""
        self.must_go_on()
        self._room -= size
        self._received += len(piece)
        if self._room < 0:
            raise StreamFault(Code.FLOW_CONTROL_ERROR, "more of a body than there is room for")
        self._unread += size
        if piece:
            self.exchange.receive(piece)
        self._make_room()

    def must_go_on(self) -> None:
        """Raise `StreamFault` if all of the request has come."""
        if self._has_come:
            raise StreamFault(Code.STREAM_CLOSED, "more of a request that was over")

    def end(self) -> None:
        """Note that all of the request has come; raises `StreamFault`."""
        self.must_go_on()
        if self._length is not None and self._received != self._length:
            raise StreamFault(Code.PROTOCOL_ERROR, "another length of the body than was announced")
        self._has_come = True
        self.exchange.end()

    def widen(self, count: int) -> None:
        """Note that the client has room for so many bytes more, or fewer; raises `StreamFault`."""
        self._window += count
        if self._window > WIDEST:
            raise StreamFault(Code.FLOW_CONTROL_ERROR, "more room than there can be")
        if count > 0 and self._waiting and self._window > 0:
            self.go_on()

    def lose(self) -> None:
        """Note that the client has gone away, or is to have no answer any more."""
        self._is_over = True
        self._waiting.clear()
        self._forget_timer()
        self._part().lose()

    # What those who answer ask of it.

    @property
    def waits(self) -> bool:
        """Whether some of the answer waits for room."""
        return bool(self._waiting)

    @property
    def is_paused(self) -> bool:
        """Whether the client is behind with reading."""
        return bool(self._waiting) or self._trunk.is_paused

    @property
    def peer(self) -> str:
        """The address that the client has, empty if it has none."""
        return self._trunk.peer

    @property
    def certificates(self) -> Sequence[bytes]:
        """What the client presented (DER), its own certificate first; it has not been judged yet."""
        return self._trunk.certificates

    def go_ahead(self) -> None:
        """Tell a client that waits for it to send its body."""
        self._trunk.send(headers(self.number, written(100, self._trunk.date, ()), 0))

    def answer(self, exchange: Exchange, code: int, lines: Sequence[Header], body: bytes, own: Header | None) -> None:
        """Write a whole answer."""
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
        """Write the head of an answer whose body follows."""
        self._trunk.send(headers(self.number, written(code, self._trunk.date, lines), 0))
        return Framing.NONE if exchange.method == "HEAD" or not has_body(code) else Framing.PLAIN

    def write(self, data: bytes) -> None:
        """Send a piece of a body, or keep it while the client has no room for it."""
        size, trunk = len(data), self._trunk
        if size <= LARGEST and size <= self._window and size <= trunk.window:  # so nothing waits
            self._window -= size
            trunk.window -= size
            trunk.send(head(size, DATA, 0, self.number), data)
        else:
            self._waiting.append(memoryview(data))
            self.go_on()

    def finished(self, *, keep_alive: bool) -> None:
        """End the answer, once what waits has been sent."""
        self._ends = True
        if not self._waiting:
            self._end()

    def abort(self) -> None:
        """Reset the stream, and drop what has not been sent."""
        self.reset(Code.INTERNAL_ERROR)

    def reset(self, code: Code) -> None:
        """Say why the stream ends here, to the client and to those who answer."""
        if not self._is_over:
            self._trunk.reset(self.number, code)
            self.lose()

    def pause_reading(self) -> None:
        """Give the client no more room."""
        self._takes = False

    def resume_reading(self) -> None:
        """Give the client room for what there is to come."""
        self._takes = True
        self._make_room()

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of a body may be held, and count them if so."""
        return self._trunk.reserve(count)

    def release(self, count: int) -> None:
        """Count them no longer."""
        self._trunk.release(count)

    def reserve_head(self, cost: int) -> bool:
        """Return whether a head of `cost` bytes may be held, and count them if so."""
        return self._trunk.reserve_head(cost)

    def release_head(self, cost: int) -> None:
        """Stop counting a head."""
        self._trunk.release_head(cost)

    # What goes out.

    def go_on(self) -> None:
        """Send what waits, as far as the client has room for it."""
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
        """Say that the answer is over, if that has not been said with the last of it."""
        if not self._is_over:
            self._is_over = True
            self._trunk.send(head(0, DATA, END_STREAM, self.number))
        self._trunk.complete(self)
        if not self._has_come:  # and nobody will look at the rest of it
            self._trunk.drop(self.number)
        self._part()

    def _part(self) -> Exchange:
        """Be over, and return whose way it was: neither knows of the other, or the collector would have to look."""
        exchange = self.exchange
        self._trunk.forget(self)
        del self.exchange
        return exchange

    def _make_room(self) -> None:
        """Give the client back the room that it has taken, if enough has come together."""
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
