"""Tests of calls to webhooks that hang, redirect, send endlessly, close the connection, or have a wrong certificate."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.calls.call import Call, Credentials, Reply, Tries
from ctrlmgr.server.connections import MAX_ANSWER
from ctrlmgr.server.outbound_calls import Caller
from ctrlmgr.tracing import spans
from tests.tracing.memory_tracer import MemoryTracer

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def certified(folder: Path, *, days: int = 1, host: str = "127.0.0.1") -> tuple[ssl.SSLContext, bytes]:
    """Return a self-signed server certificate that is valid for this number of days, and the same
    certificate as PEM.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hook")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=10))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "hook.pem").write_bytes(pem + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "hook.pem")
    return context, pem


async def request(reader: asyncio.StreamReader) -> bytes:
    """Read one request and return the request's header."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    length = int(lengths[0].partition(b":")[2])
    await reader.readexactly(length)
    return head


async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head = await request(reader)
        if b" /moved" in head:
            writer.write(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /here\r\ncontent-length: 0\r\n\r\n")
        elif b" /round" in head:
            writer.write(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /round\r\ncontent-length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)


async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (100 << 20))
    for _ in range(100):
        writer.write(b" " * (1 << 20))
        await writer.drain()


async def babbles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)
    writer.write(b"it is a nice day\r\n\r\n")
    await writer.drain()


def called(
    folder: Path,
    answer: Answer,
    *,
    path: str = "/",
    times: int = 1,
    timeout: float = 5.0,
    days: int = 1,
    host: str = "127.0.0.1",
    shows: bool | None = None,
    **more: Any,
) -> tuple[list[Reply], int]:
    """Call a server with this behaviour several times at once; return the replies and the number of connections.

    If `shows` is not None, the server requests a client certificate, and `shows` is whether the call must send one.
    `more` contains further arguments of the call.
    """
    context, pem = certified(folder, days=days, host=host)
    if shows is not None:
        context.load_verify_locations(cadata=pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    if shows:
        more["credentials"] = Credentials({"authorization": "Bearer t"}, (folder / "hook.pem").read_bytes())
    connections = 0
    handlers: list[asyncio.Task[None] | None] = []

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        handlers.append(asyncio.current_task())
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the caller does not wait any longer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def run() -> list[Reply]:
        server = await asyncio.start_server(met, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        caller = Caller(SystemClock())
        call = Call(f"https://127.0.0.1:{port}{path}", b"{}", timeout, pem)._replace(**more)
        try:
            found = [reply for _ in range(times) for reply in await caller.call([call])]
        finally:
            await caller.close()
            server.close()
            await asyncio.gather(*(each for each in handlers if each is not None), return_exceptions=True)
        return found

    return asyncio.run(run()), connections


def test_a_connection_is_reused(tmp_path: Path) -> None:
    replies, connections = called(tmp_path, answers, times=3)
    assert [(each.code, each.body, each.problem) for each in replies] == [(200, b"{}", "")] * 3
    assert connections == 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(hangs, "context deadline exceeded", id="hangs"),
        pytest.param(closes, "EOF", id="closes"),
        pytest.param(talks, f"http: response body of more than {MAX_ANSWER} bytes", id="100 MB"),
        pytest.param(babbles, "malformed HTTP", id="speaks something else"),
    ],
)
def test_a_failure_is_reported_within_the_timeout(tmp_path: Path, answer: Answer, problem: str) -> None:
    (reply,), _ = called(tmp_path, answer, timeout=1.0 if answer is hangs else 5.0)
    assert reply.problem.startswith(problem)
    assert reply.seconds < 5.0


def test_a_redirect_is_followed_but_not_in_a_circle(tmp_path: Path) -> None:
    (reply,), _ = called(tmp_path, answers, path="/moved")
    assert (reply.code, reply.body) == (200, b"{}")
    (reply,), _ = called(tmp_path, answers, path="/round")
    assert reply.problem == "stopped after 10 redirects"


def test_an_expired_or_foreign_certificate_is_refused(tmp_path: Path) -> None:
    (over,), _ = called(tmp_path, answers, days=-1)
    assert over.problem == "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    (other,), _ = called(tmp_path, answers, host="192.0.2.1")
    assert other.problem.startswith("tls: failed to verify certificate: x509: ")


def test_a_refused_connection_is_reported(tmp_path: Path) -> None:
    async def run() -> Reply:
        caller = Caller(SystemClock())
        (reply,) = await caller.call([Call("https://127.0.0.1:1/", b"{}", 2.0)])
        await caller.close()
        return reply

    assert asyncio.run(run()).problem == "dial tcp 127.0.0.1:1: connect: connection refused"


def test_a_call_contains_the_user(tmp_path: Path) -> None:
    heads = []

    async def remembers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await request(reader)).lower())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()

    (reply,), _ = called(tmp_path, remembers, shows=False)
    assert reply.problem
    (reply,), _ = called(tmp_path, remembers, shows=True)
    assert reply.code == 200
    assert b"authorization: bearer t" in heads[-1]


def test_a_call_passes_on_the_trace_and_is_a_span(tmp_path: Path) -> None:
    heads: list[bytes] = []

    async def hears(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await request(reader)).lower())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
        await writer.drain()

    tracer = MemoryTracer()
    with spans.installed(tracer):
        called(tmp_path, hears)
    (span,) = tracer.spans
    assert b"\r\ntraceparent: %b\r\n" % span.context.encode() in heads[0]
    assert (span.attributes["method"], span.attributes["code"], span.error) == ("POST", 200, "")
    called(tmp_path, hears)
    assert b"traceparent" not in heads[1]


def test_the_expected_name_of_a_certificate_can_be_changed_or_disabled(tmp_path: Path) -> None:
    (reply,), _ = called(tmp_path, answers, server_name="hook.invalid")
    assert reply.problem.startswith("tls: failed to verify certificate: x509: ")
    (reply,), _ = called(tmp_path, answers, host="192.0.2.1", is_checked=False)
    assert reply.code == 200


def test_a_temporarily_failing_server_is_retried(tmp_path: Path) -> None:
    codes = iter((500, 429, 200, 503))

    async def answers_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await request(reader)
            writer.write(b"HTTP/1.1 %d Some\r\ncontent-length: 0\r\n\r\n" % next(codes))
            await writer.drain()

    tries = Tries(5, 0.001, 1.5)
    replies, _ = called(tmp_path, answers_later, times=2, tries=tries)
    assert [each.code for each in replies] == [200, 503]  # a 503 is a valid answer


@pytest.mark.parametrize(
    ("answer", "codes", "times"),
    [
        pytest.param(b"503 Busy\r\nretry-after: 0", [200], 3, id="comes again when it is told to"),
        pytest.param(b"429 Busy\r\nretry-after: 0", [200], 3, id="also if there are too many"),
        pytest.param(b"429 Busy\r\nretry-after: soon", [429], 1, id="to a time that is none"),
        pytest.param(b"400 Bad\r\nretry-after: 0", [400], 1, id="to an answer that stands"),
    ],
)
def test_a_server_that_sends_retry_after_is_retried(
    tmp_path: Path, answer: bytes, codes: list[int], times: int
) -> None:
    asked = 0

    async def answers_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while True:
            await request(reader)
            asked += 1
            said = answer if asked < 3 else b"200 OK"
            writer.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % said)
            await writer.drain()

    replies, _ = called(tmp_path, answers_later)
    assert ([each.code for each in replies], asked) == (codes, times)


def test_retries_are_limited(tmp_path: Path) -> None:
    asked = 0

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while True:
            await request(reader)
            asked += 1
            wait = b"0" if asked < 12 else b"30"
            writer.write(b"HTTP/1.1 503 Busy\r\nretry-after: %s\r\ncontent-length: 0\r\n\r\n" % wait)
            await writer.drain()

    (reply,), _ = called(tmp_path, never)
    assert (reply.code, asked) == (503, 11)
    (reply,), _ = called(tmp_path, never, timeout=0.5)
    assert (reply.problem, asked) == ("context deadline exceeded", 12)
