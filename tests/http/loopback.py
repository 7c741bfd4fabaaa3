"""A connection without a socket, on an event loop with virtual time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any

from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.http.base_connection import BaseConnection
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import chunk
from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.response_stream import Disconnected
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import DEFAULT, Bounds

PRESENTED = [b"jane's", b"her authority's"]
CERTIFICATE = {"subject": ((("commonName", "jane"),),)}


class Timer:
    def __init__(self, when: float, call: Callable[..., object], *given: object) -> None:
        self.when, self.call, self.given = when, call, given
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """An event loop that runs tasks, and runs timers when the test advances the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.ready: list[Coroutine[Any, Any, None]] = []
        self.waiting: list[Coroutine[Any, Any, None]] = []
        self.soon: list[Callable[[], object]] = []

    def call_later(self, delay: float, call: Callable[..., object], *given: object) -> Timer:
        self.timers.append(Timer(self.now + delay, call, *given))
        return self.timers[-1]

    def call_soon(self, call: Callable[..., object], *given: object) -> None:
        self.soon.append(lambda: call(*given))

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]  # as much of one as is needed

    def create_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        self.ready.append(work)
        done: asyncio.Future[None] = asyncio.Future(loop=self)  # type: ignore[arg-type]  # as much of one as is needed
        return done

    def run(self) -> None:
        """Run every ready task until the task waits or ends."""
        while self.ready or self.soon:
            if self.soon:
                self.soon.pop(0)()
                continue
            work = self.ready.pop(0)
            try:
                work.send(None)
            except StopIteration:
                continue
            self.waiting.append(work)

    def go_on(self) -> None:
        """Resume the tasks that wait for `go_on`."""
        self.ready, self.waiting = self.waiting, []
        self.run()

    def get_debug(self) -> bool:
        return False

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.when <= end and not timer.cancelled]:
            timer = min(due, key=lambda each: each.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when)
            timer.call(*timer.given)
        self.now = end

    def time(self) -> float:
        return self.now


class PresentedCertificate:
    """The part of `ssl.SSLObject` that returns the client's certificate to the server."""

    def getpeercert(self, binary_form: bool) -> bytes:
        assert binary_form
        return PRESENTED[0]

    def get_unverified_chain(self) -> list[bytes]:
        return PRESENTED


class Transport(asyncio.Transport):
    """A transport that records the written bytes and the end of the connection."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        super().__init__()
        self.certificate = certificate
        self.takes_in = True
        self.written = b""
        self.writes = 0
        self.unread = 0
        self.limit: int | None = None
        self.closed = self.aborted = False

    def get_extra_info(self, name: str, default: object = None) -> Any:
        return {"peercert": self.certificate, "ssl_object": PresentedCertificate()}.get(name, default)

    def write(self, data: Any) -> None:
        assert not self.is_closing(), "uvloop says that on the standard error output"
        self.written += bytes(data)
        self.writes += 1

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def pause_reading(self) -> None:
        self.takes_in = False

    def resume_reading(self) -> None:
        self.takes_in = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limit = high

    def get_write_buffer_size(self) -> int:
        return self.unread


@coroutine
def a_while() -> Generator[None]:
    yield


class Client:
    """The client side of a connection, and an application that by default responds without reading the request body.

    The application responds to other requests at once. For `/slow`, the application waits for `loop.go_on()` before it
    begins the response, and again before it ends the response. For `/read`, the application reads the request body and
    sends it back.
    """

    def __init__(
        self,
        bounds: Bounds = DEFAULT,
        clock: Clock | None = None,
        certificate: dict[str, Any] | None = None,
        protocol: type[BaseConnection] = Connection,
    ) -> None:
        self.loop, self.transport = Loop(), Transport(certificate or CERTIFICATE)
        self.exchanges: list[Exchange] = []
        loop: asyncio.AbstractEventLoop = self.loop  # type: ignore[assignment]  # as much of one as is needed
        self.context = ServerContext(self._answer, bounds, loop, clock or SystemClock())
        self.context.date = (b"date", b"now")
        self.connection = protocol(self.context)
        self.connection.connection_made(self.transport)

    async def _answer(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        body = exchange.path
        if body == b"/slow":
            await a_while()
            try:
                stream = exchange.begin(200, [(b"content-length", b"%d" % len(body))])
            except Disconnected:
                return
            await a_while()
            stream.send(body)
            stream.end()
        elif body == b"/fails":
            raise ValueError("the application fails")
        elif body == b"/silent":
            return
        elif body == b"/chunks":
            stream = exchange.begin(200, [])
            stream.write(chunk(b"one") + chunk(b"two"))
            stream.send(b"three")
            stream.end()
        else:
            exchange.answer(200, [], body)

    @property
    def paths(self) -> list[bytes]:
        """The requests that the application received."""
        return [exchange.path for exchange in self.exchanges]

    def send(self, data: bytes, piece: int = 65_536) -> None:
        for at in range(0, len(data), piece):
            self.connection.receive(data[at : at + piece])
            self.loop.run()

    @property
    def said(self) -> list[bytes]:
        """The status lines of the received responses."""
        return re.findall(rb"HTTP/1\.1 [^\r]*", self.transport.written)
