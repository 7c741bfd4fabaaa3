"""What a request says, however it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ctrlmgr.errors import RequestEntityTooLarge, UnsupportedMediaType
from ctrlmgr.server.http.request import BODY_LIMIT, Request, parse_query
from ctrlmgr.server.http.stream import Disconnected
from ctrlmgr.server.routes import locate


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
def test_a_query_is_read_as_go_reads_it(raw: bytes, expected: dict[str, list[str]]) -> None:
    assert parse_query(raw) == expected


def request(headers: dict[str, str] | None = None, messages: Sequence[dict[str, Any]] = ()) -> Request:
    pending = list(messages)

    async def receive() -> dict[str, Any]:
        return pending.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(f"nothing is to be sent, not {message}")

    scope = {
        "method": "POST",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in (headers or {}).items()],
    }
    return Request(scope, receive, send, locate(b"/"))


def body(*parts: bytes) -> list[dict[str, Any]]:
    last = len(parts) - 1
    return [{"type": "http.request", "body": part, "more_body": at < last} for at, part in enumerate(parts)]


def test_a_body_is_put_together() -> None:
    assert asyncio.run(request(messages=body(b"{", b'"a":', b"1}")).body()) == b'{"a":1}'


def test_a_body_of_the_limit_is_read() -> None:
    assert len(asyncio.run(request(messages=body(b"x" * BODY_LIMIT)).body())) == BODY_LIMIT


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestEntityTooLarge, match=r"^Request entity is too large: limit is 3145728$"):
        asyncio.run(request({"content-length": str(BODY_LIMIT + 1)}).body())


def test_a_body_that_turns_out_too_large_is_read_no_further() -> None:
    messages = body(*[b"x" * 1_000_000] * 4, b"never asked for")
    with pytest.raises(RequestEntityTooLarge):
        asyncio.run(request(messages=messages).body())


def test_a_packed_body_is_refused() -> None:
    with pytest.raises(UnsupportedMediaType, match="must not be encoded"):
        asyncio.run(request({"content-encoding": "gzip"}, body(b"")).body())
    assert asyncio.run(request({"content-encoding": "identity"}, body(b"x")).body()) == b"x"


def test_a_client_that_leaves_while_sending_is_no_error_of_ours() -> None:
    messages = [*body(b"{", b"")[:1], {"type": "http.disconnect"}]
    with pytest.raises(Disconnected):
        asyncio.run(request(messages=messages).body())


def test_of_two_headers_the_first_counts() -> None:
    scope = {"method": "GET", "query_string": b"", "headers": [(b"accept", b"one"), (b"accept", b"two")]}
    assert Request(scope, None, None, locate(b"/")).header(b"accept") == b"one"  # type: ignore[arg-type]  # unused
