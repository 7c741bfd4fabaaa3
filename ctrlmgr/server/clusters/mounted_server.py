"""Runs the application of a cluster on the event loop of another server, which receives the requests.

Guarantees:
- The server answers requests only while it is open. It opens after its application has started, and closes before its
  application stops.
- When the server stops, watches end first. Then running requests have `GRACE` seconds to complete.
- Housekeeping functions are called about once a second, as `HttpServer` calls them. An error of one is logged, and the
  others are called.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http_server import GRACE, Application

log = structlog.get_logger(__name__)

_HOUSEKEEPING = 1.0
"""Seconds between calls of the housekeeping functions."""


class SharedLoop:
    """The event loop of the outer server, on which mounted servers run; None while the outer server does not run."""

    def __init__(self) -> None:
        """Create an instance without an event loop."""
        self.running: asyncio.AbstractEventLoop | None = None


class MountedServer:
    """A `Runnable` that serves `app` for requests that the outer server passes on."""

    name = "http server"

    def __init__(
        self,
        app: Application,
        outside: str,
        port: int,
        shared: SharedLoop,
        *,
        clock: Clock,
        housekeeping: Sequence[Callable[[], object]] = (),
    ) -> None:
        """Create a server that runs on the loop `shared`; `outside` is its URL with its path, `port` the outer port."""
        self.url = outside
        """The URL with the path under which clients reach this server."""
        self.port = port
        """The port of the outer server."""
        self.opened = threading.Event()
        """Is set when the server has opened, and stays set."""
        self.is_open = False
        """Whether requests are answered; set and read on the event loop's thread."""
        self.last_used = clock.monotonic()
        """The time at which the newest request began or ended."""
        self._app = app
        self._shared = shared
        self._clock = clock
        self._housekeeping = housekeeping
        self._running = 0
        self._leaving: asyncio.Event | None = None
        self._idle: asyncio.Event | None = None

    @property
    def requests(self) -> int:
        """The number of requests that are being answered, including watches."""
        return self._running

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request; called on the event loop while the server is open."""
        self._running += 1
        self.last_used = self._clock.monotonic()
        try:
            await self._app(exchange)
        finally:
            self._running -= 1
            self.last_used = self._clock.monotonic()
            if not self._running and self._idle is not None:
                self._idle.set()

    def run(self, stop: threading.Event) -> None:
        """Serve until stopped; raises the error of the application, and `CtrlmgrError` if no outer server runs."""
        loop = self._shared.running
        if loop is None:
            raise CtrlmgrError("the server that serves the clusters is not running")
        serving = asyncio.run_coroutine_threadsafe(self._serve(), loop)
        serving.add_done_callback(lambda _: stop.set())
        stop.wait()
        with suppress(RuntimeError):  # the loop is closed, so the application has ended
            loop.call_soon_threadsafe(self._leave)
        serving.result()

    def close(self) -> None:
        """Do nothing, because this server has no address."""

    def _leave(self) -> None:
        if self._leaving is not None:
            self._leaving.set()

    async def _serve(self) -> None:
        self._leaving, self._idle = asyncio.Event(), asyncio.Event()
        async with self._app.running():
            self.is_open = True
            self.opened.set()
            try:
                await self._until_leaving(self._leaving)
            finally:
                self.is_open = False
            await self._app.drain()
            await self._finish(self._idle)

    async def _until_leaving(self, leaving: asyncio.Event) -> None:
        while not leaving.is_set():
            for each in self._housekeeping:
                try:
                    each()
                except CtrlmgrError as error:
                    log.error("housekeeping failed", server=self.url, error=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), _HOUSEKEEPING)

    async def _finish(self, idle: asyncio.Event) -> None:
        """Wait until no request is being answered, for at most `GRACE` seconds."""
        idle.clear()
        if self._running:
            try:
                await asyncio.wait_for(idle.wait(), GRACE)
            except TimeoutError:
                log.warning("stopping with running requests", server=self.url, requests=self._running)
