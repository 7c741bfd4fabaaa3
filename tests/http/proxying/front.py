"""A proxy in front of a server that a test provides; both use real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import Header
from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.proxying.reverse_proxy import ForwardedRequest, pass_on
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.http.response_stream import Disconnected, Stream
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.http.tunnel import Side

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class PlainRequest:
    """A request in the form in which the proxy gets it, without the parts that belong to Kubernetes."""

    def __init__(self, exchange: Exchange) -> None:
        self.method = exchange.method
        self.peer, self.length, self.may_have_body = exchange.peer, exchange.length, exchange.may_have_body
        self._exchange = exchange

    @property
    def may_switch(self) -> bool:
        return self._exchange.switching is not None

    @property
    def is_disconnected(self) -> bool:
        return self._exchange.is_disconnected

    async def piece(self) -> bytes:
        return await self._exchange.piece(5)

    def on_lost(self, call: Callable[[], object] | None) -> None:
        self._exchange.on_lost(call)

    async def begin_stream(self, code: int, headers: Sequence[Header]) -> Stream:
        return self._exchange.begin(code, headers)

    def switch(self, headers: Sequence[Header]) -> Side:
        return self._exchange.switch(headers)


class Front:
    """The proxy's port, and the results of the requests that it forwarded."""

    def __init__(self, port: int, pool: UpstreamPool, failures: list[Exception]) -> None:
        self.port = port
        self.pool = pool
        self.failures = failures

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def answer(self, request: bytes) -> bytes:
        """Send one request with `Connection: close`, and return all received bytes."""
        reader, writer = await self.open()
        writer.write(request)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b"reset"
        finally:
            writer.close()


@asynccontextmanager
async def in_front_of(
    behaviour: Behaviour, change: Callable[[ForwardedRequest], ForwardedRequest] = lambda passing: passing
) -> AsyncIterator[Front]:
    """Run a server with this behaviour, and a proxy that forwards to it."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await behaviour(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    upstream = Upstream("127.0.0.1", server.sockets[0].getsockname()[1])
    pool = UpstreamPool()
    failures: list[Exception] = []

    async def handle(exchange: Exchange) -> None:
        path, query = exchange.path.decode(), exchange.query.decode()
        passing = ForwardedRequest(upstream, "behind.example", path, query, tuple(exchange.headers))
        try:
            await pass_on(pool, change(passing), PlainRequest(exchange))
        except (UpstreamFailed, Disconnected) as error:
            failures.append(error)
            if not exchange.is_begun:
                exchange.answer(503, [], type(error).__name__.encode())

    loop = asyncio.get_running_loop()
    context = ServerContext(handle, DEFAULT, loop, SystemClock())
    front = await loop.create_server(lambda: Connection(context), "127.0.0.1", 0)
    try:
        yield Front(front.sockets[0].getsockname()[1], pool, failures)
    finally:
        front.close()
        for connection in list(context.connections):
            connection.abort()
        pool.close()
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        if context.tasks:
            await asyncio.wait(context.tasks, timeout=5)
