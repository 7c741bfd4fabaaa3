"""Tests of the work that a client can cause with few bytes, measured in wake-ups, timers, buffered bytes and event loop
steps.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hyperframe.frame import GoAwayFrame, PingFrame

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import PREFACE, Code, Setting
from ctrlmgr.http.http2.http2_connection import Http2Connection
from ctrlmgr.http.http2.http2_stream import Channel
from ctrlmgr.http.size_limits import DEFAULT, Bounds
from tests.http.http2.loopback import Http2Client, asking
from tests.http.http2.test_frames import framed

WHOLE = frames.END_HEADERS | frames.END_STREAM
LONG = "a" * 20_000


def inner(client: Http2Client) -> Http2Connection:
    """Return the server's connection object, whose private counters the tests read."""
    assert isinstance(client.connection, Http2Connection)
    return client.connection


def goodbye(client: Http2Client) -> Code:
    """Return the error code of the last frame that the server sent, which is a GOAWAY."""
    last = client.untold()[-1]
    assert isinstance(last, GoAwayFrame)
    return Code(last.error_code)


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Record the channels that are resumed."""
    woken: list[int] = []
    go_on = Channel.send_waiting

    def noting(channel: Channel) -> None:
        woken.append(channel.number)
        go_on(channel)

    monkeypatch.setattr(Channel, "send_waiting", noting)
    yield woken
    woken.clear()


def with_waiting(count: int, bounds: Bounds = DEFAULT, *, window: int = 1_000_000) -> Http2Client:
    """Return a client that reads nothing while `count` responses wait."""
    client = Http2Client(bounds, window=window)
    client.reads = False
    while len(inner(client)._channels) < count:
        client.get("/" + LONG)
    return client


def heads(client: Http2Client, count: int, path: str = "/slow", *, first: int = 1) -> bytes:
    """Return `count` complete requests."""
    block = client.h2.encoder.encode(asking(path))
    block = client.h2.encoder.encode(asking(path))
    return b"".join(framed(frames.HEADERS, WHOLE, first + 2 * at, block) for at in range(count))


# Room.


def test_one_byte_of_window_wakes_one_response_and_sets_no_timer(wakes: list[int]) -> None:
    client = with_waiting(100)
    wakes.clear()
    timers = len(client.loop.timers)
    client.connection.receive(frames.window_update(0, 1) * 250)
    client.loop.run()
    assert len(wakes) == 250
    assert set(wakes[:100]) == set(inner(client)._channels)
    assert len(client.loop.timers) == timers


def test_small_window_updates_count_as_noise() -> None:
    for stream in (0, 5):
        client = with_waiting(3, Bounds(noise=50, least_room=100), window=100 if stream else 1_000_000)
        client.connection.receive(frames.window_update(stream, 100) * 120)
        client.loop.run()
        assert not client.transport.is_closing()
        client.connection.receive(frames.window_update(stream, 99) * 120)
        assert client.transport.closed


def test_a_changed_window_counts_for_each_waiting_response(wakes: list[int]) -> None:
    client = with_waiting(100, window=1)
    wakes.clear()
    flips = [frames.settings({Setting.INITIAL_WINDOW_SIZE: size % 2 + 1}) for size in range(1_000)]
    client.connection.receive(b"".join(flips))
    client.loop.run()
    assert goodbye(client) is Code.ENHANCE_YOUR_CALM
    assert len(wakes) <= DEFAULT.noise


def test_a_reduced_window_wakes_nothing(wakes: list[int]) -> None:
    client = with_waiting(10, window=100)
    wakes.clear()
    client.connection.receive(frames.settings({Setting.INITIAL_WINDOW_SIZE: 1}))
    assert wakes == []


# Request headers that are buffered.


def head(size: int, number: int = 0) -> list[tuple[str, str]]:
    return asking("/slow", (f"x-{number}", "a" * size))


def ask(client: Http2Client, size: int, count: int) -> list[int]:
    streams = []
    for at in range(count):
        streams.append(client.ask(*head(size, at)))
        client.exchange()
    return streams


def test_the_header_bytes_of_a_connection_are_bounded_and_released() -> None:
    client = Http2Client(Bounds(connection_heads_bytes=100_000))
    streams = ask(client, 30_000, 5)
    assert client.resets == dict.fromkeys(streams[3:], Code.REFUSED_STREAM)
    assert 90_000 < client.context.heads.held <= 100_000
    client.h2.reset_stream(streams[0])
    client.exchange()
    for _ in range(2):
        client.loop.go_on()
    client.take()
    assert client.context.heads.held == 0
    client.resets.clear()
    ask(client, 30_000, 3)
    assert client.resets == {}


def test_the_header_bytes_of_a_server_are_bounded_except_short_ones() -> None:
    client = Http2Client(Bounds(heads_bytes=50_000))
    streams = ask(client, 30_000, 2)
    assert client.resets == {streams[1]: Code.REFUSED_STREAM}
    ask(client, 5_000, 20)
    assert len(client.resets) == 1


def test_headers_are_dropped_once_the_response_waits() -> None:
    client = Http2Client(window=1)
    client.reads = False
    client.ask(*asking("/abc", ("x", "a" * 30_000)))
    client.exchange()
    (exchange,) = client.exchanges
    assert (exchange.is_answered, client.context.heads.held, exchange.headers) == (True, 0, [])


@pytest.mark.parametrize("lost", [False, True])
def test_headers_of_an_unstarted_request_are_released(lost: bool) -> None:
    client = Http2Client()
    for _ in range(16):
        client.ask(*asking("/slow"))
    stream = client.ask(*head(30_000))
    client.connection.receive(client.h2.data_to_send())
    assert len(client.exchanges) == 16
    assert client.context.heads.held > 30_000
    if lost:
        client.connection.connection_lost(None)
    else:
        client.connection.receive(frames.reset(stream, Code.NO_ERROR))
    assert client.context.heads.held == 0
    client.loop.run()


# Requests that the client cancels.


def test_a_client_that_resets_its_requests_is_disconnected() -> None:
    client = Http2Client()
    data = heads(client, 1_000)
    size = len(data) // 1_000
    for at in range(1_000):
        client.connection.receive(data[at * size : (at + 1) * size] + frames.reset(2 * at + 1, Code.NO_ERROR))
    client.loop.run()
    assert client.transport.closed
    assert inner(client)._last <= 2 * 110


def made_to_reset(number: int) -> bytes:
    return frames.window_update(number, 0)


def test_a_client_that_provokes_resets_is_disconnected() -> None:
    client = Http2Client()
    data = heads(client, 1_000)
    size = len(data) // 1_000
    for at in range(1_000):
        client.connection.receive(data[at * size : (at + 1) * size] + made_to_reset(2 * at + 1))
    client.loop.run()
    assert client.transport.closed
    assert inner(client)._last <= 2 * 110


def test_a_client_above_the_stream_limit_is_disconnected() -> None:
    client = Http2Client(Bounds(streams=10))
    client.connection.receive(heads(client, 1_000))
    client.loop.run()
    assert client.transport.closed
    assert inner(client)._last <= 2 * 120


def test_completed_requests_compensate_for_reset_ones() -> None:
    client = Http2Client(Bounds(resets=10))
    for _ in range(60):
        client.get("/a")
        stream = client.get("/slow")
        client.h2.reset_stream(stream)
        client.exchange()
    assert not client.transport.is_closing()


def test_a_stream_reset_after_its_response_does_not_count() -> None:
    client = Http2Client(Bounds(resets=10))
    for _ in range(40):
        stream = client.get("/slow")
        client.loop.go_on()
        client.h2.reset_stream(stream)
        client.exchange()
        client.loop.go_on()
    assert not client.transport.is_closing()


def test_a_client_with_very_many_header_fields_is_disconnected() -> None:
    client = Http2Client()
    block = client.h2.encoder.encode(asking("/a")) + b"\x90" * 980  # one byte for each field
    for at in range(200):
        client.connection.receive(framed(frames.HEADERS, WHOLE, 2 * at + 1, block))
        client.loop.run()
    assert client.transport.closed
    assert inner(client)._last <= 2 * 2 * 25


# Turns.


@pytest.mark.parametrize(("count", "fields", "turns"), [(1_300, 0, 3), (20, 900, 20)])
def test_much_input_is_processed_in_several_turns(count: int, fields: int, turns: int) -> None:
    client = Http2Client()
    if fields:
        block = client.h2.encoder.encode(asking("/slow")) + b"\x90" * fields  # accept-encoding: gzip, deflate
        data = b"".join(framed(frames.HEADERS, WHOLE, 2 * at + 1, block) for at in range(count))
    else:
        data = framed(frames.PING, 0, 0, b"12345678") * count
    client.connection.receive(data)
    assert not client.transport.takes_in
    taken = 1
    while inner(client)._inbox.may_have_more:
        client.loop.soon.pop(0)()
        taken += 1
    client.loop.run()
    assert turns <= taken <= 2 * turns
    assert client.transport.takes_in


def test_input_processed_in_several_turns_keeps_its_order() -> None:
    client = Http2Client()
    said = [framed(frames.PING, 0, 0, b"%08d" % at) for at in range(2_000)]
    for at in range(0, 2_000, 1_000):  # the second half arrives before the first half is processed
        client.connection.receive(b"".join(said[at : at + 1_000]))
    client.loop.run()
    assert [frame.opaque_data for frame in client.untold() if isinstance(frame, PingFrame)] == [
        b"%08d" % at for at in range(2_000)
    ]


def test_no_input_is_processed_after_the_connection_is_lost() -> None:
    client = Http2Client()
    client.connection.receive(framed(frames.PING, 0, 0, b"12345678") * 1_000)
    client.connection.connection_lost(None)
    client.transport.written = b""
    client.loop.run()
    assert client.transport.written == b""


def test_input_waits_while_the_client_does_not_read() -> None:
    client = Http2Client()
    client.connection.receive(framed(frames.PING, 0, 0, b"12345678") * 1_000)
    client.connection.pause_writing()
    client.loop.run()
    taken = len(client.untold())
    assert taken == 512
    client.connection.resume_writing()
    client.loop.run()
    assert len(client.untold()) == 1_000 - taken


# The required order of fields, and malformed requests.


@pytest.mark.parametrize(
    "first", [framed(frames.PING, 0, 0, b"12345678"), frames.head(0, frames.SETTINGS, frames.ACK, 0)]
)
def test_the_first_frame_is_settings(first: bytes) -> None:
    client = Http2Client()
    silent = type(client.connection)(client.context)
    silent.connection_made(client.transport)
    client.transport.written = b""
    silent.receive(PREFACE + first)
    assert goodbye(client) is Code.PROTOCOL_ERROR


@pytest.mark.parametrize("name", [":method", ":scheme", ":authority", ":path"])
@pytest.mark.parametrize("bad", ["\x01", "\x7f", "\n", "\0"])
def test_no_pseudo_header_has_control_characters(name: str, bad: str) -> None:
    client = Http2Client()
    fields = [(each, value + bad if each == name else value) for each, value in asking("/a")]
    client.connection.receive(framed(frames.HEADERS, WHOLE, 1, client.h2.encoder.encode(fields)))
    assert client.transport.written == frames.reset(1, Code.PROTOCOL_ERROR)
    assert client.paths == []


@pytest.mark.parametrize("authority", ["a b", "u@x", "a/b"])
def test_an_authority_is_a_host(authority: str) -> None:
    client = Http2Client()
    fields = [(name, authority if name == ":authority" else value) for name, value in asking("/a")]
    stream = client.ask(*fields)
    client.exchange()
    assert (client.status(stream), client.paths) == ("400", [])


def test_only_http_and_https_schemes_are_accepted(client: Http2Client) -> None:
    fields = [(name, "ftp" if name == ":scheme" else value) for name, value in asking("/a")]
    stream = client.ask(*fields)
    client.exchange()
    assert (client.resets, client.paths) == ({stream: Code.PROTOCOL_ERROR}, [])
