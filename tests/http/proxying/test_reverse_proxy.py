"""Tests of forwarded requests: bodies, headers, slow readers, servers that crash, and protocol upgrades."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from ctrlmgr.http.proxying.hop_headers import ExternalAddress
from ctrlmgr.http.proxying.reverse_proxy import ForwardedRequest
from ctrlmgr.http.proxying.upstream_address import (
    Upstream,
    UpstreamClosed,
    UpstreamMalformed,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from ctrlmgr.http.response_stream import Disconnected
from tests.http.proxying.front import Behaviour, in_front_of

GET = b"GET /path?a=b HTTP/1.1\r\nhost: front.example\r\nconnection: close\r\n"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the event loop of the server
        return runner.run(asyncio.wait_for(work, 20))


def says(answer: bytes, seen: list[bytes] | None = None) -> Behaviour:
    """Return a server behaviour that responds to every request with these bytes."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if seen is not None:
                seen.append(head)
            writer.write(answer)

    return behave


async def mirrors(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond with the header and the body of the request."""
    head = await reader.readuntil(b"\r\n\r\n")
    body = b""
    if b"chunked" in head:
        while not body.endswith(b"0\r\n\r\n"):
            body += await reader.read(65_536)
    elif b"content-length: " in head:
        body = await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
    writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + head + body)
    writer.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_the_upstream_receives_the_request_without_hop_by_hop_headers() -> None:
    async def ask() -> bytes:
        outside = ExternalAddress(scheme="https", host="cluster.example", prefix="/a/proxy")
        async with in_front_of(mirrors, lambda passing: passing._replace(outside=outside)) as front:
            mine = b"te: x\r\nx-mine: 1\r\nx-hop: 2\r\nconnection: x-hop\r\nx-forwarded-for: 10.0.0.1\r\n"
            return await front.answer(GET + mine + b"\r\n")

    answer = run(ask())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    passed = answer.partition(b"GET /")[2].lower().split(b"\r\n")
    assert sorted(passed) == [
        b"",
        b"",
        b"",
        b"",
        b"0",
        b"host: behind.example",
        b"path?a=b http/1.1",
        b"x-forwarded-for: 10.0.0.1, 127.0.0.1",
        b"x-forwarded-host: cluster.example",
        b"x-forwarded-proto: https",
        b"x-forwarded-uri: /a/proxy/path",
        b"x-mine: 1",
    ]


def test_bodies_of_known_length_and_chunked_bodies_are_complete() -> None:
    async def ask(request: bytes) -> bytes:
        async with in_front_of(mirrors) as front:
            return await front.answer(request)

    body = bytes(range(256)) * 2_000
    post = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    known = run(ask(post + b"content-length: %d\r\n\r\n%b" % (len(body), body)))
    assert known.count(bytes(range(256))) >= 1_900  # pieces of the answer that split some chunks
    chunks = run(ask(post + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"))
    assert b"transfer-encoding: chunked\r\n" in chunks
    assert b"abc" in chunks
    assert b"de" in chunks


def test_a_response_keeps_its_headers_and_its_length() -> None:
    answered = b"HTTP/1.1 203 Odd\r\ncontent-length: 2\r\nx-two: 1\r\nx-two: 2\r\nkeep-alive: 5\r\n\r\nok"

    async def ask() -> bytes:
        async with in_front_of(says(answered)) as front:
            return await front.answer(GET + b"\r\n")

    lines = run(ask()).split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1.1 203")
    assert [line for line in lines if line.startswith(b"x-two")] == [b"x-two: 1", b"x-two: 2"]
    assert b"content-length: 2" in lines
    assert not [line for line in lines if line.startswith(b"keep-alive")]
    assert lines[-1] == b"ok"


def test_a_connection_is_reused_and_a_closed_one_is_replaced() -> None:
    seen: list[int] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(0)
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            seen[-1] += 1
            writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()  # the connection ends without an answer

    async def ask() -> list[bytes]:
        async with in_front_of(behave) as front:
            return [(await front.answer(GET + b"\r\n"))[-2:] for _ in range(3)]

    assert run(ask()) == [b"ok"] * 3
    assert seen == [2, 1]


def test_a_connection_is_read_again_after_a_long_response() -> None:
    body = b"x" * 1_000_000
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    async def ask() -> list[int]:
        async with in_front_of(says(answer)) as front:
            return [len(await front.answer(GET + b"\r\n")) for _ in range(3)]

    assert min(run(ask())) > len(body)


def test_a_head_response_has_no_body() -> None:
    async def ask() -> bytes:
        async with in_front_of(says(b"HTTP/1.1 200 OK\r\ncontent-length: 700\r\n\r\n")) as front:
            return await front.answer(GET.replace(b"GET", b"HEAD") + b"\r\n")

    assert b"content-length: 700\r\n" in run(ask())


TOTAL = 30_000_000
GRANTED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n"
UPGRADE = b"GET /exec HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "request_"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % TOTAL, GET + b"\r\n", id="answer"),
        pytest.param(GRANTED, UPGRADE, id="tunnel"),
    ],
)
def test_the_upstream_is_paused_for_a_slow_reader(head: bytes, request_: bytes) -> None:
    sent, stuck = [0], asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        while sent[0] < TOTAL:
            writer.write(b"x" * 100_000)
            sent[0] += 100_000
            try:
                await asyncio.wait_for(writer.drain(), 0.3)
            except TimeoutError:
                stuck.set()
                await writer.drain()
        writer.close()

    async def ask() -> tuple[int, int]:
        async with in_front_of(behave) as front:
            reader, writer = await front.open()
            writer.write(request_)
            await reader.readuntil(b"\r\n\r\n")
            await stuck.wait()  # the buffers of the sockets and of the proxy are full
            before = sent[0]
            body = await reader.readexactly(TOTAL)
            writer.close()
            return before, len(body)

    before, received = run(ask())
    assert before < TOTAL
    assert received == TOTAL


def test_an_upstream_that_dies_during_its_response_ends_it_incomplete() -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await writer.drain()
        writer.close()

    async def ask() -> bytes:
        async with in_front_of(behave) as front:
            return await front.answer(GET + b"\r\n")

    answer = run(ask())
    assert not answer.endswith(b"0\r\n\r\n")


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def drops(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


def elsewhere(passing: ForwardedRequest) -> ForwardedRequest:
    return passing._replace(upstream=Upstream("127.0.0.1", 1))


@pytest.mark.parametrize(
    ("behaviour", "change", "failure"),
    [
        pytest.param(drops, lambda passing: passing, UpstreamClosed, id="closes without an answer"),
        pytest.param(says(b"SSH-2.0\r\n\r\n"), lambda passing: passing, UpstreamMalformed, id="is no HTTP server"),
        pytest.param(hangs, lambda passing: passing._replace(timeout=0.05), UpstreamTimeout, id="never answers"),
        pytest.param(hangs, elsewhere, UpstreamUnreachable, id="is not there"),
        pytest.param(
            says(b"HTTP/1.1 200 OK\r\nx: " + b"y" * (1 << 21)), lambda passing: passing, UpstreamMalformed, id="endless"
        ),
    ],
)
def test_an_upstream_that_fails_before_its_response_is_an_error(
    behaviour: Behaviour, change: Any, failure: type
) -> None:
    async def ask() -> tuple[bytes, list[Exception]]:
        async with in_front_of(behaviour, change) as front:
            return await front.answer(GET + b"\r\n"), front.failures

    answer, failures = run(ask())
    assert answer.endswith(failure.__name__.encode())
    assert [type(each) for each in failures] == [failure]


def test_a_disconnected_client_cancels_the_upstream_request() -> None:
    ended = asyncio.Event()

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        with suppress(ConnectionResetError):
            await reader.read()
        ended.set()

    async def ask() -> list[Exception]:
        async with in_front_of(behave) as front:
            reader, writer = await front.open()
            writer.write(GET + b"\r\n")
            await reader.readuntil(b"first")
            writer.close()
            await ended.wait()
            return front.failures

    assert [type(each) for each in run(ask())] == [Disconnected]


def test_a_redirect_is_rewritten_or_refused() -> None:
    moved = b"HTTP/1.1 302 Found\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n"

    async def ask(**changes: Any) -> bytes:
        async with in_front_of(says(moved), lambda passing: passing._replace(**changes)) as front:
            return await front.answer(GET + b"\r\n")

    assert b"location: /a/proxy/there\r\n" in run(ask(outside=ExternalAddress(prefix="/a/proxy")))
    refused = run(ask(refuses_redirects=True))
    assert refused.startswith(b"HTTP/1.1 502 ")
    assert refused.endswith(b"the backend attempted to redirect this request, which is not permitted")


def test_an_upgrade_becomes_a_tunnel_in_both_directions() -> None:
    heads: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\nhello ")
        writer.write((await reader.readexactly(10)).upper())
        await writer.drain()
        writer.close()

    async def ask() -> bytes:
        async with in_front_of(behave) as front:
            return await front.answer(UPGRADE + b"early late")

    answer = run(ask())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"upgrade: SPDY/3.1" in head
    assert body == b"hello EARLY LATE"
    assert b"upgrade: SPDY/3.1" in heads[0]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno", b"no"),
        (OK, UpstreamRefused.__name__.encode()),
    ],
)
def test_a_refused_upgrade_is_answered(answer: bytes, said: bytes) -> None:
    async def ask() -> bytes:
        async with in_front_of(says(answer)) as front:
            return await front.answer(UPGRADE)

    assert run(ask()).endswith(said)
