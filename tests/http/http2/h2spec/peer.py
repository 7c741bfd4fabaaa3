"""An HTTP/2 client that sends arbitrary frames, and checks the frames that the server sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import pytest
from hpack import Decoder, Encoder
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
)

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import Code, Setting
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from tests.http.http2.test_frames import framed
from tests.http.loopback import Client

Field = tuple[str, str]

END_STREAM, END_HEADERS = frames.END_STREAM, frames.END_HEADERS
WHOLE = END_STREAM | END_HEADERS
CANCEL = b"\0\0\0\x08"
ZEROS, NAMED = bytes(8), b"h2spec\0\0"


def fields(path: str = "/slow", *more: Field, method: str = "GET") -> list[Field]:
    """Return the header fields of a request.

    The server does not respond to requests for `/slow`; its response to any other request contains the request's path.
    """
    return [(":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), *more]


def without(name: str) -> list[Field]:
    """Return the header fields of a request, except one field."""
    return [each for each in fields() if each[0] != name]


class Peer(Client):
    """The client side of a connection after the handshake; `deliver` passes the client's bytes to the server."""

    def __init__(self, piece: int, *, acknowledges: bool = True, bounds: Bounds = DEFAULT) -> None:
        """The maximum number of bytes that are delivered to the server at once."""
        super().__init__(bounds, protocol=Http2Connection)
        self.encoder = Encoder()
        self.answers: list[Frame] = []
        self._decoder = Decoder()
        self._piece = piece
        self._unsent = frames.PREFACE + frames.settings({})
        if acknowledges:
            self.frame(frames.SETTINGS, frames.ACK, 0)
        self.deliver()
        self.handshake, self.answers = self.answers, []

    # Methods that send frames.

    def raw(self, data: bytes) -> Self:
        """Send bytes."""
        self._unsent += data
        return self

    def frame(self, kind: int, flags: int, stream: int, payload: bytes = b"") -> Self:
        """Send a frame."""
        return self.raw(framed(kind, flags, stream, payload))

    def block(self, given: Iterable[Field]) -> bytes:
        """Return an encoded header block."""
        return self.encoder.encode(list(given))

    def headers(
        self,
        given: Iterable[Field] | bytes | None = None,
        flags: int = WHOLE,
        stream: int = 1,
        before: bytes = b"",
        after: bytes = b"",
    ) -> Self:
        """Send a HEADERS frame with fields or an encoded header block; `before` and `after` are further bytes of the
        frame's payload.
        """
        block = given if isinstance(given, bytes) else self.block(fields() if given is None else given)
        return self.frame(frames.HEADERS, flags, stream, before + block + after)

    def continuation(self, given: Iterable[Field] | bytes, flags: int = 0, stream: int = 1) -> Self:
        """Send a CONTINUATION frame."""
        return self.frame(frames.CONTINUATION, flags, stream, given if isinstance(given, bytes) else self.block(given))

    def data(self, data: bytes = b"test", flags: int = END_STREAM, stream: int = 1) -> Self:
        """Send a DATA frame."""
        return self.frame(frames.DATA, flags, stream, data)

    def priority(self, stream: int = 1, on: int = 0, weight: int = 255, *, exclusive: bool = False) -> Self:
        """Send a PRIORITY frame."""
        return self.frame(frames.PRIORITY, 0, stream, priority(on, weight, exclusive=exclusive))

    def cancel(self, stream: int = 1, code: bytes = CANCEL) -> Self:
        """Send a RST_STREAM frame."""
        return self.frame(frames.RST_STREAM, 0, stream, code)

    def settings(self, *pairs: tuple[int, int]) -> Self:
        """Send a SETTINGS frame."""
        payload = b"".join(setting.to_bytes(2, "big") + value.to_bytes(4, "big") for setting, value in pairs)
        self.frame(frames.SETTINGS, 0, 0, payload)
        return self

    def window(self, count: int) -> Self:
        """Set the initial flow-control window of new streams."""
        return self.settings((Setting.INITIAL_WINDOW_SIZE, count))

    def room(self, count: int, stream: int = 1) -> Self:
        """Send a WINDOW_UPDATE frame."""
        return self.frame(frames.WINDOW_UPDATE, 0, stream, count.to_bytes(4, "big"))

    def ping(self, data: bytes = ZEROS, flags: int = 0) -> Self:
        """Send a PING frame."""
        return self.frame(frames.PING, flags, 0, data)

    def deliver(self) -> Self:
        """Deliver the bytes that were sent so far to the server, and receive the server's frames."""
        data, self._unsent = self._unsent, b""
        for at in range(0, len(data), self._piece):
            self.connection.receive(data[at : at + self._piece])
            self.loop.run()
        self.answers += parsed(self.transport.written)
        self.transport.written = b""
        return self

    # Methods that return received frames.

    def codes(self, *kinds: type[Frame]) -> set[int]:
        """Return the error codes in the received frames of these types."""
        return {each.error_code for each in self.answers if isinstance(each, kinds)}  # type: ignore[attr-defined]  # both kinds have one

    def status(self, stream: int) -> str | None:
        """Return the status of the response on a stream."""
        for each in self.answers:
            if isinstance(each, HeadersFrame):
                head = {str(name): str(value) for name, value in self._decoder.decode(each.data)}
                if each.stream_id == stream:
                    return head[":status"]
        return None

    def bodies(self) -> list[int]:
        """Return the payload size of each received DATA frame, in bytes."""
        return [len(each.data) for each in self.answers if isinstance(each, DataFrame)]

    @property
    def is_closed(self) -> bool:
        return self.transport.is_closing()


def parsed(data: bytes) -> list[Frame]:
    """Return the frames that the server has sent."""
    found, rest = [], memoryview(data)
    while rest:
        frame, size = Frame.parse_frame_header(rest[:9])
        frame.parse_body(rest[9 : 9 + size])
        found.append(frame)
        rest = rest[9 + size :]
    return found


def priority(on: int, weight: int, *, exclusive: bool = False) -> bytes:
    """Return the payload of a PRIORITY frame; `weight` is the value on the wire, which is one less than the weight in
    the RFC.
    """
    return (on | exclusive << 31).to_bytes(4, "big") + bytes((weight,))


# Methods that check the reaction of the server.

Then = Callable[[Peer], None]


def connection_error(*codes: Code) -> Then:
    """Expect a connection error (RFC 9113, section 5.4.1)."""

    def judge(peer: Peer) -> None:
        assert peer.codes(GoAwayFrame) & set(codes), peer.answers
        assert peer.is_closed

    return judge


def stream_error(*codes: Code) -> Then:
    """Expect a stream error (RFC 9113, section 5.4.2), or a connection error with the same error code."""

    def judge(peer: Peer) -> None:
        assert peer.codes(RstStreamFrame, GoAwayFrame) & set(codes), peer.answers

    return judge


def answered(peer: Peer) -> None:
    """Expect a response on the first stream."""
    assert peer.status(1) == "200", peer.answers
    assert not peer.codes(RstStreamFrame, GoAwayFrame)


def pong(data: bytes) -> Then:
    """Expect one acknowledgement of a PING."""

    def judge(peer: Peer) -> None:
        pings = [(each.opaque_data, "ACK" in each.flags) for each in peer.answers if isinstance(each, PingFrame)]
        assert pings == [(data, True)], peer.answers
        assert not peer.is_closed

    return judge


def pong_or_close(data: bytes) -> Then:
    """Expect the acknowledgement of a PING, or a closed connection without an error."""

    def judge(peer: Peer) -> None:
        if peer.is_closed:
            assert peer.codes(GoAwayFrame) == {Code.NO_ERROR}
        else:
            pong(data)(peer)

    return judge


def acknowledged(peer: Peer) -> None:
    """Expect an acknowledgement of a SETTINGS frame."""
    flags = [set(each.flags) for each in peer.answers if isinstance(each, SettingsFrame)]
    assert flags == [{"ACK"}], peer.answers
    assert not peer.is_closed


def bodies(*sizes: int) -> Then:
    """Expect DATA frames with these payload sizes."""

    def judge(peer: Peer) -> None:
        assert peer.bodies() == list(sizes), peer.answers

    return judge


class Case(NamedTuple):
    """One case of h2spec."""

    section: str
    says: str
    send: Callable[[Peer], object]
    then: Then
    acknowledges: bool = True
    """Whether the client has acknowledged the server's settings."""


PIECES = (1, 1 << 16)
"""The sizes of the pieces in which bytes are delivered: one byte at a time, and all bytes at once."""


def each_of(cases: Sequence[Case]) -> pytest.MarkDecorator:
    """Run a test function once for each case."""
    assert len({(each.section, each.says) for each in cases}) == len(cases)
    return pytest.mark.parametrize("case", cases, ids=[f"{each.section} {each.says}" for each in cases])


def assert_conforms(case: Case) -> None:
    """Run a case once for each size of delivered pieces."""
    for piece in PIECES:
        peer = Peer(piece, acknowledges=case.acknowledges)
        case.send(peer)
        peer.deliver()
        case.then(peer)
        peer.connection.connection_lost(None)
