"""A SPDY/3.1 connection, as client or server, on a connection that has switched protocols.

Guarantees:
- If one stream is paused, the whole connection is paused, as in moby/spdystream.
- The receiver of a stream is notified exactly once of the end of the stream: at the peer's last frame, at a reset, or
  at the end of the connection.
- A connection has at most `_MOST` streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ctrlmgr.http.spdy.spdy_frames import (
    DATA,
    FIN,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SYN_REPLY,
    SYN_STREAM,
    Frame,
    HeaderReader,
    HeaderWriter,
    SpdyError,
    control_frame,
    data_frame,
    read_frames,
)
from ctrlmgr.http.tunnel import Receiver, Side

PROTOCOL: Final = "SPDY/3.1"
"""The name of the protocol in the Upgrade header."""
REFUSED_STREAM: Final = 3
CANCEL: Final = 5
_MOST: Final = 1000
_ONE_FRAME: Final = 64 * 1024


class SpdyStream:
    """One stream of a connection, as a `tunnel.Side`; its method `finish` ends only the output."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
        """Create a stream of `connection`."""
        self.number = number
        self.headers = headers
        """The headers of the stream, with names in lower case."""
        self.receiver: Receiver | None = None
        self.has_finished = False
        """Whether the output of the stream has ended."""
        self.has_ended = False
        """Whether the input of the stream has ended."""
        self._held = b""
        self._connection = connection

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not read its pending output."""
        return self._connection.is_paused

    def attach(self, receiver: Receiver) -> None:
        """Pass all input to `receiver`."""
        self.receiver = receiver
        held, self._held = self._held, b""
        if held:
            receiver.receive(held)
        if self.has_ended:
            receiver.end()

    def write(self, data: bytes) -> None:
        """Send bytes; if the output of the stream has ended, drop them."""
        if not self.has_finished:
            for at in range(0, len(data), _ONE_FRAME):
                self._connection.send(data_frame(self.number, data[at : at + _ONE_FRAME]))

    def pause_reading(self) -> None:
        """Stop reading from the peer, on all streams."""
        self._connection.pause(self.number)

    def resume_reading(self) -> None:
        """Continue reading from the peer."""
        self._connection.unpause(self.number)

    def finish(self) -> None:
        """End the output of this stream."""
        if not self.has_finished:
            self.has_finished = True
            self._connection.send(data_frame(self.number, b"", FIN))
            self._connection.forget(self)

    def abort(self, status: int = CANCEL) -> None:
        """Reset this stream, so that the peer drops it."""
        if not (self.has_finished and self.has_ended):
            self.has_finished = True
            self._connection.send(control_frame(RST_STREAM, self.number, status.to_bytes(4, "big")))
            self.end()

    def take(self, data: bytes) -> None:
        """Pass received bytes to the receiver, or hold the bytes until a receiver is set."""
        if self.receiver is not None:
            self.receiver.receive(data)
        else:
            self._held += data

    def end(self) -> None:
        """Notify the receiver of the end of the input, only once."""
        if not self.has_ended:
            self.has_ended = True
            self._connection.forget(self)
            if self.receiver is not None:
                self.receiver.end()


class SpdyConnection(Receiver):
    """A SPDY connection with its streams. Used on the event loop's thread only."""

    def __init__(
        self,
        side: Side,
        *,
        is_client: bool,
        on_stream: Callable[[SpdyStream], bool] = lambda stream: False,
        on_resume: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a SPDY connection on `side`; `open` starts it.

        `on_stream` receives each stream that the peer opens, and returns whether the stream is accepted. `on_resume` is
        called when the connection accepts more output; `on_end` is called when it is closed.
        """
        self._side = side
        self._on_stream = on_stream
        self._on_resume = on_resume
        self._on_end = on_end
        self._held = bytearray()
        self._reader, self._writer = HeaderReader(), HeaderWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._paused: set[int] = set()
        self._next = 1 if is_client else 2
        self._last = 0
        self._is_over = False

    @property
    def is_paused(self) -> bool:
        """Whether the peer does not read its pending output."""
        return self._side.is_paused

    def open(self) -> None:
        """Start to process input."""
        self._side.attach(self)

    def new_stream(self, headers: Mapping[str, str]) -> SpdyStream:
        """Open a new stream to the peer."""
        stream = SpdyStream(self, self._next, headers)
        self._next += 2
        self._streams[stream.number] = stream
        self.send(control_frame(SYN_STREAM, stream.number, bytes(6) + self._writer.write(headers)))
        return stream

    def send(self, frame: bytes) -> None:
        """Write one SPDY frame."""
        if not self._is_over:
            self._side.write(frame)

    def finish(self) -> None:
        """Close the connection after the peer has read all output."""
        if not self._is_over:
            self._side.write(control_frame(GOAWAY, self._last, bytes(4)))
            self._is_over = True
            self._side.finish()

    def abort(self) -> None:
        """Close the connection at once."""
        self._side.abort()

    def pause(self, number: int = 0) -> None:
        """Stop reading until `unpause` is called for the stream with this number.

        The number 0 means the whole connection.
        """
        self._paused.add(number)
        self._side.pause_reading()

    def unpause(self, number: int = 0) -> None:
        """Continue reading, unless the connection is paused for another stream."""
        self._paused.discard(number)
        if not self._paused:
            self._side.resume_reading()

    def forget(self, stream: SpdyStream) -> None:
        """Drop a stream that has ended in both directions."""
        if stream.has_finished and stream.has_ended:
            self._streams.pop(stream.number, None)
            self.unpause(stream.number)

    # The side calls the following methods.

    def receive(self, data: bytes) -> None:
        """Process received bytes; malformed input closes the connection."""
        self._held += data
        try:
            for frame in read_frames(self._held):
                self._take(frame)
        except SpdyError:
            self.abort()

    def resume(self) -> None:
        """Notify all streams that they can continue with output."""
        for stream in list(self._streams.values()):
            if stream.receiver is not None:
                stream.receiver.resume()
        self._on_resume()

    def end(self) -> None:
        """End all streams of the connection."""
        self._is_over = True
        for stream in list(self._streams.values()):
            stream.has_finished = True
            stream.end()
        self._on_end()

    def _take(self, frame: Frame) -> None:
        if frame.kind == DATA:
            self._data(frame)
        elif frame.kind == SYN_STREAM:
            self._opened(frame)
        elif frame.kind in (SYN_REPLY, HEADERS):
            self._reader.read(frame.body)  # decoding every header block keeps the state of the compression correct
        elif frame.kind == RST_STREAM:
            self._reset(frame.number)
        elif frame.kind == PING and frame.number % 2 != self._next % 2:
            self.send(control_frame(PING, frame.number))

    def _reset(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            stream.has_finished = True
            stream.end()

    def _data(self, frame: Frame) -> None:
        stream = self._streams.get(frame.number)
        if stream is None:
            return
        if frame.body:
            stream.take(frame.body)
        if frame.flags & FIN:
            stream.end()

    def _opened(self, frame: Frame) -> None:
        """Accept or refuse a stream that the peer opens."""
        headers = self._reader.read(frame.body[6:])
        stream = SpdyStream(self, frame.number, headers)
        if frame.number % 2 == self._next % 2 or frame.number <= self._last:
            raise SpdyError(f"a new stream has the number {frame.number}")
        self._last = frame.number
        if len(self._streams) >= _MOST:
            stream.abort(REFUSED_STREAM)
            return
        self._streams[stream.number] = stream
        stream.has_ended = bool(frame.flags & FIN)
        # A client drops data that arrives before the reply to its stream.
        self.send(control_frame(SYN_REPLY, stream.number, self._writer.write({})))
        if not self._on_stream(stream):
            stream.abort(REFUSED_STREAM)
