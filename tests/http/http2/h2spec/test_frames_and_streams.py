"""Tests h2spec's HTTP/2 part, sections 3 to 5: the start of a connection, frames, streams."""

from __future__ import annotations

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import LARGEST, Code
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.size_limits import Bounds
from tests.http.http2.h2spec.peer import (
    END_HEADERS,
    END_STREAM,
    WHOLE,
    ZEROS,
    Case,
    Peer,
    answered,
    assert_conforms,
    connection_error,
    each_of,
    fields,
    parsed,
    pong,
    priority,
    stream_error,
)
from tests.http.http2.h2spec.test_generic import greeted

PROTOCOL = connection_error(Code.PROTOCOL_ERROR)
STREAM_PROTOCOL = stream_error(Code.PROTOCOL_ERROR)
FRAME_SIZE = connection_error(Code.FRAME_SIZE_ERROR)
CLOSED = stream_error(Code.STREAM_CLOSED)
CLOSED_OR_PROTOCOL = stream_error(Code.STREAM_CLOSED, Code.PROTOCOL_ERROR)
UNKNOWN = 0x16
POST = fields(method="POST")
DUMMY = [("x-dummy0", "a" * 100)]
LONG = fields("/slow", *((f"x-dummy{at}", "~" * LARGEST) for at in range(5)))


def ask_and_close(peer: Peer) -> Peer:
    """Open a stream that both sides then close."""
    peer.headers(fields("/h2spec"))
    peer.deliver()
    assert peer.status(1) == "200"
    return peer


def ask_and_reset(peer: Peer) -> Peer:
    """Open a stream that the client then closes."""
    peer.headers(flags=END_HEADERS)
    return peer.cancel()


def open_block(peer: Peer) -> Peer:
    """Send a header block without its end."""
    return peer.headers(flags=0)


def closed(peer: Peer) -> None:
    """Expect that the server closes the connection."""
    assert peer.is_closed


BEGINNING = [Case("3.5", "the preface of a client", lambda peer: None, greeted)]

FRAMES = [
    Case(
        "4.1",
        "a frame of an unknown type",
        lambda peer: peer.frame(UNKNOWN, 0, 0, ZEROS).ping(),
        pong(ZEROS),
    ),
    Case("4.1", "a frame with an undefined flag", lambda peer: peer.ping(flags=0x16), pong(ZEROS)),
    Case(
        "4.1",
        "a frame with the reserved bit",
        lambda peer: peer.raw(b"\0\0\x08\x06\x16\x80\0\0\0" + ZEROS),
        pong(ZEROS),
    ),
    Case(
        "4.2",
        "a DATA frame of 2^14 bytes",
        lambda peer: peer.headers(fields("/h2spec", method="POST"), END_HEADERS).data(b"x" * LARGEST),
        answered,
    ),
    Case(
        "4.2",
        "a DATA frame that is too large",
        lambda peer: peer.headers(POST, END_HEADERS).data(b"x" * (LARGEST + 1)),
        stream_error(Code.FRAME_SIZE_ERROR),
    ),
    Case("4.2", "a HEADERS frame that is too large", lambda peer: peer.headers(LONG), FRAME_SIZE),
    Case(
        "4.3",
        "a header block that is cut short",
        lambda peer: peer.headers(b"\x40", WHOLE),
        connection_error(Code.COMPRESSION_ERROR),
    ),
    Case(
        "4.3",
        "PRIORITY within a header block",
        lambda peer: open_block(peer).priority().continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
    Case(
        "4.3",
        "HEADERS of another stream within a header block",
        lambda peer: open_block(peer).headers(stream=3).continuation(DUMMY, END_HEADERS),
        PROTOCOL,
    ),
]

STATES = [
    Case("5.1", "idle: DATA", lambda peer: peer.data(), CLOSED_OR_PROTOCOL),
    Case("5.1", "idle: RST_STREAM", lambda peer: peer.cancel(), PROTOCOL),
    Case("5.1", "idle: WINDOW_UPDATE", lambda peer: peer.room(100), PROTOCOL),
    Case("5.1", "idle: CONTINUATION", lambda peer: peer.continuation(fields(), END_HEADERS), PROTOCOL),
    Case("5.1", "half-closed: DATA", lambda peer: peer.headers().data(), CLOSED),
    Case("5.1", "half-closed: HEADERS", lambda peer: peer.headers().headers(), CLOSED),
    Case(
        "5.1",
        "half-closed: CONTINUATION",
        lambda peer: peer.headers().continuation(fields(), END_HEADERS),
        CLOSED_OR_PROTOCOL,
    ),
    Case("5.1", "reset: DATA", lambda peer: ask_and_reset(peer).data(), CLOSED),
    Case("5.1", "reset: HEADERS", lambda peer: ask_and_reset(peer).headers(), CLOSED),
    Case(
        "5.1",
        "reset: CONTINUATION",
        lambda peer: ask_and_reset(peer).continuation(DUMMY, END_HEADERS),
        CLOSED_OR_PROTOCOL,
    ),
    Case("5.1", "closed: DATA", lambda peer: ask_and_close(peer).data(), CLOSED),
    Case(
        "5.1",
        "closed: HEADERS",
        lambda peer: ask_and_close(peer).headers(),
        connection_error(Code.STREAM_CLOSED),
    ),
    Case(
        "5.1",
        "closed: CONTINUATION",
        lambda peer: ask_and_close(peer).continuation(DUMMY, END_HEADERS),
        connection_error(Code.STREAM_CLOSED, Code.PROTOCOL_ERROR),
    ),
]

STREAMS = [
    Case("5.1.1", "an even number of a stream", lambda peer: peer.headers(stream=2), PROTOCOL),
    Case(
        "5.1.1",
        "a lower number than the last",
        lambda peer: peer.headers(stream=5).headers(stream=3),
        # HEADERS on a stream with a higher id have closed this stream
        connection_error(Code.STREAM_CLOSED, Code.PROTOCOL_ERROR),
    ),
    Case(
        "5.3.1",
        "HEADERS that depend on their own stream",
        lambda peer: peer.headers(flags=WHOLE | frames.WITH_PRIORITY, before=priority(1, 255)),
        STREAM_PROTOCOL,
    ),
    Case("5.3.1", "PRIORITY that depends on its own stream", lambda peer: peer.priority(on=1), STREAM_PROTOCOL),
    Case(
        "5.4.1",
        "an invalid PING closes the connection",
        lambda peer: peer.frame(frames.PING, 0, 3, ZEROS),
        closed,
    ),
    Case(
        "5.4.1", "an invalid PING is answered with GOAWAY", lambda peer: peer.frame(frames.PING, 0, 3, ZEROS), PROTOCOL
    ),
    Case(
        "5.5",
        "an unknown frame",
        lambda peer: peer.frame(UNKNOWN, 0, 0, ZEROS).ping(),
        pong(ZEROS),
    ),
    Case(
        "5.5",
        "an unknown frame within a header block",
        lambda peer: peer.headers(flags=END_STREAM).frame(UNKNOWN, 0, 0, ZEROS),
        PROTOCOL,
    ),
]


@each_of([*BEGINNING, *FRAMES, *STATES, *STREAMS])
def test_the_server_responds(case: Case) -> None:
    assert_conforms(case)


def test_an_invalid_preface_ends_the_connection() -> None:
    """This case is also part of section 3.5 of h2spec."""
    peer = Peer(1)
    peer.connection = Http2Connection(peer.context)
    peer.connection.connection_made(peer.transport)
    peer.transport.written = b""
    peer.connection.receive(b"INVALID CONNECTION PREFACE\r\n\r\n")
    peer.loop.run()
    peer.answers = parsed(peer.transport.written)
    check = PROTOCOL
    check(peer)


def test_streams_above_the_maximum_are_refused() -> None:
    """This case belongs to section 5.1.2 of h2spec."""
    peer = Peer(1 << 16, bounds=Bounds(streams=10))
    for at in range(11):
        peer.headers(stream=2 * at + 1)
    peer.deliver()
    stream_error(Code.PROTOCOL_ERROR, Code.REFUSED_STREAM)(peer)
    assert len(peer.paths) == 10
