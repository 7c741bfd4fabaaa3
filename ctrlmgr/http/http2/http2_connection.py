"""An HTTP/2 connection: the shared state of its streams, and the limits of the client.

Guarantees:
- Requests that arrive in the same input are started in order, after the whole input has been read. Responses that are
  written in the same turn of the event loop are sent in one write. After a bounded amount of work, the connection
  continues in a later turn of the event loop.
- A client is disconnected if it does not send its preface within `Bounds.head_timeout` seconds, or does not complete a
  frame or a header block within the same time. A client without running requests may be idle for the idle timeout.
- A client can have `Bounds.streams` concurrent requests. If a client exceeds the maximum, the server refuses further
  requests, and the client may send these requests again.
- While a client does not read, its input is not processed. Therefore automatic replies to SETTINGS and PING frames
  cannot accumulate.
- Frames that request nothing are called noise. A client that sends more than `Bounds.noise` such frames within
  `Bounds.head_timeout` seconds is disconnected with ENHANCE_YOUR_CALM. A WINDOW_UPDATE of less than `Bounds.least_room`
  bytes counts as noise. A change of the initial window counts once for each response that waits for the window. In a
  head with more than `_USUAL_HEAD` fields, each further field counts as noise.
- A client is disconnected if the number of its requests that ended without a response exceeds the number of completed
  requests by more than `Bounds.resets`. A request ends without a response if the client resets its stream, or if the
  server resets the stream because the client violated the protocol.
- The bytes and frames of a header block are limited. The total size of the heads of all running requests is limited,
  too.
- When the server stops, it sends GOAWAY at once (`announce_close`), and answers the running requests.
- When a client certificate expires, streams are aborted, and no further request is answered.

Source: RFC 9113; the limits are those of Go's `net/http` and kube-apiserver.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import ClassVar

from ctrlmgr.http.base_connection import BaseConnection
from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.floods import Flood
from ctrlmgr.http.http2.frames import Code, ConnectionFault, Frame, Setting, StreamFault
from ctrlmgr.http.http2.header_blocks import BlockReader, written
from ctrlmgr.http.http2.http2_stream import Channel
from ctrlmgr.http.http2.inbox import Inbox
from ctrlmgr.http.http2.outbox import Outbox
from ctrlmgr.http.request_head import Malformed
from ctrlmgr.http.server_context import ServerContext

_UNREAD = 1024 * 1024
"""The number of pending output bytes from which on the client counts as not reading."""

_TOGETHER = 16
"""Maximum number of requests that start in one turn of the event loop."""

_TURN = 512
"""Maximum number of frames, fields and responses that are processed in one turn of the event loop, which takes about 3
ms.
"""

_USUAL_HEAD = 512
"""The number of fields (or pieces) in a head after which each further field counts as noise.

The number of fields is limited because a single byte can encode a field.
"""

_WINDOW = 65_535
"""The initial flow-control window of client and server, in bytes (RFC 9113, section 6.9.2)."""


class Http2Connection(BaseConnection):
    """An HTTP/2 connection: the `ChannelConnection` of its channels, and the protocol of its transport."""

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
        """Create a connection that has received no data."""
        super().__init__(context)
        self.window = _WINDOW
        """The connection's flow-control window for sending bodies, in bytes."""
        self._stream_window = _WINDOW  # the initial window of a new stream
        self._inbox = Inbox(context.bounds)
        self._is_due = False  # whether `_read_on` is scheduled
        self._is_beginning = False  # whether `_begin` is scheduled
        self._work = 0  # work in this turn, except for reading header blocks
        self._blocks = BlockReader(context.bounds)
        self._channels: dict[int, Channel] = {}
        self._new: deque[Channel] = deque()  # requests that have not been started
        self._roomless: OrderedDict[Channel, None] = OrderedDict()  # channels that wait for the connection's window
        self._last = 0  # the number of the newest stream
        # The numbers of streams that the server has ended, but the client has not.
        self._dropped: deque[int] = deque(maxlen=2 * context.bounds.streams)
        # The numbers in _dropped whose streams have not been reset, because the client is still sending on them.
        self._unfinished: set[int] = set()
        self._unread = 0  # received bytes of bodies for which no WINDOW_UPDATE has been sent
        self._outbox = Outbox(context.loop, self._write)
        self.send = self._outbox.send
        """Queue parts of frames.

        The parts are sent at the end of this turn of the event loop, together with other output.
        """
        self._has_failed = False  # whether all further input is ignored
        self._said_goodbye = False
        bounds, loop = context.bounds, context.loop
        self._noise = Flood(loop, bounds.noise, bounds.head_timeout, "too much that asks for nothing")
        self._resets = Flood(loop, bounds.resets, bounds.head_timeout, "too many requests that are given up")

    # The transport calls the following methods.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # streams only
        """Send the server's settings."""
        self._made(transport, _UNREAD)
        bounds = self.bounds
        settings = {
            Setting.HEADER_TABLE_SIZE: 0,
            Setting.MAX_CONCURRENT_STREAMS: bounds.streams,
            Setting.INITIAL_WINDOW_SIZE: bounds.unread_bytes,
            Setting.MAX_HEADER_LIST_SIZE: bounds.head_bytes,
        }
        self.send(frames.settings(settings), frames.window_update(0, bounds.streams * bounds.unread_bytes - _WINDOW))
        self._outbox.flush()
        self._idleness.start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify all requests that the client has disconnected."""
        self._has_failed = True
        self._inbox.clear()
        for channel in list(self._channels.values()):
            channel.lose()
        self._new.clear()
        self._lost()
        self._outbox.close()

    def _reads_again(self) -> None:
        """Continue with waiting input and output, because the client reads again."""
        self._read_on()
        for channel in list(self._channels.values()):
            if channel.exchange.stream is not None and not channel.is_paused:
                channel.exchange.stream.wake()

    # Input.

    def receive(self, data: bytes) -> None:
        """Process received bytes, and start new requests."""
        if self._has_failed or self._transport.is_closing():
            return
        self._inbox.put(data)
        if not self._is_due:
            self._read_on()

    def _read_on(self) -> None:
        """Process a bounded part of the waiting input, and schedule the rest."""
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
        """Start some new requests, and schedule the rest."""
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
            self._noise.add()
            return
        try:
            take(self, frame)
        except StreamFault as fault:
            self._resets.add()
            channel = self._channels.get(frame.stream)
            if channel is not None:
                channel.reset(fault.code)
            else:
                self.reset(frame.stream, fault.code)

    def _take_headers(self, frame: Frame) -> None:
        """Begin a request, or end a request with its trailers."""
        number, ends = frame.stream, bool(frame.flags & frames.END_STREAM)
        if number % 2 == 0:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the request is on a stream with an even number")
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
            self._resets.add()
            return
        if self._blocks.work - before > _USUAL_HEAD:
            self._noise.add(self._blocks.work - before - _USUAL_HEAD)
        if self._is_leaving:
            return  # the client has been notified that this request is not answered
        if len(self._channels) >= self.bounds.streams:
            raise StreamFault(Code.REFUSED_STREAM, "too many concurrent requests")
        if frame.flags & frames.ON_ITSELF:
            raise StreamFault(Code.PROTOCOL_ERROR, "the stream depends on itself")
        channel = Channel(number, head, self, self._stream_window)
        if not channel.exchange.hold_head(head):
            raise StreamFault(Code.REFUSED_STREAM, "the headers of concurrent requests are too large together")
        self._channels[number] = channel
        self._idleness.cancel()
        if ends:
            channel.end()
        self._new.append(channel)

    def _end_with_trailers(self, number: int, block: bytes, *, ends: bool) -> None:
        # Decode the block although its fields are not used, so that the dynamic table stays equal to the client's
        # table.
        has_pseudo = self._blocks.skip(block)
        channel = self._channels.get(number)
        if channel is not None:
            channel.require_open()
            if has_pseudo or not ends:  # an error according to RFC 9113, section 8.1
                raise StreamFault(Code.PROTOCOL_ERROR, "the trailers contain a pseudo-header, or do not end the stream")
            channel.end()
        elif number in self._dropped:
            self._noise.add()
        else:
            raise ConnectionFault(Code.STREAM_CLOSED, "HEADERS frame on a closed stream")

    def _take_data(self, frame: Frame) -> None:
        self._must_be_known(frame)
        piece, size = frames.unpadded(frame), len(frame.payload)
        self._make_room(size)
        channel = self._channels.get(frame.stream)
        ends = bool(frame.flags & frames.END_STREAM)
        if channel is None or (not piece and not ends):
            self._noise.add()
        if channel is not None:
            channel.receive(piece, size)
            if ends:
                channel.end()
        elif frame.stream in self._dropped:
            if ends:
                self._unfinished.discard(frame.stream)
        else:
            raise StreamFault(Code.STREAM_CLOSED, "DATA frame on a closed stream")

    def _make_room(self, size: int) -> None:
        """Restore the connection's flow-control window, because the windows of the streams already limit the bodies."""
        self._unread += size
        if self._unread >= self.bounds.unread_bytes:
            self.send(frames.window_update(0, self._unread))
            self._unread = 0

    def _take_reset(self, frame: Frame) -> None:
        self._must_be_known(frame)
        self._noise.add()
        channel = self._channels.get(frame.stream)
        if channel is not None:
            if not channel.exchange.is_begun:
                self._resets.add()
            channel.lose()

    def _take_settings(self, frame: Frame) -> None:
        self._noise.add()
        values = frames.read_settings(frame)
        if frame.flags & frames.ACK:
            self._blocks.limit_table()
            return
        self.send(frames.head(0, frames.SETTINGS, frames.ACK, 0))  # acknowledge the settings before any frame uses them
        window = values.get(Setting.INITIAL_WINDOW_SIZE, self._stream_window)
        change, self._stream_window = window - self._stream_window, window
        for channel in list(self._channels.values()) if change else ():
            if channel.waits:
                self._work += 1
                self._noise.add()
            try:
                channel.widen(change)
            except StreamFault as fault:
                raise ConnectionFault(fault.code, str(fault)) from fault

    def _take_ping(self, frame: Frame) -> None:
        self._noise.add()
        if not frame.flags & frames.ACK:
            self.send(frames.head(8, frames.PING, frames.ACK, 0), frame.payload)

    def _take_goaway(self, frame: Frame) -> None:
        """Answer running requests, then close the connection, because the client sends no more requests."""
        self.shutdown()

    def _take_window_update(self, frame: Frame) -> None:
        count = frames.read_increment(frame)
        if count < self.bounds.least_room:
            self._noise.add()
        if frame.stream:
            self._must_be_known(frame)
            if not count:
                raise StreamFault(Code.PROTOCOL_ERROR, "the WINDOW_UPDATE frame has the increment 0")
            channel = self._channels.get(frame.stream)
            if channel is not None:
                channel.widen(count)
            return
        if not count:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the WINDOW_UPDATE frame has the increment 0")
        self.window += count
        if self.window > frames.WIDEST:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "the connection's window exceeds the maximum")
        while self._roomless and self.window > 0:
            self._work += 1
            self._roomless.popitem(last=False)[0].send_waiting()

    def _take_priority(self, frame: Frame) -> None:
        """Refuse a stream that depends on itself (RFC 7540, 5.3.1); ignore priorities (RFC 9113, section 5.3)."""
        self._noise.add()
        if frames.depends_on_itself(frame):
            raise StreamFault(Code.PROTOCOL_ERROR, "the stream depends on itself")

    def _take_push(self, frame: Frame) -> None:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "a client must not send PUSH_PROMISE")

    def _must_be_known(self, frame: Frame) -> None:
        if frame.stream > self._last:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the stream of the frame has not been opened")

    # Limits.

    def _bound(self) -> None:
        """Start or cancel the timeout of an incomplete frame or header block."""
        if not self._inbox.is_incomplete:
            self._forget_head_timer()
        elif self._head_timer is None:
            self._time_head()

    # Channels call the following methods.

    def reset(self, number: int, code: Code) -> None:
        """Reset a stream, and ignore frames that the client still sends on this stream for a short time."""
        self._dropped.append(number)
        self.send(frames.reset(number, code))

    def drop(self, number: int) -> None:
        """End a stream on which the client is still sending; the client first gets time to read the response."""
        self._dropped.append(number)
        self._unfinished.add(number)
        self.loop.call_later(self.bounds.linger, self._drop_unfinished, number)

    def _drop_unfinished(self, number: int) -> None:
        if number in self._unfinished:
            self._unfinished.discard(number)
            self.send(frames.reset(number, Code.NO_ERROR))

    def forget(self, channel: Channel) -> None:
        """Remove an ended channel. If the channel was the last one and the server is stopping, close the connection."""
        if self._channels.pop(channel.number, None) is None:
            return
        self._roomless.pop(channel, None)
        if not self._channels:
            if self._is_leaving:
                self._part()
            else:
                self._idleness.start()

    def complete(self, channel: Channel) -> None:
        """Record that the whole response of a channel has been sent."""
        self._resets.make_up()

    def await_room(self, channel: Channel) -> None:
        """Resume a channel when the client opens the connection's window again."""
        self._roomless[channel] = None

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    # The following methods end the connection.

    def announce_close(self) -> None:
        """Send GOAWAY. Requests that the client sends before it reads the GOAWAY are answered."""
        if not (self._said_goodbye or self._has_failed):
            self._said_goodbye = True
            self.send(frames.goaway(frames.WIDEST, Code.NO_ERROR))

    def shutdown(self) -> None:
        """Close the connection after the running requests have ended."""
        if self._is_leaving or self._has_failed:
            return
        self._is_leaving = self._said_goodbye = True
        self.send(frames.goaway(self._last, Code.NO_ERROR))
        if not self._channels:
            self._part()

    def _part(self) -> None:
        """Close the connection after all pending output was sent."""
        self._outbox.flush()
        self._close()

    def _fail(self, code: Code, why: str) -> None:
        """Send GOAWAY with an error code and the client's violation, and ignore further input."""
        self._has_failed = True
        self._inbox.clear()
        self.send(frames.goaway(self._last, code, why))
        self._part()

    def _cut_off(self) -> None:
        """Abort all streamed responses, and close the connection after the other requests have ended."""
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
