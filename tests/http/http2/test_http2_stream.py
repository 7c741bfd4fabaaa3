"""Tests of one request and its response over HTTP/2: flow control, and independence of streams.

The client is hyper-h2, and the tests control the time.
"""

from __future__ import annotations

import pytest
from h2.events import WindowUpdated
from h2.settings import SettingCodes
from hyperframe.frame import RstStreamFrame

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import Code
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from tests.http.http2.loopback import Http2Client, asking, begun, code_of
from tests.http.http2.test_frames import framed

LINGER = DEFAULT.linger


# Bodies.


def test_a_body_sent_with_the_headers_is_available_at_the_start(client: Http2Client) -> None:
    stream = client.ask(*asking("/a", method="POST"), ends=False)
    client.h2.send_data(stream, b"body", end_stream=True)
    client.exchange()
    assert client.exchanges[0].is_complete


@pytest.mark.parametrize("ends", [0, frames.END_STREAM])
def test_no_body_follows_the_end_of_a_request(client: Http2Client, ends: int) -> None:
    stream = client.get("/slow")
    client.say(framed(frames.DATA, ends, stream, b"more"))
    other = client.get("/slow")
    client.say(framed(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, other, b""))
    assert client.resets == {stream: Code.STREAM_CLOSED, other: Code.STREAM_CLOSED}


def test_the_buffer_of_an_unread_body_is_small(client: Http2Client) -> None:
    stream = client.ask(*asking("/slow", method="POST"), ends=False)
    client.exchange()
    for _ in range(DEFAULT.unread_bytes // 16_384):
        client.h2.send_data(stream, b"a" * 16_384)
        client.exchange()
    assert client.h2.local_flow_control_window(stream) == 0
    client.say(framed(frames.DATA, 0, stream, b"more"))
    assert client.resets == {stream: Code.FLOW_CONTROL_ERROR}


def test_the_connection_window_is_restored_as_it_is_consumed() -> None:
    client = Http2Client(Bounds(streams=2))
    for _ in range(10):
        stream = client.ask(*asking("/a", method="POST"), ends=False)
        client.h2.send_data(stream, b"a" * 15_000)
        client.h2.send_data(stream, b"a" * 15_000, end_stream=True)
        client.exchange()
    assert len(client.paths) == 10
    assert client.h2.outbound_flow_control_window > DEFAULT.unread_bytes


def test_a_body_has_window_while_it_is_read(client: Http2Client) -> None:
    half = DEFAULT.unread_bytes // 2
    stream = client.ask(*asking("/slow", method="POST"), ends=False)
    client.exchange()
    wanted = client.exchanges[0].body(10 * half, 60)
    with pytest.raises(RuntimeError, match="no running event loop"):
        wanted.send(None)  # the application has requested the body, and would wait
    for _ in range(2):
        client.say(framed(frames.DATA, 0, stream, b"a" * 16_384) * 2)
        assert window_updates(client, stream) == half
    client.exchanges[0].receive(b"a" * (10 * half))  # more data than the window allows, while no read waits
    client.say(framed(frames.DATA, 0, stream, b"a" * 16_384) * 2)
    assert window_updates(client, stream) == 0


def window_updates(client: Http2Client, stream: int) -> int:
    """Return the sum of the window updates that a stream received since the last call."""
    events, client.events = client.events, []
    return sum(each.delta for each in events if isinstance(each, WindowUpdated) and each.stream_id == stream)


def test_a_sending_client_has_time_to_read_an_early_response(client: Http2Client) -> None:
    stream = client.ask(*asking("/early", method="POST"), ends=False)
    client.exchange()
    assert stream in client.ended
    client.say(framed(frames.DATA, 0, stream, b"what nobody reads"))
    client.loop.pass_time(LINGER - 0.1)
    client.loop.run()
    client.take()
    assert not client.resets
    client.loop.pass_time(0.2)
    client.loop.run()
    client.take()
    assert client.resets == {stream: Code.NO_ERROR}
    assert client.bodies[client.get("/next")] == b"/next"


def test_an_ended_watch_is_not_revalidated(client: Http2Client) -> None:
    stream = client.ask(*asking("/early", method="POST"), ends=False)
    client.exchange()
    client.say(framed(frames.DATA, frames.END_STREAM, stream, b"the rest"))
    client.loop.pass_time(LINGER + 0.1)
    client.loop.run()
    client.take()
    assert not client.resets


@pytest.mark.parametrize("said", [3, 5])
def test_the_length_of_a_body_must_equal_content_length(client: Http2Client, said: int) -> None:
    stream = client.ask(*asking("/slow", ("content-length", str(said)), method="POST"), ends=False)
    client.exchange()
    client.say(framed(frames.DATA, frames.END_STREAM, stream, b"body"))
    assert client.resets == {stream: Code.PROTOCOL_ERROR}


# Flow control of answers.


def test_no_more_is_sent_than_the_window_allows() -> None:
    client = Http2Client(window=10)
    client.reads = False
    stream = client.get("/" + "a" * 99)
    assert len(client.bodies[stream]) == 10
    client.h2.increment_flow_control_window(50, stream)
    client.exchange()
    assert len(client.bodies[stream]) == 60
    assert stream not in client.ended
    client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 50})
    client.exchange()
    assert (client.bodies[stream], stream in client.ended) == (b"/" + b"a" * 99, True)


def test_responses_waiting_for_the_connection_window_take_turns() -> None:
    client = Http2Client(window=1_000_000)
    client.reads = False
    streams = [client.get("/" + letter * 40_000) for letter in "abc"]
    assert sum(map(len, client.bodies.values())) == 65_535
    for _ in range(6):
        client.h2.increment_flow_control_window(10_000)
        client.exchange()
    assert [len(client.bodies[stream]) for stream in streams] == [40_001] * 3
    assert client.ended == set(streams)


def test_short_responses_share_the_connection_window() -> None:
    client = Http2Client(window=1_000_000)
    client.reads = False
    for _ in range(8):
        client.get("/" + "a" * 9_999)
    assert sum(map(len, client.bodies.values())) == 65_535
    client.h2.increment_flow_control_window(20_000)
    client.exchange()
    assert [len(body) for body in client.bodies.values()] == [10_000] * 8


def test_a_stream_pauses_for_a_slow_reader_and_resumes() -> None:
    client = Http2Client(window=4)
    client.reads = False
    stream = client.get("/chunks")
    assert client.bodies[stream] == b"onet"
    body = client.exchanges[0].stream
    assert body is not None
    assert body.paused
    client.h2.increment_flow_control_window(100, stream)
    client.exchange()
    assert (client.bodies[stream], body.paused) == (b"onetwothree", False)
    assert stream in client.ended


def test_a_client_that_reads_nothing_loses_the_stream() -> None:
    client = Http2Client(window=4)
    client.reads = False
    stream, other = client.get("/chunks"), client.get("/abcdef")
    client.loop.pass_time(DEFAULT.write_timeout - 1)
    client.h2.increment_flow_control_window(1, other)
    client.exchange()
    client.loop.pass_time(2)
    client.loop.run()
    client.take()
    assert client.resets == {stream: Code.FLOW_CONTROL_ERROR}
    client.h2.increment_flow_control_window(100, other)
    client.exchange()
    assert client.bodies[other] == b"/abcdef"


def test_connection_window_updates_alone_do_not_count_as_reading() -> None:
    client = Http2Client(window=4)
    client.reads = False
    stream = client.get("/abcdef")
    for _ in range(3):
        client.loop.pass_time(DEFAULT.write_timeout / 3 + 1)
        client.say(frames.window_update(0, 100))
    client.loop.run()
    client.take()
    assert client.resets == {stream: Code.FLOW_CONTROL_ERROR}


def test_an_idle_reader_is_not_disconnected() -> None:
    client = Http2Client(window=4)
    client.reads = False
    stream, body = 1, begun(client)
    body.send(b"/sl")
    body.send(b"ow")
    client.loop.run()
    client.take()
    client.h2.increment_flow_control_window(100, stream)
    client.exchange()
    client.loop.pass_time(2 * DEFAULT.write_timeout)
    client.loop.run()
    client.take()
    assert (client.bodies[stream], client.resets) == (b"/slow", {})


def test_a_reader_is_not_resumed_while_the_connection_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[Stream] = []
    monkeypatch.setattr(Stream, "wake", lambda stream: woken.append(stream))
    client = Http2Client(window=4)
    client.reads = False
    stream, body = 1, begun(client)
    body.send(b"/slow")
    client.connection.pause_writing()
    client.h2.increment_flow_control_window(100, stream)
    client.exchange()
    assert (client.bodies[stream], body in woken) == (b"/slo", False)  # connections of other tests may still exist
    client.connection.resume_writing()
    client.loop.run()
    client.take()
    assert (client.bodies[stream], body in woken) == (b"/slow", True)


def test_nothing_is_written_to_a_reset_stream(client: Http2Client) -> None:
    stream, body = 1, begun(client)
    body.abort()
    body.send(b"/slow")
    body.abort()
    client.loop.run()
    _, last = client.untold()
    assert isinstance(last, RstStreamFrame)
    assert (last.stream_id, last.error_code) == (stream, Code.INTERNAL_ERROR)


def test_a_finished_response_is_not_reset(client: Http2Client) -> None:
    client.get("/chunks")
    body = client.exchanges[0].stream
    assert body is not None
    body.abort()
    client.loop.run()
    client.take()
    assert not client.resets


@pytest.mark.parametrize(("stream", "code"), [(0, Code.FLOW_CONTROL_ERROR), (1, Code.FLOW_CONTROL_ERROR)])
def test_a_window_above_the_maximum_is_an_error(stream: int, code: Code) -> None:
    client = Http2Client(window=1)
    client.get("/slow")
    for _ in range(2):
        client.say(frames.window_update(stream, frames.WIDEST - 10))
    assert (code_of(client) if stream == 0 else client.resets[1]) is code
