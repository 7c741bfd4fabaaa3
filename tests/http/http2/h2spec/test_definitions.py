"""Tests h2spec's HTTP/2 part, sections 6 and 7: definitions of frames and error codes."""

from __future__ import annotations

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import WIDEST, Code, Setting
from tests.http.http2.h2spec.peer import (
    END_HEADERS,
    END_STREAM,
    NAMED,
    WHOLE,
    ZEROS,
    Case,
    Peer,
    acknowledged,
    answered,
    assert_conforms,
    bodies,
    connection_error,
    each_of,
    fields,
    pong,
    pong_or_close,
    stream_error,
)

PROTOCOL = connection_error(Code.PROTOCOL_ERROR)
FRAME_SIZE = connection_error(Code.FRAME_SIZE_ERROR)
FLOW_CONTROL = connection_error(Code.FLOW_CONTROL_ERROR)
CANCELLED = b"\0\0\0\xff"
POST = fields(method="POST")
ECHO = fields("/h2spec")
DUMMY = [("x-dummy0", "a" * 100)]


def open_block(peer: Peer) -> Peer:
    """Send a header block without its end."""
    return peer.headers(flags=END_STREAM)


def narrow(peer: Peer, *sizes: int) -> Peer:
    """Request a response of 7 bytes; the last of `sizes` is the flow-control window."""
    peer.settings(*((Setting.INITIAL_WINDOW_SIZE, size) for size in sizes))
    return peer.headers(ECHO)


def widen_beyond(peer: Peer, stream: int) -> Peer:
    """Send a window update that exceeds the maximum window."""
    peer.room(WIDEST, stream)
    return peer.room(WIDEST, stream)


def make_negative(peer: Peer) -> Peer:
    """Make the flow-control window of a stream negative, and then send a window update."""
    narrow(peer, 3)
    peer.deliver()
    assert peer.bodies() == [3]
    peer.window(2)
    peer.deliver()
    assert peer.bodies() == [3]
    return peer.room(2)


def pad_too_much(peer: Peer) -> Peer:
    """Send a HEADERS frame that is shorter than its padding."""
    block = peer.block(fields())
    return peer.headers(block, WHOLE | frames.PADDED, before=bytes((len(block) + 2,)))


BODIES = [
    Case("6.1", "DATA on stream 0", lambda peer: peer.data(stream=0), PROTOCOL),
    Case(
        "6.1",
        "DATA on a half-closed stream",
        lambda peer: peer.headers(POST).data(),
        stream_error(Code.STREAM_CLOSED),
    ),
    Case(
        "6.1",
        "DATA with invalid padding",
        lambda peer: peer.headers(fields("/slow", ("content-length", "4"), method="POST"), END_HEADERS).data(
            b"\x06Test", END_STREAM | frames.PADDED
        ),
        PROTOCOL,
    ),
]

HEADS = [
    Case(
        "6.2",
        "PRIORITY within a header block",
        lambda peer: peer.headers(flags=0).priority().continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
    Case(
        "6.2",
        "HEADERS of another stream within a header block",
        lambda peer: peer.headers(flags=0).headers(stream=3).continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
    Case("6.2", "HEADERS on stream 0", lambda peer: peer.headers(stream=0), PROTOCOL),
    Case("6.2", "HEADERS with invalid padding", pad_too_much, stream_error(Code.PROTOCOL_ERROR)),
    Case("6.3", "PRIORITY on stream 0", lambda peer: peer.priority(0), PROTOCOL),
    Case(
        "6.3",
        "PRIORITY of another length than 5",
        lambda peer: peer.headers().frame(frames.PRIORITY, 0, 1, b"\x80\x00\x00\x01"),
        stream_error(Code.FRAME_SIZE_ERROR),
    ),
    Case("6.4", "RST_STREAM on stream 0", lambda peer: peer.cancel(0), PROTOCOL),
    Case("6.4", "RST_STREAM on an idle stream", lambda peer: peer.cancel(), PROTOCOL),
    Case(
        "6.4",
        "RST_STREAM of another length than 4",
        lambda peer: peer.headers().cancel(code=bytes(3)),
        stream_error(Code.FRAME_SIZE_ERROR),
    ),
]

SETTINGS = [
    Case("6.5", "ACK with a payload", lambda peer: peer.frame(frames.SETTINGS, frames.ACK, 0, b"\0"), FRAME_SIZE),
    Case("6.5", "SETTINGS on stream 1", lambda peer: peer.frame(frames.SETTINGS, 0, 1, b"\0\x03\0\0\0d"), PROTOCOL),
    Case(
        "6.5",
        "SETTINGS of another length than a multiple of 6",
        lambda peer: peer.frame(frames.SETTINGS, 0, 0, b"\0\x03\0"),
        stream_error(Code.PROTOCOL_ERROR, Code.FRAME_SIZE_ERROR),
    ),
    Case("6.5.2", "ENABLE_PUSH 2", lambda peer: peer.settings((Setting.ENABLE_PUSH, 2)), PROTOCOL),
    Case("6.5.2", "INITIAL_WINDOW_SIZE 2^31", lambda peer: peer.window(WIDEST + 1), FLOW_CONTROL),
    Case("6.5.2", "MAX_FRAME_SIZE 16383", lambda peer: peer.settings((Setting.MAX_FRAME_SIZE, 16_383)), PROTOCOL),
    Case("6.5.2", "MAX_FRAME_SIZE 2^24", lambda peer: peer.settings((Setting.MAX_FRAME_SIZE, 1 << 24)), PROTOCOL),
    Case("6.5.2", "an unknown setting", lambda peer: peer.settings((255, 1)).ping(), pong(ZEROS)),
    Case("6.5.3", "two values of INITIAL_WINDOW_SIZE", lambda peer: narrow(peer, 100, 1), bodies(1)),
    Case("6.5.3", "SETTINGS are acknowledged", lambda peer: peer.settings((Setting.ENABLE_PUSH, 0)), acknowledged),
]

CONNECTION = [
    Case("6.7", "a PING", lambda peer: peer.ping(NAMED), pong(NAMED)),
    Case("6.7", "a PING with ACK", lambda peer: peer.ping(b"invalid\x00", frames.ACK).ping(NAMED), pong(NAMED)),
    Case("6.7", "PING on stream 1", lambda peer: peer.frame(frames.PING, 0, 1, ZEROS), PROTOCOL),
    Case("6.7", "PING of another length than 8", lambda peer: peer.frame(frames.PING, 0, 0, bytes(6)), FRAME_SIZE),
    Case("6.8", "GOAWAY on stream 1", lambda peer: peer.frame(frames.GOAWAY, 0, 1, ZEROS), PROTOCOL),
]

WINDOWS = [
    Case("6.9", "WINDOW_UPDATE of 0", lambda peer: peer.room(0, 0), PROTOCOL),
    Case(
        "6.9",
        "WINDOW_UPDATE of 0 on a stream",
        lambda peer: peer.headers(flags=END_HEADERS).room(0),
        stream_error(Code.PROTOCOL_ERROR),
    ),
    Case(
        "6.9",
        "WINDOW_UPDATE of another length than 4",
        lambda peer: peer.frame(frames.WINDOW_UPDATE, 0, 0, b"\0\0\x01"),
        FRAME_SIZE,
    ),
    Case("6.9.1", "room for one byte", lambda peer: narrow(peer, 1), bodies(1)),
    Case("6.9.1", "too wide a window of the connection", lambda peer: widen_beyond(peer, 0), FLOW_CONTROL),
    Case(
        "6.9.1",
        "too wide a window of a stream",
        lambda peer: widen_beyond(peer.headers(flags=END_HEADERS), 1),
        stream_error(Code.FLOW_CONTROL_ERROR),
    ),
    Case("6.9.2", "room that settings give later", lambda peer: narrow(peer, 0).window(1), bodies(1)),
    Case("6.9.2", "a negative window", make_negative, bodies(3, 1)),
    Case(
        "6.9.2",
        "INITIAL_WINDOW_SIZE beyond the widest",
        lambda peer: peer.raw(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x80\0\0\0"),
        FLOW_CONTROL,
    ),
]

CONTINUATIONS = [
    Case(
        "6.10",
        "CONTINUATION frames",
        lambda peer: peer.headers(ECHO, END_STREAM).continuation(DUMMY).continuation(DUMMY, END_HEADERS),
        answered,
    ),
    Case(
        "6.10",
        "DATA after CONTINUATION without END_HEADERS",
        lambda peer: peer.headers(POST, 0).continuation(DUMMY).data(),
        PROTOCOL,
    ),
    Case(
        "6.10",
        "CONTINUATION on stream 0",
        lambda peer: open_block(peer).continuation(DUMMY, END_HEADERS, stream=0),
        PROTOCOL,
    ),
    Case(
        "6.10",
        "CONTINUATION after HEADERS with END_HEADERS",
        lambda peer: peer.headers().continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
    Case(
        "6.10",
        "CONTINUATION after CONTINUATION with END_HEADERS",
        lambda peer: open_block(peer).continuation(DUMMY, END_HEADERS).continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
    Case(
        "6.10",
        "CONTINUATION after DATA",
        lambda peer: peer.headers(POST, 0).data().continuation(DUMMY).continuation(DUMMY, END_HEADERS, stream=0),
        PROTOCOL,
    ),
]

CODES = [
    Case(
        "7",
        "GOAWAY with an unknown code",
        lambda peer: peer.frame(frames.GOAWAY, 0, 0, bytes(4) + CANCELLED).ping(NAMED),
        pong_or_close(NAMED),
    ),
    Case(
        "7",
        "RST_STREAM with an unknown code",
        lambda peer: peer.headers(POST, END_HEADERS).cancel(code=CANCELLED).ping(),
        pong_or_close(ZEROS),
    ),
]


@each_of([*BODIES, *HEADS, *SETTINGS, *CONNECTION, *WINDOWS, *CONTINUATIONS, *CODES])
def test_the_server_responds(case: Case) -> None:
    assert_conforms(case)
