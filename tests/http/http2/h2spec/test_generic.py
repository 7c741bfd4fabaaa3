"""Tests h2spec's generic part, sections 1 to 4: frames and messages that a server must accept."""

from __future__ import annotations

from hyperframe.frame import SettingsFrame

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import Setting
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
    each_of,
    fields,
    pong,
    pong_or_close,
    priority,
)

ECHO = fields("/h2spec")
POST = fields("/h2spec", method="POST")
TRAILED = fields("/h2spec", ("trailer", "x-test"), method="POST")
EVERY_SETTING = (
    (Setting.HEADER_TABLE_SIZE, 4096),
    (Setting.ENABLE_PUSH, 1),
    (Setting.MAX_CONCURRENT_STREAMS, 100),
    (Setting.INITIAL_WINDOW_SIZE, 65_535),
    (Setting.MAX_FRAME_SIZE, 16_384),
    (Setting.MAX_HEADER_LIST_SIZE, 100),
)


def greeted(peer: Peer) -> None:
    """Expect that the server's first frame is a SETTINGS frame without ACK."""
    assert isinstance(peer.handshake[0], SettingsFrame)
    assert not peer.handshake[0].flags


def ask_in_parts(peer: Peer, *ends: int) -> Peer:
    """Send a request whose header block is split into frames at these positions."""
    block = peer.block(ECHO)
    parts = [block[begins:end] for begins, end in zip((0, *ends), (*ends, len(block)), strict=True)]
    peer.headers(parts[0], END_STREAM)
    for at, part in enumerate(parts[1:], start=2):
        peer.continuation(part, END_HEADERS if at == len(parts) else 0)
    return peer


def ask_without_room(peer: Peer) -> Peer:
    """Send a request whose response exceeds the flow-control window, so that the stream stays half-closed."""
    peer.window(0)
    return peer.headers(ECHO)


STREAMS = [
    Case("1", "the preface of a client", lambda peer: None, greeted),
    Case("2", "PRIORITY on an idle stream", lambda peer: peer.priority().ping(), pong(ZEROS)),
    Case("2", "WINDOW_UPDATE on a half-closed stream", lambda peer: ask_without_room(peer).room(1), bodies(1)),
    Case(
        "2",
        "PRIORITY on a half-closed stream",
        lambda peer: ask_without_room(peer).priority().room(1),
        bodies(1),
    ),
    Case(
        "2",
        "RST_STREAM on a half-closed stream",
        lambda peer: peer.headers().cancel().ping(),
        pong_or_close(ZEROS),
    ),
    Case(
        "2",
        "PRIORITY on a closed stream",
        lambda peer: peer.headers(ECHO).deliver().priority().ping(),
        pong(ZEROS),
    ),
]

DATA_AND_HEADERS = [
    Case("3.1", "a DATA frame", lambda peer: peer.headers(POST, END_HEADERS).data(), answered),
    Case(
        "3.1",
        "DATA frames",
        lambda peer: peer.headers(POST, END_HEADERS).data(flags=0).data(),
        answered,
    ),
    Case(
        "3.1",
        "a DATA frame with padding",
        lambda peer: peer.headers(POST, END_HEADERS).data(b"\x05test" + bytes(5), END_STREAM | frames.PADDED),
        answered,
    ),
    Case("3.2", "a HEADERS frame", lambda peer: peer.headers(ECHO), answered),
    Case(
        "3.2",
        "a HEADERS frame with padding",
        lambda peer: peer.headers(ECHO, WHOLE | frames.PADDED, before=b"\x08", after=bytes(8)),
        answered,
    ),
    Case(
        "3.2",
        "a HEADERS frame with priority",
        lambda peer: peer.headers(ECHO, WHOLE | frames.WITH_PRIORITY, before=priority(0, 255)),
        answered,
    ),
]

OTHERS = [
    Case("3.3", "priority 1", lambda peer: peer.priority(weight=0).headers(ECHO), answered),
    Case("3.3", "priority 256", lambda peer: peer.priority(weight=255).headers(ECHO), answered),
    Case("3.3", "a dependency", lambda peer: peer.priority(3, on=1, weight=0).headers(ECHO), answered),
    Case(
        "3.3",
        "an exclusive dependency",
        lambda peer: peer.priority(weight=0, exclusive=True).headers(ECHO),
        answered,
    ),
    Case(
        "3.3",
        "PRIORITY on an idle stream, then HEADERS on a lower one",
        lambda peer: peer.priority(3).headers(ECHO),
        answered,
    ),
    Case(
        "3.4",
        "a RST_STREAM frame",
        lambda peer: peer.headers(flags=END_HEADERS).cancel().ping(),
        pong_or_close(ZEROS),
    ),
    Case("3.5", "a SETTINGS frame", lambda peer: peer.settings(*EVERY_SETTING), acknowledged),
    Case("3.7", "a PING frame", lambda peer: peer.ping(NAMED), pong(NAMED)),
    Case(
        "3.8",
        "a GOAWAY frame",
        lambda peer: peer.frame(frames.GOAWAY, 0, 0, bytes(8) + b"h2spec").ping(NAMED),
        pong_or_close(NAMED),
    ),
    Case("3.9", "WINDOW_UPDATE on stream 0", lambda peer: peer.room(1, 0).ping(), pong(ZEROS)),
    Case("3.9", "WINDOW_UPDATE on stream 1", lambda peer: peer.headers(ECHO).room(1), answered),
    Case("3.10", "a CONTINUATION frame", lambda peer: ask_in_parts(peer, 5), answered),
    Case("3.10", "CONTINUATION frames", lambda peer: ask_in_parts(peer, 5, 10), answered),
]

MESSAGES = [
    Case("4", "a GET request", lambda peer: peer.headers(ECHO), answered),
    Case("4", "a HEAD request", lambda peer: peer.headers(fields("/h2spec", method="HEAD")), answered),
    Case("4", "a POST request", lambda peer: peer.headers(POST, END_HEADERS).data(), answered),
    Case(
        "4",
        "a POST request with trailers",
        lambda peer: peer.headers(TRAILED, END_HEADERS).data(flags=0).headers([("x-test", "ok")]),
        answered,
    ),
]


@each_of([*STREAMS, *DATA_AND_HEADERS, *OTHERS, *MESSAGES])
def test_the_server_accepts(case: Case) -> None:
    assert_conforms(case)
