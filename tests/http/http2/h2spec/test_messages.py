"""Tests h2spec's HTTP/2 part, section 8: malformed requests."""

from __future__ import annotations

from collections.abc import Iterable

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import Code
from tests.http.http2.h2spec.peer import (
    END_HEADERS,
    WHOLE,
    Case,
    Field,
    Peer,
    assert_conforms,
    connection_error,
    each_of,
    fields,
    stream_error,
    without,
)

MALFORMED = stream_error(Code.PROTOCOL_ERROR)
POST = fields(method="POST")


def request(section: str, says: str, given: Iterable[Field]) -> Case:
    """Return a case in which a malformed request without a body is sent."""
    return Case(section, says, lambda peer: peer.headers(given), MALFORMED)


def send_trailers(peer: Peer, field: Field, flags: int) -> Peer:
    """Send a request with a body and trailers."""
    peer.headers(POST, END_HEADERS)
    peer.data(flags=0)
    return peer.headers([field], flags)


def send_too_much(peer: Peer, count: int) -> Peer:
    """Send a body that is longer than the content-length of the request."""
    peer.headers(fields("/slow", ("content-length", "1"), method="POST"), END_HEADERS)
    for _ in range(count - 1):
        peer.data(flags=0)
    return peer.data()


def refused(peer: Peer) -> None:
    """Expect a stream error for a request to which the server has not begun to respond."""
    MALFORMED(peer)
    assert peer.paths == []


HEADS = [
    request("8.1.2", "an uppercase name", fields("/slow", ("X-TEST", "ok"))),
    request("8.1.2.1", "an unknown pseudo-header field", fields("/slow", (":test", "ok"))),
    request("8.1.2.1", "a pseudo-header field of answers", fields("/slow", (":status", "200"))),
    request("8.1.2.1", "a pseudo-header field after others", [("x-test", "ok"), *fields()]),
    request("8.1.2.2", "a field of connections", fields("/slow", ("connection", "keep-alive"))),
    request("8.1.2.2", "TE but trailers", fields("/slow", ("trailers", "test"), ("te", "trailers, deflate"))),
    request("8.1.2.3", "an empty path", fields("")),
    request("8.1.2.3", "no method", without(":method")),
    request("8.1.2.3", "no scheme", without(":scheme")),
    request("8.1.2.3", "no path", without(":path")),
    request("8.1.2.3", "two methods", fields("/slow", (":method", "GET"))),
    request("8.1.2.3", "two schemes", fields("/slow", (":scheme", "http"))),
    request("8.1.2.3", "two paths", fields("/slow", (":path", "/slow"))),
]

BODIES = [
    Case(
        "8.1",
        "a second HEADERS frame without END_STREAM",
        lambda peer: send_trailers(peer, ("x-test", "ok"), END_HEADERS),
        MALFORMED,
    ),
    Case(
        "8.1.2.1",
        "a pseudo-header field in trailers",
        lambda peer: send_trailers(peer, (":method", "POST"), END_HEADERS),
        MALFORMED,
    ),
    Case(
        "8.1.2.1",
        "a pseudo-header field in trailers that end the stream",
        lambda peer: send_trailers(peer, (":method", "POST"), WHOLE),
        MALFORMED,
    ),
    Case("8.1.2.6", "a body that is too long", lambda peer: send_too_much(peer, 1), MALFORMED),
    Case("8.1.2.6", "a body in frames that is too long", lambda peer: send_too_much(peer, 2), MALFORMED),
    Case(
        "8.2",
        "a PUSH_PROMISE frame",
        lambda peer: peer.frame(frames.PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x03" + peer.block(fields())),
        connection_error(Code.PROTOCOL_ERROR),
    ),
]


@each_of([each._replace(then=refused) for each in HEADS])
def test_an_invalid_request_is_not_started(case: Case) -> None:
    assert_conforms(case)


@each_of(BODIES)
def test_the_server_ends(case: Case) -> None:
    assert_conforms(case)
