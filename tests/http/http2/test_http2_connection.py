"""Tests of HTTP/2 on a connection to a hyper-h2 client with virtual time, without a socket and without waiting."""

from __future__ import annotations

import gc
from datetime import UTC, datetime

import pytest
from hyperframe.frame import DataFrame, GoAwayFrame, RstStreamFrame

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import Code
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.http2.http2_stream import Channel
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from ctrlmgr.testing.fake_clock import FakeClock
from tests.http.http2.loopback import Http2Client, asking, begun, code_of
from tests.http.http2.test_frames import framed
from tests.http.loopback import PRESENTED

LINGER = DEFAULT.linger


def test_requests_are_answered(client: Http2Client) -> None:
    first, second = client.get("/a"), client.get("/b")
    assert (client.status(first), client.bodies[first], client.bodies[second]) == ("200", b"/a", b"/b")
    assert client.heads[first] == {":status": "200", "date": "now", "content-length": "2"}
    assert client.ended == {first, second}


def test_concurrent_requests_are_answered_concurrently(client: Http2Client) -> None:
    for at in range(10):
        client.ask(*asking(f"/{at}"))
    writes = client.transport.writes
    client.connection.receive(client.h2.data_to_send())
    assert client.transport.writes == writes + 1
    client.loop.run()
    client.take()
    assert sorted(client.bodies.values()) == [b"/%d" % at for at in range(10)]
    assert client.paths == [b"/%d" % at for at in range(10)]


def test_many_concurrent_requests_yield_to_the_event_loop(client: Http2Client) -> None:
    for at in range(40):
        client.ask(*asking(f"/{at}"))
    client.connection.receive(client.h2.data_to_send())
    begun = [len(client.paths)]
    while len(client.paths) < 40:
        client.loop.soon.pop(0)()
        begun.append(len(client.paths))
    assert sorted(set(begun)) == [16, 32, 40]
    client.loop.run()
    client.take()
    assert client.paths == [b"/%d" % at for at in range(40)]
    assert len(client.bodies) == 40


def test_a_slow_request_delays_no_other(client: Http2Client) -> None:
    slow = client.get("/slow")
    quick = client.get("/quick")
    assert client.ended == {quick}
    for _ in range(2):
        client.loop.go_on()
        client.exchange()
        client.take()
    assert client.bodies[slow] == b"/slow"
    assert client.ended == {slow, quick}


def test_a_response_can_be_sent_in_pieces(client: Http2Client) -> None:
    stream = client.get("/chunks")
    assert client.bodies[stream] == b"onetwothree"
    assert "content-length" not in client.heads[stream]
    assert stream in client.ended


@pytest.mark.parametrize("path", ["/chunks", "/a"])
def test_the_response_to_head_has_no_body(client: Http2Client, path: str) -> None:
    stream = client.ask(*asking(path, method="HEAD"))
    client.exchange()
    assert client.status(stream) == "200"
    assert stream in client.ended
    assert not client.bodies.get(stream)


def test_every_request_has_the_clients_certificate(client: Http2Client) -> None:
    client.get("/a")
    client.get("/b")
    assert [exchange.certificates for exchange in client.exchanges] == [tuple(PRESENTED)] * 2
    assert {exchange.version for exchange in client.exchanges} == {"2"}


@pytest.mark.parametrize("path", ["/fails", "/silent"])
def test_a_failing_or_silent_application_resets_only_its_stream(client: Http2Client, path: str) -> None:
    stream = client.get(path)
    assert client.resets == {stream: Code.INTERNAL_ERROR}
    assert client.bodies[client.get("/next")] == b"/next"


# Requests that the client cancels, and protocol errors.


def test_a_reset_request_is_cancelled_without_a_response(client: Http2Client) -> None:
    stream = client.get("/slow")
    client.h2.reset_stream(stream)
    client.exchange()
    assert client.exchanges[0].is_disconnected
    client.loop.go_on()
    client.take()
    assert stream not in client.heads
    assert not client.resets


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", Code.FRAME_SIZE_ERROR),
        (framed(frames.HEADERS, frames.END_HEADERS, 2), Code.PROTOCOL_ERROR),
        (framed(frames.DATA, 0, 9, b"a"), Code.PROTOCOL_ERROR),
        (framed(frames.RST_STREAM, 0, 9, b"\0\0\0\0"), Code.PROTOCOL_ERROR),
        (framed(frames.WINDOW_UPDATE, 0, 9, b"\0\0\0\1"), Code.PROTOCOL_ERROR),
        (framed(frames.WINDOW_UPDATE, 0, 0, b"\0\0\0\0"), Code.PROTOCOL_ERROR),
        (framed(frames.PUSH_PROMISE, 0, 1, b"\0\0\0\2"), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, frames.END_HEADERS, 1, b"\x80"), Code.COMPRESSION_ERROR),
        (framed(frames.SETTINGS, 0, 0, b"\0\x02\0\0\0\x02"), Code.PROTOCOL_ERROR),
    ],
)
def test_connection_errors_end_the_connection(client: Http2Client, data: bytes, code: Code) -> None:
    client.say(data)
    assert (code_of(client), client.transport.closed) == (code, True)
    client.say(framed(frames.PING, 0, 0, b"12345678"))
    assert client.transport.written == b""


def test_requests_after_a_connection_error_are_not_started(client: Http2Client) -> None:
    client.ask(*asking("/a"))
    client.say(client.h2.data_to_send() + framed(frames.PUSH_PROMISE, 0, 1, b"\0\0\0\2"))
    assert client.paths == []


def test_a_request_reset_at_once_is_not_started(client: Http2Client) -> None:
    taken, kept = client.ask(*asking("/a")), client.ask(*asking("/b"))
    client.h2.reset_stream(taken)
    client.exchange()
    assert (client.paths, client.ended) == ([b"/b"], {kept})


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (framed(frames.WINDOW_UPDATE, 0, 1, b"\0\0\0\0"), Code.PROTOCOL_ERROR),
        (framed(frames.HEADERS, frames.END_HEADERS, 1, b""), Code.PROTOCOL_ERROR),
    ],
)
def test_stream_errors_end_the_stream(client: Http2Client, data: bytes, code: Code) -> None:
    stream = client.ask(*asking("/slow", method="POST"), ends=False)
    client.exchange()
    client.say(data)
    assert client.resets == {stream: code}
    assert client.exchanges[0].is_disconnected
    assert client.bodies[client.get("/next")] == b"/next"


def test_a_closed_stream_ignores_later_frames(client: Http2Client) -> None:
    stream = client.get("/a")
    client.connection.receive(framed(frames.DATA, 0, stream, b"late"))
    client.loop.run()
    assert client.transport.written == frames.reset(stream, Code.STREAM_CLOSED)
    client.transport.written = b""
    other = client.get("/b")
    client.say(framed(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, other, b""))
    assert code_of(client) is Code.STREAM_CLOSED


def test_an_invalid_request_is_answered_and_the_next_one_too(client: Http2Client) -> None:
    bad = client.ask(*asking("no path"))
    client.exchange()
    assert (client.status(bad), client.paths) == ("400", [])
    assert client.bodies[client.get("/next")] == b"/next"


def test_unknown_frames_are_skipped(client: Http2Client) -> None:
    client.say(framed(77, 0xFF, 1, b"who knows") + framed(frames.PRIORITY, 0, 3, b"\0\0\0\0\1"))
    assert client.bodies[client.get("/next")] == b"/next"


def test_pings_are_answered_but_not_ping_acknowledgements(client: Http2Client) -> None:
    client.h2.ping(b"12345678")
    client.exchange()
    assert type(client.events[-1]).__name__ == "PingAckReceived"
    client.connection.receive(framed(frames.PING, frames.ACK, 0, b"12345678") + framed(frames.SETTINGS, frames.ACK, 0))
    assert client.transport.written == b""


# Bounds.


def test_a_silent_client_is_disconnected(client: Http2Client) -> None:
    silent = type(client)()
    silent.loop.pass_time(DEFAULT.keep_alive - 1)
    assert not silent.transport.is_closing()
    silent.loop.pass_time(2)
    assert silent.transport.closed


@pytest.mark.parametrize("begun", [b"\0\0\5", framed(frames.HEADERS, 0, 1, b"\x82"), frames.head(9, 0, 0, 1)])
def test_a_client_with_an_unfinished_request_is_disconnected(client: Http2Client, begun: bytes) -> None:
    client.say(begun)
    client.loop.pass_time(DEFAULT.head_timeout - 1)
    assert not client.transport.is_closing()
    client.loop.pass_time(2)
    assert client.transport.aborted


def test_every_frame_extends_the_timeout_equally(client: Http2Client) -> None:
    client.get("/slow")
    frame = framed(99, 0, 0, b"a" * 99)
    client.say(frame[:50])
    for _ in range(5):
        client.loop.pass_time(DEFAULT.head_timeout - 1)
        client.say(frame[50:] + frame[:50])
    assert not client.transport.is_closing()
    client.loop.pass_time(DEFAULT.head_timeout + 1)
    assert client.transport.aborted


def test_a_connection_with_a_running_request_is_not_idle(client: Http2Client) -> None:
    client.get("/slow")
    client.loop.pass_time(10 * DEFAULT.keep_alive)
    assert not client.transport.is_closing()
    for _ in range(2):
        client.loop.go_on()
    client.loop.pass_time(DEFAULT.keep_alive + 1)
    assert client.transport.closed


def test_the_number_of_concurrent_requests_is_limited() -> None:
    client = Http2Client(Bounds(streams=2))
    assert client.h2.remote_settings.max_concurrent_streams == 2
    for _ in range(2):
        client.get("/slow")
    block = client.h2.encoder.encode(asking("/third"))
    client.connection.receive(framed(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 5, block))
    client.loop.run()
    assert client.transport.written == frames.reset(5, Code.REFUSED_STREAM)
    assert client.paths == [b"/slow", b"/slow"]


@pytest.mark.parametrize(
    "noise",
    [
        framed(frames.PING, 0, 0, b"12345678"),
        framed(frames.SETTINGS, 0, 0),
        framed(frames.PRIORITY, 0, 1, b"\0\0\0\0\3"),
        framed(frames.DATA, 0, 1),
        framed(99, 0, 0),
    ],
)
def test_a_client_without_requests_is_disconnected(noise: bytes) -> None:
    client = Http2Client(Bounds(noise=50))
    client.ask(*asking("/slow", method="POST"), ends=False)
    client.exchange()
    for _ in range(3):
        client.connection.receive(noise * 30)
        client.loop.pass_time(DEFAULT.head_timeout + 1)
    assert not client.transport.is_closing()
    client.connection.receive(noise * 120)
    assert client.transport.closed
    client.take()
    assert code_of(client) is Code.ENHANCE_YOUR_CALM


def test_a_client_that_always_resets_its_requests_is_disconnected() -> None:
    client = Http2Client(Bounds(noise=50))
    for _ in range(120):
        if client.transport.is_closing():
            break
        stream = client.get("/slow")
        client.h2.reset_stream(stream)
        client.exchange()
    assert code_of(client) is Code.ENHANCE_YOUR_CALM
    assert len(client.paths) <= 110


def test_input_is_not_processed_while_the_client_does_not_read(client: Http2Client) -> None:
    client.connection.pause_writing()
    client.get("/a")
    assert not client.transport.takes_in
    client.connection.resume_writing()
    assert client.transport.takes_in


def test_a_stream_resumes_with_the_connection(client: Http2Client) -> None:
    body = begun(client)
    client.connection.pause_writing()
    assert body.paused
    client.connection.resume_writing()
    assert not body.paused


@pytest.mark.parametrize("path", ["/a", "/chunks", "/slow", "/silent"])
def test_a_finished_request_leaves_no_reference_cycles(client: Http2Client, path: str) -> None:
    gc.collect()
    gc.disable()
    try:
        before = count(Channel, Exchange)
        stream = client.get(path)
        if path == "/slow":
            client.h2.reset_stream(stream)
            client.exchange()
            client.loop.go_on()
        client.exchanges.clear()
        assert count(Channel, Exchange) == before
    finally:
        gc.enable()


def test_a_request_that_waited_for_window_leaves_no_reference_cycles() -> None:
    client = Http2Client(window=1_000_000)
    client.reads = False
    gc.collect()
    gc.disable()
    try:
        before = count(Channel, Exchange)
        for _ in range(3):
            stream = client.get("/" + "a" * 40_000)
            if stream not in client.ended:
                client.h2.reset_stream(stream)
                client.exchange()
        assert len(client.ended) == 1
        client.exchanges.clear()
        client.loop.timers.clear()  # asyncio keeps only weak references to cancelled tasks
        assert count(Channel, Exchange) == before
    finally:
        gc.enable()


def count(*kinds: type) -> int:
    return sum(isinstance(each, kinds) for each in gc.get_objects())


def test_a_lost_connection_leaves_no_reference_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        before = count(Http2Connection)
        client = Http2Client()
        client.get("/slow")
        client.connection.connection_lost(None)
        client.loop.go_on()
        client.exchanges.clear()
        client.loop.timers.clear()
        del client.connection
        assert count(Http2Connection) == before
    finally:
        gc.enable()


# The end of a connection.


def test_a_stopping_server_sends_goaway_and_finishes_requests(client: Http2Client) -> None:
    slow = client.get("/slow")
    for _ in range(2):
        client.connection.announce_close()
    client.loop.run()
    (first,) = client.untold()
    assert isinstance(first, GoAwayFrame)
    assert (first.error_code, first.last_stream_id) == (Code.NO_ERROR, frames.WIDEST)
    for _ in range(2):
        client.connection.shutdown()
    assert not client.transport.is_closing()
    for _ in range(2):
        client.loop.go_on()
    assert client.transport.closed
    last, _, body, _ = client.untold()
    assert isinstance(last, GoAwayFrame)
    assert isinstance(body, DataFrame)
    assert (last.last_stream_id, body.stream_id, body.data) == (slow, slow, b"/slow")


def test_a_stopping_server_does_not_wait_for_idle_clients(client: Http2Client) -> None:
    client.get("/a")
    client.connection.shutdown()
    assert client.transport.closed
    client.loop.pass_time(LINGER + 0.1)
    assert client.transport.aborted


def test_requests_after_goaway_are_not_answered(client: Http2Client) -> None:
    client.get("/slow")
    client.connection.shutdown()
    client.connection.receive(
        framed(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 3, client.h2.encoder.encode(asking("/late")))
    )
    assert client.paths == [b"/slow"]


def test_a_retired_connection_ends_after_its_running_requests(client: Http2Client) -> None:
    slow = client.get("/slow")
    client.exchanges[0].retire()
    client.loop.run()
    (goodbye,) = client.untold()
    assert isinstance(goodbye, GoAwayFrame)
    assert (goodbye.error_code, goodbye.last_stream_id) == (Code.NO_ERROR, slow)
    assert not client.transport.is_closing()
    for _ in range(2):
        client.loop.go_on()
    _, body, _ = client.untold()
    assert isinstance(body, DataFrame)
    assert (body.stream_id, body.data) == (slow, b"/slow")
    assert client.transport.closed


def test_requests_of_a_client_that_sends_goaway_are_finished(client: Http2Client) -> None:
    slow = client.get("/slow")
    client.say(frames.goaway(0, Code.NO_ERROR))
    assert not client.transport.is_closing()
    for _ in range(2):
        client.loop.go_on()
    assert client.transport.closed
    _, body, _ = client.untold()
    assert isinstance(body, DataFrame)
    assert (body.stream_id, body.data) == (slow, b"/slow")


def test_an_expired_certificate_ends_streams_and_finishes_other_requests() -> None:
    clock = FakeClock()
    expires = datetime.fromtimestamp(clock.now() / 1_000_000 + 60, UTC).strftime("%b %d %H:%M:%S %Y GMT")
    client = Http2Client(clock=clock, certificate={"notAfter": expires})
    begun = client.get("/slow")
    client.loop.go_on()
    waiting = client.get("/slow")
    clock.step(61)
    client.loop.pass_time(61)
    client.loop.run()
    cut, goodbye = client.untold()
    assert isinstance(cut, RstStreamFrame)
    assert isinstance(goodbye, GoAwayFrame)
    assert (cut.stream_id, cut.error_code, goodbye.last_stream_id) == (begun, Code.INTERNAL_ERROR, waiting)
    assert client.exchanges[0].is_disconnected
    assert not client.transport.is_closing()
    for _ in range(3):
        client.loop.go_on()
    assert [frame.stream_id for frame in client.untold()] == [waiting] * 3
    assert client.transport.closed


def test_the_handler_is_notified_of_a_lost_connection(client: Http2Client) -> None:
    client.get("/slow")
    client.connection.connection_lost(None)
    assert client.exchanges[0].is_disconnected
    client.loop.go_on()
    client.connection.receive(framed(frames.PING, 0, 0, b"12345678"))
    assert client.transport.written == b""
