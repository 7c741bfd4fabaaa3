"""Tests of tunnels over real sockets with TLS: no data is lost if a peer closes while reading is paused, and memory is
bounded.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from threading import Thread

import pytest
import uvloop

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed
from ctrlmgr.http.proxying.upstream_connection import ResponseHead, UpstreamConnection
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.http.tls_context import ServingContext, TlsOptions
from ctrlmgr.http.tunnel import Receiver, Side, Tunnel


async def dial(port: int, context: ssl.SSLContext | None) -> UpstreamConnection:
    """Connect to a server that runs in the test."""
    connecting = UpstreamPool().connected(Upstream("127.0.0.1", port, context))
    return await asyncio.get_running_loop().create_task(connecting)


async def upgraded(connection: UpstreamConnection) -> ResponseHead:
    """Send a request to switch the protocol."""
    connection.begin("GET", UPGRADE)
    return await connection.head()


UPGRADE = b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: raw\r\n\r\n"
SIZE = 20_000_000


def data(number: int) -> bytes:
    """Return bytes that look random, so that a test detects lost or reordered parts."""
    return hashlib.shake_256(b"%d" % number).digest(SIZE)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS contexts of a server and of the server's clients."""
    files = ensure_certificates(tmp_path_factory.mktemp("pki"), ["127.0.0.1"], clock=SystemClock())
    return ServingContext(files, TlsOptions(http2=False)).context, ssl.create_default_context(
        cafile=str(files.authority)
    )


Handler = Callable[[Exchange], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None) -> AsyncIterator[tuple[int, ServerContext]]:
    """Run a server whose connections are handled by `handler`, and yield the server's port."""
    loop = asyncio.get_running_loop()
    shared = ServerContext(handler, DEFAULT, loop, SystemClock())
    shared.date = (b"date", b"now")
    server = await loop.create_server(lambda: Connection(shared), "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1], shared
    finally:
        server.close()
        for connection in list(shared.connections):
            connection.abort()


class SlowReader:
    """A peer that reads slowly: after each piece, it pauses for some steps of the event loop."""

    def __init__(self, side: Side, pause: float = 0.0) -> None:
        self.size = 0
        self.hash = hashlib.sha256()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._side = side
        self._pause = pause

    def receive(self, piece: bytes) -> None:
        self.size += len(piece)
        self.hash.update(piece)
        self._side.pause_reading()
        asyncio.get_running_loop().call_later(self._pause, self._side.resume_reading)

    def resume(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        self.over.set_result(None)


class FastWriter(Receiver):
    """A peer that writes all data as fast as the other peer allows, and then closes the connection."""

    def __init__(self, side: Side, whole: bytes) -> None:
        self._side, self._whole, self._at = side, whole, 0
        self.most = 0

    def start(self) -> None:
        while not self._side.is_paused and self._at < len(self._whole):
            self._side.write(self._whole[self._at : self._at + 65536])
            self._at += 65536
        if self._at >= len(self._whole):
            self._at = 1 << 40
            self._side.finish()

    def receive(self, data: bytes) -> None:
        """Ignore input."""

    def resume(self) -> None:
        self.start()

    def end(self) -> None:
        """Do nothing."""


def test_the_tail_arrives_though_the_peer_closes_while_reading_is_paused(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def one(number: int, context: ssl.SSLContext | None, trust: ssl.SSLContext | None) -> None:
        whole = data(number)

        async def origin(exchange: Exchange) -> None:
            side = exchange.switch([(b"upgrade", b"raw"), (b"connection", b"upgrade")])
            writer = FastWriter(side, whole)
            side.attach(writer)
            writer.start()

        async def middle(exchange: Exchange) -> None:
            upstream = await dial(port, trust)
            answer = await upgraded(upstream)
            await Tunnel(exchange.switch(answer.headers), upstream).run()

        async with serving(origin, context) as (port, _), serving(middle, context) as (front, _):
            client = await dial(front, trust)
            assert (await upgraded(client)).code == 101
            reader = SlowReader(client, 0.001)
            client.attach(reader)
            await reader.over
            assert (reader.size, reader.hash.digest()) == (SIZE, hashlib.sha256(whole).digest())

    uvloop.run(one(1, None, None))
    for number in range(3):
        uvloop.run(one(number, *tls))


def test_bytes_that_arrived_before_the_end_are_delivered_after_a_pause(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """Programs in Go close a socket directly after the last bytes, without waiting for the other
    side's close_notify.
    """
    whole = data(9)[:100_000]

    async def one(port: int, serving: Thread) -> None:
        client = await dial(port, tls[1])
        assert (await upgraded(client)).code == 101
        reader = SlowReader(client)
        client.attach(reader)
        client.pause_reading()
        client.write(b"now")
        await asyncio.to_thread(serving.join, 10)
        await asyncio.sleep(0.1)
        client.resume_reading()
        await reader.over
        assert reader.size == len(whole)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with tls[0].wrap_socket(listening.accept()[0], server_side=True) as connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nconnection: upgrade\r\n\r\n")
                connection.recv(4096)
                connection.sendall(whole)

        thread = threads.start("origin", serve)
        uvloop.run(one(listening.getsockname()[1], thread))


def test_a_record_that_arrives_in_parts_is_delivered_whole_before_the_end(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    """The TLS transport requests a buffer that is only as large as the second part, and decodes the whole record into
    this buffer.
    """
    whole = data(8)[:16_000]

    async def one(port: int, serving: Thread) -> None:
        client = await dial(port, tls[1])
        assert (await upgraded(client)).code == 101
        reader = SlowReader(client, 0.2)
        client.attach(reader)
        client.write(b"now")
        await asyncio.to_thread(serving.join, 10)
        await reader.over
        assert reader.size == len(whole)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = tls[0].wrap_bio(incoming, outgoing, server_side=True)
            with listening.accept()[0] as raw:

                def until_done(work: Callable[[], object]) -> None:
                    while True:
                        try:
                            work()
                        except ssl.SSLWantReadError:
                            raw.sendall(outgoing.read())
                            incoming.write(raw.recv(4096))
                        else:
                            raw.sendall(outgoing.read())
                            return

                until_done(session.do_handshake)
                until_done(lambda: session.read(4096))
                session.write(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nconnection: upgrade\r\n\r\n")
                raw.sendall(outgoing.read())
                until_done(lambda: session.read(4096))
                session.write(whole)
                record = outgoing.read()
                raw.sendall(record[:8000])
                time.sleep(0.1)
                raw.sendall(record[8000:])

        thread = threads.start("origin", serve)
        uvloop.run(one(listening.getsockname()[1], thread))


def test_uploads_arrive_completely(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def one(whole: bytes) -> None:
        found: asyncio.Future[SlowReader] = asyncio.get_running_loop().create_future()

        async def origin(exchange: Exchange) -> None:
            side = exchange.switch([(b"upgrade", b"raw"), (b"connection", b"upgrade")])
            reader = SlowReader(side, 0.001)
            found.set_result(reader)
            side.attach(reader)

        async def middle(exchange: Exchange) -> None:
            upstream = await dial(port, tls[1])
            answer = await upgraded(upstream)
            await Tunnel(exchange.switch(answer.headers), upstream).run()

        async with serving(origin, tls[0]) as (port, _), serving(middle, tls[0]) as (front, _):
            client = await dial(front, tls[1])
            await upgraded(client)
            writer = FastWriter(client, whole)
            client.attach(writer)
            writer.start()
            reader = await found
            await reader.over
            assert (reader.size, reader.hash.digest()) == (SIZE, hashlib.sha256(whole).digest())

    uvloop.run(one(data(7)))


def test_the_buffer_for_a_slow_side_is_bounded(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def one() -> None:
        writers: list[FastWriter] = []
        sent = bytearray(SIZE)

        async def origin(exchange: Exchange) -> None:
            side = exchange.switch([(b"upgrade", b"raw"), (b"connection", b"upgrade")])
            writers.append(FastWriter(side, bytes(sent)))
            side.attach(writers[0])
            writers[0].start()

        async def middle(exchange: Exchange) -> None:
            upstream = await dial(port, tls[1])
            answer = await upgraded(upstream)
            await Tunnel(exchange.switch(answer.headers), upstream).run()

        async with serving(origin, tls[0]) as (port, _), serving(middle, tls[0]) as (front, context):
            client = await dial(front, tls[1])
            await upgraded(client)
            client.pause_reading()
            before = -1
            while writers[0]._at != before:
                before = writers[0]._at
                await asyncio.sleep(0.2)
            held = sum(each._transport.get_write_buffer_size() for each in context.connections)  # type: ignore[attr-defined]  # all are Transported
            assert before < SIZE
            assert held < 1_000_000
            client.abort()

    uvloop.run(one())


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", None),
        (b"nonsense\r\n\r\n", None),
        (b"", None),
    ],
)
def test_a_response_is_complete_or_an_error(answer: bytes, body: bytes | None) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def ask(upstream: UpstreamConnection) -> bytes | None:
        whole = bytearray()
        try:
            upstream.begin("GET", b"GET / HTTP/1.1\r\n\r\n")
            await upstream.head()
            while piece := await upstream.piece():
                whole += piece
        except UpstreamFailed:
            return None
        return bytes(whole)

    async def run() -> None:
        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        async with server:
            assert await ask(await dial(server.sockets[0].getsockname()[1], None)) == body

    uvloop.run(run())
