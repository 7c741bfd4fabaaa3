"""Tests with a real server, real handshakes and third-party clients: protocol negotiation, and reading of bodies."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest
from h2.events import InformationalResponseReceived, StreamReset

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http2.frames import Code
from ctrlmgr.http.http_server import HttpServer
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.http.tls_context import ServingContext, TlsOptions
from tests.http.http2.caller import TIMEOUT, Caller

LONG = b"0123456789abcdef" * 50_000
LIMIT = 2_000_000


class Echo:
    """An application that responds with the body of the request: at `/early`, before the body arrives; at `/pieces`, in
    pieces.
    """

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.headers: list[list[tuple[bytes, bytes]]] = []

    async def __call__(self, exchange: Exchange) -> None:
        self.versions.append(exchange.version)
        self.headers.append(list(exchange.headers))
        if exchange.path == b"/early":
            exchange.answer(413, [], b"too much")
            return
        body = await exchange.body(LIMIT, TIMEOUT)
        if exchange.path == b"/pieces":
            stream = exchange.begin(200, [(b"content-length", b"%d" % len(body))])
            await stream.send_all((body[at : at + 60_000] for at in range(0, len(body), 60_000)), TIMEOUT)
            stream.end()
        else:
            exchange.answer(200, [], body)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    async def drain(self) -> None:
        """Do nothing, because this application sends no long responses."""


class TlsServer:
    """A server with an `Echo` application, over TLS."""

    def __init__(self, directory: Path, *, http2: bool = True) -> None:
        files = ensure_certificates(directory / "pki", ["localhost", "127.0.0.1"], clock=SystemClock())
        self.app = Echo()
        self.authority = files.authority
        context = ServingContext(files, TlsOptions(http2=http2)).context
        self._server = HttpServer(self.app, ("127.0.0.1", 0), clock=SystemClock(), tls=context)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._server.run, args=(self._stop,))

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def port(self) -> int:
        return self._server.port

    def context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[TlsServer]:
    with TlsServer(tmp_path) as served:
        yield served


@pytest.fixture
def caller(served: TlsServer) -> Iterator[Caller]:
    caller = Caller(("localhost", served.port), served.context())
    yield caller
    caller.close()


@pytest.mark.parametrize(
    ("protocols", "offered", "version"),
    [
        (("h2", "http/1.1"), True, "2"),
        (("http/1.1",), True, "1.1"),
        ((), True, "1.1"),
        (("h2", "http/1.1"), False, "1.1"),
    ],
)
def test_the_negotiated_protocol_is_used(
    tmp_path: Path, protocols: tuple[str, ...], offered: bool, version: str
) -> None:
    with TlsServer(tmp_path, http2=offered) as served:
        raw = socket.create_connection(("127.0.0.1", served.port), timeout=TIMEOUT)
        with served.context(*protocols).wrap_socket(raw, server_hostname="localhost") as connection:
            assert connection.selected_alpn_protocol() == (
                {"2": "h2", "1.1": "http/1.1"}[version] if protocols else None
            )
        with httpx.Client(verify=served.context(), http2="h2" in protocols, timeout=TIMEOUT) as client:
            answer = client.post(served.url, content=b"body")
    assert (answer.http_version, answer.content) == (f"HTTP/{version}", b"body")
    assert served.app.versions == [version]


@pytest.mark.parametrize("path", ["/whole", "/pieces"])
def test_a_long_body_has_a_long_response(served: TlsServer, path: str) -> None:
    with httpx.Client(verify=served.context(), http2=True, timeout=TIMEOUT) as client:
        answer = client.post(served.url + path, content=LONG)
    assert (answer.http_version, answer.content) == ("HTTP/2", LONG)


def test_many_bodies_are_sent_concurrently(caller: Caller) -> None:
    streams = [caller.ask("/pieces") for _ in range(20)]
    for number, stream in enumerate(streams):
        caller.upload(stream, b"%d" % number * 30_000)
    for stream in streams:
        caller.h2.end_stream(stream)
    for number, stream in enumerate(streams):
        assert caller.answer(stream) == b"%d" % number * 30_000


def test_a_body_can_end_with_trailers(served: TlsServer, caller: Caller) -> None:
    stream = caller.ask("/whole")
    caller.upload(stream, b"body")
    caller.h2.send_headers(stream, [("x-trailer", "dropped")], end_stream=True)
    assert caller.answer(stream) == b"body"
    assert served.app.headers == [[(b"host", b"localhost")]]


def test_a_waiting_client_gets_100_continue_when_its_body_is_read(caller: Caller) -> None:
    waits = ("expect", "100-continue")
    early, stream = caller.ask("/early", waits), caller.ask("/whole", waits)
    assert caller.answer(early) == b"too much"
    while not any(isinstance(event, InformationalResponseReceived) for event in caller.events):
        caller.receive()
    told = [event.stream_id for event in caller.events if isinstance(event, InformationalResponseReceived)]
    assert told == [stream]
    caller.h2.send_data(stream, b"body", end_stream=True)
    assert caller.answer(stream) == b"body"


def test_an_unread_body_gets_a_response_during_the_upload(caller: Caller) -> None:
    early = caller.ask("/early")
    caller.upload(early, b"a" * 60_000)
    assert caller.answer(early) == b"too much"
    caller.upload(early, b"a" * 5_000)
    while not any(isinstance(event, StreamReset) for event in caller.events):
        caller.receive()
    (reset,) = [event for event in caller.events if isinstance(event, StreamReset)]
    assert (reset.stream_id, reset.error_code) == (early, Code.NO_ERROR)
    stream = caller.ask("/whole")
    caller.upload(stream, b"next")
    caller.h2.end_stream(stream)
    assert caller.answer(stream) == b"next"
