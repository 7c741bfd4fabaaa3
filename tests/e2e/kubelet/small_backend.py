"""A small HTTP server that runs in a pod: it mirrors requests, and responds in the ways in which servers behind a proxy
respond.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http_server import HttpServer
from ctrlmgr.http.tunnel import Side
from tests.e2e.serving import DEADLINE

PAGE = b'<html><a href="/other?a=1">absolute</a><a href="near">relative</a></html>'


def own_address() -> str:
    """Return an address of this machine that is not a loopback address; skip the test if there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


class SmallBackend:
    """A server with a few pages; for every other path, the response describes the request as JSON."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """Listen on all addresses."""
        self._server = HttpServer(self, ("0.0.0.0", 0), clock=SystemClock(), tls=tls)
        self._stop = threading.Event()
        self.port = self._server.port
        self.hanging = 0
        """The number of requests to `/hang` whose connections are still open."""

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Serve while the block runs."""
        thread = threads.start("small backend", lambda: self._server.run(self._stop))
        try:
            yield
        finally:
            self._stop.set()
            thread.join(DEADLINE)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do nothing between requests."""
        yield

    async def drain(self) -> None:
        """Do nothing."""

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        html = (b"content-type", b"text/html")
        match exchange.path:
            case b"/page":
                exchange.answer(200, [html, (b"access-control-allow-origin", b"*")], PAGE)
            case b"/packed":
                exchange.answer(200, [html, (b"content-encoding", b"gzip")], gzip.compress(PAGE))
            case b"/moved":
                exchange.answer(302, [(b"location", b"/target/")], b"")
            case b"/large":
                exchange.answer(200, [], b"x" * 5_000_000)
            case b"/hang":
                await self._hang(exchange)
            case b"/echo":
                Echo(exchange.switch([(b"upgrade", b"echo"), (b"connection", b"upgrade")]))
            case _:
                await self._mirror(exchange)

    async def _hang(self, exchange: Exchange) -> None:
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        exchange.on_lost(lambda: lost.set_result(None))
        self.hanging += 1
        try:
            await lost
        finally:
            self.hanging -= 1

    async def _mirror(self, exchange: Exchange) -> None:
        body = await exchange.body(10_000_000, DEADLINE)
        seen = {
            "method": exchange.method,
            "path": exchange.path.decode(),
            "query": exchange.query.decode(),
            "headers": {name.decode(): value.decode() for name, value in exchange.headers},
            "size": len(body),
        }
        exchange.answer(201, [(b"content-type", b"application/json")], json.dumps(seen).encode())


class Echo:
    """A WebSocket server that sends back the messages it receives."""

    def __init__(self, side: Side) -> None:
        self._side = side
        side.attach(self)

    def receive(self, data: bytes) -> None:
        self._side.write(data)

    def resume(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        self._side.finish()
