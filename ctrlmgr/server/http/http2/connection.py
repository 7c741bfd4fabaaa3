"""A connection on which HTTP/2 is spoken: what its streams share, and what a client must not do on any of them.

Guarantees:
- Requests that come together are begun in the order in which they came, once all of them have been read. What is
  answered together goes out together. Reading frames and beginning requests yields to the event loop by work done.
- A client that has not said what it speaks `Bounds.head_timeout` seconds after it connected is disconnected, and so is
  one that does not finish a frame or a header block for as long. Without a request under way it may be idle.
- A client has `Bounds.streams` requests under way at most; what goes beyond is refused, and may be sent again.
- While a client does not read, nothing that it sends is looked at; so what answers it without being asked (settings,
  pings) cannot pile up.
- A client that sends more than `Bounds.noise` frames that ask for nothing within `Bounds.head_timeout` seconds is told
  to calm down, and its connection closes. A WINDOW_UPDATE of less than `Bounds.least_room` bytes asks for nothing. A
  changed initial window counts once for each answer that waits for room. Fields of a head beyond `_USUAL_HEAD` count.
- A client is also disconnected in this way if more than `Bounds.resets` of its requests, beyond those that are
  completed, end before they are answered: by the client, or by the server because of a fault of the client.
- Header blocks are bounded in bytes and in frames, and so are the heads of the requests under way.
- A server that stops says so at once (`leave`), and answers what is under way.
- Of a client certificate that expires, streams are cut off, and no further request is answered.

Rules: RFC 9113; limits as Go's `net/http` and kube-apiserver set them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import ClassVar

from ctrlmgr.server.http.context import ServerContext
from ctrlmgr.server.http.head import Malformed
from ctrlmgr.server.http.http2 import frames
from ctrlmgr.server.http.http2.blocks import BlockReader, written
from ctrlmgr.server.http.http2.channel import Channel
from ctrlmgr.server.http.http2.floods import Flood
from ctrlmgr.server.http.http2.frames import Code, ConnectionFault, Frame, Setting, StreamFault
from ctrlmgr.server.http.http2.inbox import Inbox
from ctrlmgr.server.http.http2.outbox import Outbox
from ctrlmgr.server.http.transported import Transported

_UNREAD = 1024 * 1024
"""Bytes that may wait for a client before it counts as one that does not read: some for each of its streams."""

_TOGETHER = 16
"""Requests that are begun before others have the loop."""

_TURN = 512
"""Frames, fields and answers that go on before others have the loop: about 3 ms."""

_USUAL_HEAD = 512
"""Fields of a head, and pieces of a long one, beyond which each counts as noise: a byte may stand for a field."""

_WINDOW = 65_535
"""Bytes that either end has room for before it says anything else (RFC 9113, section 6.9.2)."""


class Http2Connection(Transported):
    """See the module's docstring: a `Trunk` for its channels, a protocol for its transport."""

    __slots__ = (
        "_blocks",
        "_channels",
        "_dropped",
        "_has_failed",
        "_inbox",
        "_is_beginning",
        "_is_due",
        "_last",
        "_new",
        "_noise",
        "_outbox",
        "_resets",
        "_roomless",
        "_said_goodbye",
        "_stream_window",
        "_unfinished",
        "_unread",
        "_work",
        "send",
        "window",
    )

    def __init__(self, context: ServerContext) -> None:
        """Start with nothing received."""
        super().__init__(context)
        self.window = _WINDOW
        """Bytes of bodies that the client has room for, whatever stream they are on."""
        self._stream_window = _WINDOW  # the same of a new stream
        self._inbox = Inbox(context.bounds)
        self._is_due = False  # whether `_read_on` will be called soon
        self._is_beginning = False  # whether `_begin` will be
        self._work = 0  # done in this turn, besides that of reading blocks
        self._blocks = BlockReader(context.bounds)
        self._channels: dict[int, Channel] = {}
        self._new: deque[Channel] = deque()  # those whose requests have not begun to be answered
        self._roomless: OrderedDict[Channel, None] = OrderedDict()  # those that wait for room on the connection
        self._last = 0  # the newest stream
        self._dropped: deque[int] = deque(maxlen=2 * context.bounds.streams)  # those that ended here, not there
        self._unfinished: set[int] = set()  # those of them whose clients still send, and have not been told to stop
        self._unread = 0  # bytes of bodies for which the client has not been given room again
        self._outbox = Outbox(context.loop, self._write)
        self.send = self._outbox.send
        """Send pieces of frames soon, with what else is sent by then."""
        self._has_failed = False  # whether nothing that comes is looked at
        self._said_goodbye = False
        bounds, loop = context.bounds, context.loop
        self._noise = Flood(loop, bounds.noise, bounds.head_timeout, "too much that asks for nothing")
        self._resets = Flood(loop, bounds.resets, bounds.head_timeout, "too many requests that are given up")

    # What the transport calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Say what is spoken here."""
        self._made(transport, _UNREAD)
        bounds = self.bounds
        told = {
            Setting.HEADER_TABLE_SIZE: 0,
            Setting.MAX_CONCURRENT_STREAMS: bounds.streams,
            Setting.INITIAL_WINDOW_SIZE: bounds.unread_bytes,
            Setting.MAX_HEADER_LIST_SIZE: bounds.head_bytes,
        }
        self.send(frames.settings(told), frames.window_update(0, bounds.streams * bounds.unread_bytes - _WINDOW))
        self._outbox.flush()
        self._idleness.start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell those who answer that the client has gone."""
        self._has_failed = True
        self._inbox.clear()
        for channel in list(self._channels.values()):
            channel.lose()
        self._new.clear()
        self._lost()
        self._outbox.close()

    def _reads_again(self) -> None:
        """Go on with what comes, and with all that waits to be sent."""
        self._read_on()
        for channel in list(self._channels.values()):
            if channel.exchange.stream is not None and not channel.is_paused:
                channel.exchange.stream.wake()

    # What comes in.

    def receive(self, data: bytes) -> None:
        """Take what has come, and begin to answer what has been asked."""
        if self._has_failed or self._transport.is_closing():
            return
        self._inbox.put(data)
        if not self._is_due:
            self._read_on()

    def _read_on(self) -> None:
        """Take as much of what has come as one turn may cost, and have the rest taken soon."""
        self._is_due = False
        if self._has_failed or self._transport.is_closing():
            return
        self._outbox.hold()
        try:
            self._take_some()
        except ConnectionFault as fault:
            self._new.clear()
            self._fail(fault.code, str(fault))
        if not self._is_beginning:
            self._begin()
        self._bound()
        self._outbox.flush()
        if self.is_paused:
            self.pause_reading()
        elif self._inbox.may_have_more and not self._has_failed:
            self.pause_reading()
            self._is_due = True
            self.loop.call_soon(self._read_on)
        else:
            self.resume_reading()

    def _take_some(self) -> None:
        self._work = 0
        ends = self._blocks.work + _TURN
        while self._work + self._blocks.work < ends and not self.is_paused:
            frame = self._inbox.take()
            if frame is None:
                return
            self._work += 1
            self._forget_head_timer()
            self._take(frame)

    def _begin(self) -> None:
        """Begin to answer some of what has been asked; others have the loop before there are more."""
        self._is_beginning = False
        for _ in range(min(len(self._new), _TOGETHER)):
            channel = self._new.popleft()
            if channel.number in self._channels:
                self._start(channel.exchange)
        if self._new:
            self._is_beginning = True
            self.loop.call_soon(self._begin)

    def _take(self, frame: Frame) -> None:
        take = self._TAKES.get(frame.kind)
        if take is None:
            self._noise.hear()
            return
        try:
            take(self, frame)
        except StreamFault as fault:
            self._resets.hear()
            channel = self._channels.get(frame.stream)
            if channel is not None:
                channel.reset(fault.code)
            else:
                self.reset(frame.stream, fault.code)

    def _take_headers(self, frame: Frame) -> None:
        """Begin a request, or end one with its trailers."""
        number, ends = frame.stream, bool(frame.flags & frames.END_STREAM)
        if number % 2 == 0:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a request on no stream of a client's")
        if number <= self._last:
            self._end_with_trailers(number, frame.payload, ends=ends)
            return
        self._last = number
        before = self._blocks.work
        try:
            head = self._blocks.read(frame.payload)
        except Malformed as error:
            self.send(
                frames.headers(number, written(int(error.status[:3]), self.date, (), length=0), frames.END_STREAM)
            )
            self._resets.hear()
            return
        if self._blocks.work - before > _USUAL_HEAD:
            self._noise.hear(self._blocks.work - before - _USUAL_HEAD)
        if self._is_leaving:
            return  # it has been told that this is not answered
        if len(self._channels) >= self.bounds.streams:
            raise StreamFault(Code.REFUSED_STREAM, "too many requests at a time")
        if frame.flags & frames.ON_ITSELF:
            raise StreamFault(Code.PROTOCOL_ERROR, "a stream that depends on itself")
        channel = Channel(number, head, self, self._stream_window)
        if not channel.exchange.hold_head(head):
            raise StreamFault(Code.REFUSED_STREAM, "too long heads of requests at a time")
        self._channels[number] = channel
        self._idleness.cancel()
        if ends:
            channel.end()
        self._new.append(channel)

    def _end_with_trailers(self, number: int, block: bytes, *, ends: bool) -> None:
        has_pseudo = self._blocks.skip(block)  # though nobody looks at them: what comes later refers to them
        channel = self._channels.get(number)
        if channel is not None:
            channel.must_go_on()
            if has_pseudo or not ends:  # RFC 9113, section 8.1
                raise StreamFault(Code.PROTOCOL_ERROR, "trailers with a pseudo header, or that are not the end")
            channel.end()
        elif number in self._dropped:
            self._noise.hear()
        else:
            raise ConnectionFault(Code.STREAM_CLOSED, "a request on a stream that is over")

    def _take_data(self, frame: Frame) -> None:
        self._must_be_known(frame)
        piece, size = frames.unpadded(frame), len(frame.payload)
        self._make_room(size)
        channel = self._channels.get(frame.stream)
        ends = bool(frame.flags & frames.END_STREAM)
        if channel is None or (not piece and not ends):
            self._noise.hear()
        if channel is not None:
            channel.receive(piece, size)
            if ends:
                channel.end()
        elif frame.stream in self._dropped:
            if ends:
                self._unfinished.discard(frame.stream)
        else:
            raise StreamFault(Code.STREAM_CLOSED, "a body on a stream that is over")

    def _make_room(self, size: int) -> None:
        """Give the client back the room on the connection: that on each stream is what bounds it."""
        self._unread += size
        if self._unread >= self.bounds.unread_bytes:
            self.send(frames.window_update(0, self._unread))
            self._unread = 0

    def _take_reset(self, frame: Frame) -> None:
        self._must_be_known(frame)
        self._noise.hear()
        channel = self._channels.get(frame.stream)
        if channel is not None:
            if not channel.exchange.is_begun:
                self._resets.hear()
            channel.lose()

    def _take_settings(self, frame: Frame) -> None:
        self._noise.hear()
        values = frames.read_settings(frame)
        if frame.flags & frames.ACK:
            self._blocks.limit_table()
            return
        self.send(frames.head(0, frames.SETTINGS, frames.ACK, 0))  # before anything goes by them
        window = values.get(Setting.INITIAL_WINDOW_SIZE, self._stream_window)
        change, self._stream_window = window - self._stream_window, window
        for channel in list(self._channels.values()) if change else ():
            if channel.waits:
                self._work += 1
                self._noise.hear()
            try:
                channel.widen(change)
            except StreamFault as fault:
                raise ConnectionFault(fault.code, str(fault)) from fault

    def _take_ping(self, frame: Frame) -> None:
        self._noise.hear()
        if not frame.flags & frames.ACK:
            self.send(frames.head(8, frames.PING, frames.ACK, 0), frame.payload)

    def _take_goaway(self, frame: Frame) -> None:
        """Answer what is under way, and close: the client asks for nothing more."""
        self.shutdown()

    def _take_window_update(self, frame: Frame) -> None:
        count = frames.read_increment(frame)
        if count < self.bounds.least_room:
            self._noise.hear()
        if frame.stream:
            self._must_be_known(frame)
            if not count:
                raise StreamFault(Code.PROTOCOL_ERROR, "room for nothing")
            channel = self._channels.get(frame.stream)
            if channel is not None:
                channel.widen(count)
            return
        if not count:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "room for nothing")
        self.window += count
        if self.window > frames.WIDEST:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "more room than there can be")
        while self._roomless and self.window > 0:
            self._work += 1
            self._roomless.popitem(last=False)[0].go_on()

    def _take_priority(self, frame: Frame) -> None:
        """Refuse a stream that depends on itself (RFC 7540, 5.3.1), and use no priority (RFC 9113, section 5.3)."""
        self._noise.hear()
        if frames.depends_on_itself(frame):
            raise StreamFault(Code.PROTOCOL_ERROR, "a stream that depends on itself")

    def _take_push(self, frame: Frame) -> None:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "a push by a client")

    def _must_be_known(self, frame: Frame) -> None:
        if frame.stream > self._last:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a frame of no stream that has been opened")

    # Bounds.

    def _bound(self) -> None:
        """See that what has begun does not go on for too long."""
        if not self._inbox.is_amid:
            self._forget_head_timer()
        elif self._head_timer is None:
            self._time_head()

    # What channels ask of it.

    def reset(self, number: int, code: Code) -> None:
        """End a stream here, on which the client may still send for a moment."""
        self._dropped.append(number)
        self.send(frames.reset(number, code))

    def drop(self, number: int) -> None:
        """Be done with a stream on which the client still sends, once it has had a moment to read its answer."""
        self._dropped.append(number)
        self._unfinished.add(number)
        self.loop.call_later(self.bounds.linger, self._drop_unfinished, number)

    def _drop_unfinished(self, number: int) -> None:
        if number in self._unfinished:
            self._unfinished.discard(number)
            self.send(frames.reset(number, Code.NO_ERROR))

    def forget(self, channel: Channel) -> None:
        """Note that a channel is over; the last one is what a connection that is left waits for."""
        if self._channels.pop(channel.number, None) is None:
            return
        self._roomless.pop(channel, None)
        if not self._channels:
            if self._is_leaving:
                self._part()
            else:
                self._idleness.start()

    def complete(self, channel: Channel) -> None:
        """Note that the whole answer of a channel has been sent."""
        self._resets.make_up()

    def await_room(self, channel: Channel) -> None:
        """Have a channel go on when the client has room again on the connection."""
        self._roomless[channel] = None

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    # How it ends.

    def leave(self) -> None:
        """Tell the client that it should ask elsewhere; what it asks until it hears that is answered."""
        if not (self._said_goodbye or self._has_failed):
            self._said_goodbye = True
            self.send(frames.goaway(frames.WIDEST, Code.NO_ERROR))

    def shutdown(self) -> None:
        """Close once what is under way has been answered."""
        if self._is_leaving or self._has_failed:
            return
        self._is_leaving = self._said_goodbye = True
        self.send(frames.goaway(self._last, Code.NO_ERROR))
        if not self._channels:
            self._part()

    def _part(self) -> None:
        """Close, after all that has been said."""
        self._outbox.flush()
        self._close()

    def _fail(self, code: Code, why: str) -> None:
        """Say what the client must not have done, and look at nothing more that comes."""
        self._has_failed = True
        self._inbox.clear()
        self.send(frames.goaway(self._last, code, why))
        self._part()

    def _cut_off(self) -> None:
        """End streams, and let anything else be answered."""
        for channel in list(self._channels.values()):
            if channel.exchange.stream is not None:
                channel.abort()
        self.shutdown()

    _TAKES: ClassVar[Mapping[int, Callable[[Http2Connection, Frame], None]]] = {
        frames.DATA: _take_data,
        frames.HEADERS: _take_headers,
        frames.PRIORITY: _take_priority,
        frames.RST_STREAM: _take_reset,
        frames.SETTINGS: _take_settings,
        frames.PUSH_PROMISE: _take_push,
        frames.PING: _take_ping,
        frames.GOAWAY: _take_goaway,
        frames.WINDOW_UPDATE: _take_window_update,
    }
