"""The HTTP server, which runs one event loop and blocks until it is stopped.

Guarantees:
- The constructor binds the address, so that a port in use raises an error before anything else has started.
- When the server stops, it performs the steps of kube-apiserver in the same order. For `delay` seconds, it serves
  requests as before while `/readyz` fails. After this delay, the server refuses new connections, watches end, and
  running requests have `GRACE` seconds to complete. If the setting "listens until drained" is on, the server refuses
  new connections only after the application has ended its long-running requests.
- No request is lost when the server stops. For `FAREWELL` more seconds, the server answers requests on existing
  connections, and the response says that the connection will close. If a client has sent nothing for `FAREWELL` seconds
  after its last response, the server closes the connection.
- Long turns (iterations) of the event loop are logged and measured (`loop_monitor.TurnWatch`).
- TCP keepalive detects disconnected peers within a minute.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from email.utils import formatdate
from typing import Protocol

import structlog
import uvloop

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.alpn import AlpnProtocol
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http1_connection import Connection
from ctrlmgr.http.loop_monitor import TurnWatch
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import DEFAULT, Bounds

log = structlog.get_logger(__name__)

GRACE = 20.0
"""Seconds that running requests have to finish when the server stops."""

FAREWELL = 0.5
"""Seconds for which requests on existing connections are answered after new connections are refused."""

_BACKLOG = 2048
_TICK = 0.1
"""Seconds between checks of the stop event."""

_HOUSEKEEPING = 10
"""Number of ticks (`_TICK`) between calls of `housekeeping`."""

_SWEEP = 0.05
"""Seconds between checks for connected clients while the server stops."""

_SHUTDOWN = 30.0
"""Maximum seconds that a client may take to read its last output and end its TLS session."""

_PROBING = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}


class Application(Protocol):
    """The interface of an application that a server runs."""

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one HTTP request."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that runs the application on the current event loop.

        Requests are answered only while this context is open.
        """

    async def drain(self) -> None:
        """End long-running requests, because the server is stopping.

        Return when these requests have ended, or after a time limit. If the server "listens until drained", new
        requests arrive until `drain` returns.
        """


class HttpServer:
    """A `Runnable` that serves the application `app` at an address."""

    name = "http server"

    def __init__(
        self,
        app: Application,
        address: tuple[str, int],
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        delay: float = 0.0,
        listens_until_drained: bool = False,
        housekeeping: Sequence[Callable[[], object]] = (),
        bounds: Bounds = DEFAULT,
        shares_port: bool = False,
    ) -> None:
        """Bind to `address` (host and port; 0 for any free port); raises `SettingsError` if the address is unavailable.

        `housekeeping` functions are called about once a second on the event loop, for example to check files for
        changes. If `shares_port` is set, other processes of the same user may listen on the same port.
        """
        self._app = app
        self._clock = clock
        self._tls = tls
        self._delay = delay
        self._listens_until_drained = listens_until_drained
        self._housekeeping = housekeeping
        self._bounds = bounds
        self._socket = _bind(*address, shares_port=shares_port)

    @property
    def url(self) -> str:
        """The server's URL with its actual port."""
        scheme = "http" if self._tls is None else "https"
        host, port = self._socket.getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def port(self) -> int:
        """The port to which the server is bound."""
        return int(self._socket.getsockname()[1])

    def run(self, stop: threading.Event) -> None:
        """Serve HTTP requests until the server is stopped."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(stop))

    def close(self) -> None:
        """Release the address if the server was never run."""
        self._socket.close()

    async def _serve(self, stop: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        context = ServerContext(self._app, self._bounds, loop, self._clock)
        async with TurnWatch(self._clock).watching(), self._app.running():
            listening = await self._listen(loop, context)
            try:
                await self._until(stop, context)
                draining = asyncio.create_task(self._app.drain(), name="drain")
                while self._listens_until_drained and not draining.done():
                    context.date = self._date()
                    await asyncio.wait((draining,), timeout=1.0)
                listening.close()
                await self._take_leave(context, draining)
            finally:  # the sockets are still open if an error interrupted the server
                listening.close()

    async def _listen(self, loop: asyncio.AbstractEventLoop, context: ServerContext) -> asyncio.Server:
        context.date = self._date()
        return await loop.create_server(
            lambda: Connection(context) if self._tls is None else AlpnProtocol(context),
            sock=self._socket,
            backlog=_BACKLOG,
            ssl=self._tls,
            ssl_handshake_timeout=self._bounds.head_timeout if self._tls is not None else None,
            ssl_shutdown_timeout=_SHUTDOWN if self._tls is not None else None,
        )

    async def _until(self, stop: threading.Event, context: ServerContext) -> None:
        """Call the `housekeeping` functions periodically, until the delay after the stop of the server has passed."""
        ticks = 0
        while not stop.is_set():
            if ticks % _HOUSEKEEPING == 0:
                context.date = self._date()
                for each in self._housekeeping:
                    each()
            ticks += 1
            await asyncio.sleep(_TICK)
        leaves_at = self._clock.monotonic() + self._delay
        while (left := leaves_at - self._clock.monotonic()) > 0:
            context.date = self._date()
            await asyncio.sleep(min(left, 1.0))

    async def _take_leave(self, context: ServerContext, draining: asyncio.Task[None]) -> None:
        """Answer further requests on existing connections for a short time, then wait for the running requests."""
        closes_at = self._clock.monotonic() + FAREWELL
        while context.connections and self._clock.monotonic() < closes_at:
            for connection in list(context.connections):
                connection.announce_close()
                if connection.idle_for >= FAREWELL:
                    connection.shutdown()
            await asyncio.sleep(_SWEEP)
        await draining
        ends_at = self._clock.monotonic() + GRACE
        while (context.connections or context.tasks) and self._clock.monotonic() < ends_at:
            for connection in list(context.connections):  # includes connections whose TLS handshake began earlier
                connection.shutdown()
            await asyncio.sleep(_SWEEP)
        if context.tasks:
            log.warning("canceling running requests", requests=len(context.tasks), seconds=GRACE)
        for task in list(context.tasks):
            task.cancel()
        for connection in list(context.connections):
            connection.abort()
        if context.tasks:
            await asyncio.wait(context.tasks, timeout=1.0)

    def _date(self) -> tuple[bytes, bytes]:
        return b"date", formatdate(self._clock.now() / 1_000_000, usegmt=True).encode()


def _bind(host: str, port: int, *, shares_port: bool) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"server.listen: {host} is not an address of this machine: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares_port)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # accepted connections inherit these options
        for option, value in _PROBING.items():
            listening.setsockopt(socket.IPPROTO_TCP, option, value)
        listening.bind(address)
        # A listening socket reserves the port for this process. If the socket were only bound, two servers could bind
        # the port, and one of them would fail later.
        listening.listen()
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"server.listen: cannot listen on {host}:{port}: {error.strerror}; choose another address "
            "with --listen HOST:PORT"
        ) from error
    return listening
