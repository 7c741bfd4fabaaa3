"""Tests of the exchange object that an application gets: it reads the body of a request and sends the response."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.http.exchange import BodyTooLarge, BodyTooSlow, Exchange, TooManyBodies
from ctrlmgr.http.framing import CONTINUE, Header, chunk
from ctrlmgr.http.http1_responses import LineAnswers
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.http.size_limits import DEFAULT, Bounds

LIMIT = 100_000
CERTIFICATES = (b"jane's",)


class RecordedConnection(LineAnswers):
    """A connection with one request; the connection records the written bytes and the calls."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.is_paused = False
        self.written = b""
        self.longest = 0
        self.turns: list[str] = []
        self.aborted = False
        self.done: list[bool] = []
        self.held = 0
        self._room = room

    @property
    def date(self) -> Header:
        return b"date", b"now"

    @property
    def peer(self) -> str:
        return "192.0.2.7"

    @property
    def certificates(self) -> Sequence[bytes]:
        return CERTIFICATES

    def write(self, data: bytes) -> None:
        self.written += data
        self.longest = max(self.longest, len(data))

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.turns.append("pause")

    def resume_reading(self) -> None:
        self.turns.append("resume")

    def reserve(self, count: int) -> bool:
        if self.held + count > self._room:
            return False
        self.held += count
        return True

    def release(self, count: int) -> None:
        self.held -= count

    def reserve_head(self, cost: int) -> bool:
        return self.reserve(cost)

    def release_head(self, cost: int) -> None:
        self.release(cost)

    def finished(self, *, keep_alive: bool) -> None:
        self.done.append(keep_alive)


def exchange(line: RecordedConnection, bounds: Bounds = DEFAULT, **head: Any) -> Exchange:
    return Exchange(
        Head(**{"method": "POST", "path": b"/", "query": b"", "headers": HeaderLines(), **head}), line, bounds
    )


def test_a_received_body_is_returned_at_once() -> None:
    async def read() -> bytes:
        asked = exchange(RecordedConnection())
        asked.receive(b"one ")
        asked.receive(b"two")
        asked.end()
        return await asked.body(LIMIT, 0)

    assert asyncio.run(read()) == b"one two"


def test_a_missing_body_is_awaited() -> None:
    async def read() -> bytes:
        asked = exchange(RecordedConnection())
        loop = asyncio.get_running_loop()
        loop.call_soon(asked.receive, b"one ")
        loop.call_soon(asked.receive, b"two")
        loop.call_soon(asked.end)
        return await asked.body(LIMIT, 60)

    assert asyncio.run(read()) == b"one two"


def test_a_body_that_does_not_arrive_times_out() -> None:
    asked = exchange(RecordedConnection())
    asked.receive(b"half")
    with pytest.raises(BodyTooSlow):
        asyncio.run(asked.body(LIMIT, 0))


@pytest.mark.parametrize("sizes", [[LIMIT + 1], [60_000] * 2, [1] * 10 + [LIMIT]])
def test_a_body_is_read_to_its_limit(sizes: list[int]) -> None:
    async def read() -> None:
        line = RecordedConnection()
        asked = exchange(line)
        loop = asyncio.get_running_loop()
        for size in sizes:
            loop.call_soon(asked.receive, b"x" * size)
        with pytest.raises(BodyTooLarge):
            await asked.body(LIMIT, 60)
        asked.answer(413, [], b"")
        assert line.held == 0, "what was held for it is given back"

    asyncio.run(read())


def test_nothing_is_received_without_a_read() -> None:
    async def read() -> bytes:
        line = RecordedConnection()
        asked = exchange(line)
        asked.receive(b"x" * DEFAULT.unread_bytes)
        assert line.turns == []
        asked.receive(b"x")
        assert line.turns == ["pause"]
        asyncio.get_running_loop().call_soon(asked.end)
        body = await asked.body(LIMIT, 60)
        assert line.turns == ["pause", "resume"]
        return body

    assert len(asyncio.run(read())) == DEFAULT.unread_bytes + 1


def test_all_bodies_share_a_limit_except_short_ones() -> None:
    bounds = replace(DEFAULT, short_body=1000)
    line = RecordedConnection(room=50_000)
    first, second, short = exchange(line, bounds), exchange(line, bounds), exchange(line, bounds)
    first.receive(b"x" * 40_000)
    second.receive(b"x" * 40_000)
    short.receive(b"x" * 1000)
    for asked in (first, second, short):
        asked.end()
    assert len(asyncio.run(first.body(LIMIT, 0))) == 40_000
    with pytest.raises(TooManyBodies):
        asyncio.run(second.body(LIMIT, 0))
    assert len(asyncio.run(short.body(LIMIT, 0))) == 1000
    for asked in (first, second, short):
        asked.answer(200, [], b"")
    assert line.held == 0


def test_a_client_that_disconnects_while_sending_is_detected() -> None:
    async def read() -> None:
        asked = exchange(RecordedConnection())
        asyncio.get_running_loop().call_soon(asked.lose)
        await asked.body(LIMIT, 60)

    with pytest.raises(Disconnected):
        asyncio.run(read())


def test_a_client_gets_100_continue_only_when_its_body_is_read() -> None:
    line = RecordedConnection()
    asked = exchange(line, expects_continue=True)
    assert line.written == b""
    asked.end()
    asyncio.run(asked.body(LIMIT, 0))
    assert line.written == CONTINUE
    asked.answer(200, [], b"")
    assert line.done == [True]
    refused = exchange(line := RecordedConnection(), expects_continue=True)
    refused.answer(413, [], b"")
    assert (line.done, b"\r\nconnection: close\r\n" in line.written) == ([False], True)


def test_a_response_is_one_write() -> None:
    line = RecordedConnection()
    exchange(line).answer(201, [(b"x", b"y")], b"body")
    assert line.written == b"HTTP/1.1 201 Created\r\ndate: now\r\nx: y\r\ncontent-length: 4\r\n\r\nbody"
    assert line.done == [True]


@pytest.mark.parametrize("code", [204, 304])
def test_a_response_without_a_body_has_no_length(code: int) -> None:
    line = RecordedConnection()
    exchange(line).answer(code, [], b"")
    assert b"content-length" not in line.written


def test_the_response_to_head_has_no_body() -> None:
    whole, pieces = RecordedConnection(), RecordedConnection()
    exchange(whole, method="HEAD").answer(200, [], b"body")
    assert whole.written.endswith(b"content-length: 4\r\n\r\n")
    stream = exchange(pieces, method="HEAD").begin(200, [])
    stream.write(chunk(b"body"))
    stream.send(b"more")
    stream.end()
    assert pieces.written.endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert pieces.done == [True]


@pytest.mark.parametrize(
    ("version", "headers", "expected", "keep_alive"),
    [
        ("1.1", [], chunk(b"onetwo") + chunk(b"three") + b"0\r\n\r\n", True),
        ("1.1", [(b"content-length", b"11")], b"onetwothree", True),
        ("1.0", [], b"onetwothree", False),
    ],
)
def test_a_stream_has_the_framing_of_its_protocol(
    version: str, headers: list[Header], expected: bytes, keep_alive: bool
) -> None:
    line = RecordedConnection()
    stream = exchange(line, version=version).begin(200, headers)
    stream.write(chunk(b"onetwo"))
    stream.send(b"three")
    stream.send(b"")
    stream.end()
    head, _, body = line.written.partition(b"\r\n\r\n")
    assert (body, line.done) == (expected, [keep_alive])
    assert (b"connection: close" in head) is not keep_alive


@pytest.mark.parametrize("body", [b"less", b"more than that"])
def test_a_stream_of_a_wrong_length_is_aborted(body: bytes) -> None:
    line = RecordedConnection()
    stream = exchange(line).begin(200, [(b"content-length", b"8")])
    stream.send(body)
    stream.end()
    assert (line.aborted, line.done) == (True, [])


def test_writes_after_a_disconnect_are_discarded() -> None:
    line = RecordedConnection()
    asked, streaming = exchange(line), exchange(line)
    stream = streaming.begin(200, [])
    written = line.written
    for each in (asked, streaming):
        each.lose()
    asked.answer(200, [], b"body")
    stream.send(b"body")
    stream.end()
    assert (line.written, line.done, stream.lost) == (written, [], True)
    late = exchange(line)
    late.lose()
    with pytest.raises(Disconnected):
        late.begin(200, [])


def test_a_request_has_one_response() -> None:
    asked = exchange(RecordedConnection())
    asked.answer(200, [], b"")
    with pytest.raises(RuntimeError, match="already begun"):
        asked.answer(200, [], b"")


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb"])
def test_a_header_with_a_line_break_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="a line break"):
        exchange(RecordedConnection()).answer(200, [(b"x", value)], b"")


def test_the_client_has_an_address_and_a_certificate() -> None:
    asked = exchange(RecordedConnection())
    assert (asked.peer, asked.certificates) == ("192.0.2.7", CERTIFICATES)


def test_a_counted_body_that_stalls_times_out_early() -> None:
    async def read(came: int) -> None:
        line = RecordedConnection(room=50_000)
        asked = exchange(line, replace(DEFAULT, short_body=1000, body_pause=0, body_progress=1))
        asked.receive(b"x" * came)
        try:
            await asked.body(LIMIT, 60)
        finally:
            asked.answer(504, [], b"")
            assert line.held == 0

    with pytest.raises(BodyTooSlow):
        asyncio.run(read(2000))


def test_a_body_that_progresses_is_awaited() -> None:
    async def read() -> bytes:
        asked = exchange(
            RecordedConnection(room=50_000), replace(DEFAULT, short_body=10, body_pause=0, body_progress=2)
        )
        pieces = iter([b"xx"] * 20)

        def send() -> None:
            piece = next(pieces, None)
            if piece is None:
                asked.end()
            else:
                asked.receive(piece)
                asyncio.get_running_loop().call_soon(send)

        send()
        return await asked.body(LIMIT, 60)

    assert len(asyncio.run(read())) == 40


def pieces(line: RecordedConnection, *parts: bytes, count: int) -> list[bytes]:
    """Return the first parts of a body that an application reads, if the body arrives while the application waits."""

    async def read() -> list[bytes]:
        asked, loop = exchange(line), asyncio.get_running_loop()
        for part in parts:
            loop.call_soon(asked.receive, part)
        loop.call_soon(asked.end)
        return [await asked.piece(60) for _ in range(count)]

    return asyncio.run(read())


def test_a_body_is_read_in_pieces_until_an_empty_one() -> None:
    line = RecordedConnection()
    assert b"".join(pieces(line, b"one ", b"two", count=2)) == b"one two"
    assert pieces(line, count=1) == [b""]
    assert line.held == 0


def test_a_client_is_paused_while_its_body_is_not_read() -> None:
    async def read() -> tuple[list[str], list[str]]:
        line = RecordedConnection()
        asked = exchange(line)
        asked.receive(b"x" * (DEFAULT.unread_bytes + 1))
        before = list(line.turns)
        await asked.piece(60)
        asyncio.get_running_loop().call_soon(asked.receive, b"y")
        await asked.piece(60)
        return before, line.turns

    assert asyncio.run(read()) == (["pause"], ["pause", "resume"])


def test_a_missing_piece_or_a_disconnect_is_an_error() -> None:
    async def late() -> None:
        await exchange(RecordedConnection()).piece(0)

    async def gone() -> None:
        asked = exchange(RecordedConnection())
        asyncio.get_running_loop().call_soon(asked.lose)
        await asked.piece(60)

    with pytest.raises(BodyTooSlow):
        asyncio.run(late())
    with pytest.raises(Disconnected):
        asyncio.run(gone())


def test_a_disconnect_is_reported_once() -> None:
    ended: list[int] = []
    asked = exchange(RecordedConnection())
    asked.on_lost(lambda: ended.append(1))
    asked.lose()
    asked.lose()
    asked.on_lost(lambda: ended.append(2))
    assert ended == [1, 2]
