"""Tests of the fields that the server parses from a request, in all spellings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import User
from ctrlmgr.errors import RequestEntityTooLarge, RequestTimeout, UnsupportedMediaType
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.response_stream import ONE_WRITE
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server import request as requests
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import AGENT_LENGTH, BODY_LIMIT, MOST_PARAMETERS, Request, parse_query
from ctrlmgr.server.routes import locate
from tests.http.test_exchange import RecordedConnection


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", {}),
        (b"a=1&b=2&a=3", {"a": ["1", "3"], "b": ["2"]}),
        (b"verbose", {"verbose": [""]}),
        (b"a=b=c", {"a": ["b=c"]}),
        (b"labelSelector=app%3Dweb%2Ctier+in+%28x%29", {"labelSelector": ["app=web,tier in (x)"]}),
        (b"&&a=1&", {"a": ["1"]}),
        pytest.param(b"a=%zz&b=1", {"b": ["1"]}, id="a bad escape"),
        pytest.param(b"a=1;b=2&c=3", {"c": ["3"]}, id="a semicolon"),
        pytest.param(b"a=%ff", {"a": ["\ufffd"]}, id="no UTF-8"),
        (b"a=%C3%A9", {"a": ["é"]}),
    ],
)
def test_a_query_is_parsed_like_go(raw: bytes, expected: dict[str, list[str]]) -> None:
    assert parse_query(raw) == expected


@pytest.mark.parametrize(("count", "told"), [(MOST_PARAMETERS, True), (MOST_PARAMETERS + 1, False)])
def test_a_query_with_too_many_pairs_is_ignored(count: int, told: bool) -> None:
    assert bool(parse_query(b"&".join([b"a=b"] * count))) is told


def request(
    headers: dict[str, str] | None = None,
    parts: Sequence[bytes] = (),
    *,
    ends: bool = True,
    line: RecordedConnection | None = None,
    method: str = "POST",
    length: int | None = None,
) -> Request:
    """Return a request whose body arrives in the pieces `parts`."""
    lines = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    exchange = Exchange(
        Head(method, b"/", b"", HeaderLines(lines), length=length), line or RecordedConnection(), DEFAULT
    )
    for part in parts:
        exchange.receive(part)
    if ends:
        exchange.end()
    return Request(exchange, locate(b"/"), RequestIds(Random(1)))


def test_a_body_is_joined_from_its_pieces() -> None:
    assert asyncio.run(request(parts=[b"{", b'"a":', b"1}"]).body()) == b'{"a":1}'


def test_a_body_of_the_limit_is_read() -> None:
    assert len(asyncio.run(request(parts=[b"x" * BODY_LIMIT]).body())) == BODY_LIMIT


def test_a_body_above_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestEntityTooLarge, match=r"^Request entity is too large: limit is 3145728$"):
        asyncio.run(request(length=BODY_LIMIT + 1, ends=False).body())


def test_a_body_that_exceeds_the_limit_while_reading_is_refused() -> None:
    with pytest.raises(RequestEntityTooLarge):
        asyncio.run(request(parts=[b"x" * 1_000_000] * 4, ends=False).body())


def test_a_body_that_does_not_arrive_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_PATIENCE", 0)
    with pytest.raises(RequestTimeout, match="did not complete within the allotted timeout"):
        asyncio.run(request(parts=[b"{"], ends=False).body())


def test_a_compressed_body_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="must not be encoded"):
        asyncio.run(request({"content-encoding": "gzip"}, [b""]).body())
    assert asyncio.run(request({"content-encoding": "identity"}, [b"x"]).body()) == b"x"


def test_the_first_of_repeated_headers_counts() -> None:
    exchange = Exchange(
        Head("GET", b"/", b"", HeaderLines([(b"accept", b"one"), (b"accept", b"two")])), RecordedConnection(), DEFAULT
    )
    assert Request(exchange, locate(b"/"), RequestIds(Random(1))).header(b"accept") == b"one"


@pytest.mark.parametrize("agent", ["x" * 900_000, "é" * 450_000])
def test_a_long_user_agent_is_shortened(agent: str) -> None:
    asked = request({"user-agent": agent})
    asked.user = User("ann")
    assert len(asked.requester.user_agent) <= AGENT_LENGTH
    assert len(asked.requester.author.user_agent) <= AGENT_LENGTH


LONG = Response(200, b"0123456789" * 100_000)


def test_a_long_response_is_sent_in_pieces_that_equal_the_whole() -> None:
    line = RecordedConnection()
    asyncio.run(request(line=line).respond(LONG))
    head, _, body = line.written.partition(b"\r\n\r\n")
    assert body == LONG.body
    assert b"content-length: 1000000" in head
    assert b"transfer-encoding" not in head
    assert (line.done, line.longest) == ([True], ONE_WRITE)


def test_the_response_to_head_has_the_same_length_and_no_body() -> None:
    line = RecordedConnection()
    asyncio.run(request(line=line, method="HEAD").respond(LONG))
    assert b"content-length: 1000000" in line.written
    assert line.written.endswith(b"\r\n\r\n")
    assert line.done == [True]


def test_a_long_response_waits_for_its_reader_and_ends_with_it() -> None:
    line = RecordedConnection()
    exchange = Exchange(Head("GET", b"/", b"", HeaderLines()), line, DEFAULT)

    async def answer() -> None:
        line.is_paused = True
        asyncio.get_running_loop().call_soon(exchange.lose)
        await Request(exchange, locate(b"/"), RequestIds(Random(1))).respond(LONG)

    asyncio.run(answer())
    assert len(line.written) < 2 * ONE_WRITE
    assert not line.done
