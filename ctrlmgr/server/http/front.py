"""The HTTP server: uvicorn on one event loop, run like everything else: it blocks until it is told to stop.

Guarantees:
- The address is taken when the server is made, so a port in use is an error before anything else has started.
- Stopping goes in kube-apiserver's order: for `delay` seconds everything is served as before (while `/readyz` fails),
  then nobody new is let in, watches end, requests under way finish, for `GRACE` seconds at most.
- No request is lost by that: whoever is still connected is served for `FAREWELL` seconds more, and told with the answer
  that the connection closes. Only who had nothing to ask for so long finds it closed.
- Peers that are gone without a word are noticed within a minute (TCP keepalive).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence

import uvicorn
import uvloop

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError
from ctrlmgr.server.app import App
from ctrlmgr.server.http.buffered import BufferedConnections
from ctrlmgr.server.http.protocol import Protocol

GRACE = 20
"""Seconds for requests under way once the server stops."""

FAREWELL = 0.5
"""Seconds for which those who are connected are served after nobody new is let in."""

KEEP_ALIVE = 90
"""Seconds for which a connection may be idle between requests (net/http's IdleTimeout in kube-apiserver)."""

_HOUSEKEEPING = 10
"""Ticks (tenths of a second) between calls of `housekeeping`."""

_SWEEP = 0.05
"""Seconds between looks at who is still connected when the server stops."""

_PROBING = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}


class HttpServer:
    """A Runnable that serves `app` at an address."""

    name = "http server"

    def __init__(
        self,
        app: App,
        address: tuple[str, int],
        *,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
        delay: float = 0.0,
        housekeeping: Sequence[Callable[[], object]] = (),
    ) -> None:
        """Bind to `address` (host, port; port 0: any free one); raises `SettingsError` when that cannot be done.

        `housekeeping` is called about once a second, on the event loop: looks at files that may have changed.
        """
        self._app = app
        self._clock = clock
        self._tls = tls
        self._delay = delay
        self._housekeeping = housekeeping
        self._socket = _bind(*address)

    @property
    def url(self) -> str:
        """Where it answers, with the port it got."""
        scheme = "http" if self._tls is None else "https"
        host, port = self._socket.getsockname()[:2]
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def port(self) -> int:
        """The port it got."""
        return int(self._socket.getsockname()[1])

    def run(self, stop: threading.Event) -> None:
        """Serve until stopped."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve(stop))

    def close(self) -> None:
        """Give the address back, if it never ran."""
        self._socket.close()

    async def _serve(self, stop: threading.Event) -> None:
        config = uvicorn.Config(
            self._app,
            http=BufferedConnections(),  # type: ignore[arg-type]  # anything that makes protocols
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE,
            timeout_graceful_shutdown=GRACE,
        )
        config.load()
        config.ssl = self._tls
        server = _Server(config, stop, self._app, self._clock, self._delay, self._housekeeping)
        try:
            async with self._app.running():
                await server.serve(sockets=[self._socket])
        finally:  # if it was interrupted, by something that failed, they are still open
            for listening in getattr(server, "servers", ()):
                listening.close()


class _Server(uvicorn.Server):
    """uvicorn, which looks ten times a second whether it should exit: that is when `stop` is looked at, too."""

    def __init__(
        self,
        config: uvicorn.Config,
        stop: threading.Event,
        app: App,
        clock: Clock,
        delay: float,
        housekeeping: Sequence[Callable[[], object]],
    ) -> None:
        super().__init__(config)
        self._stop = stop
        self._app = app
        self._clock = clock
        self._delay = delay
        self._housekeeping = housekeeping
        self._leaves_at: float | None = None

    async def on_tick(self, counter: int) -> bool:
        if self._stop.is_set():
            now = self._clock.monotonic()
            self._leaves_at = now + self._delay if self._leaves_at is None else self._leaves_at
            if now >= self._leaves_at:
                self._app.drain()
                self.should_exit = True
        elif counter % _HOUSEKEEPING == 0:
            for each in self._housekeeping:
                each()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let nobody new in, take leave of those who are here, then wait for what is under way."""
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        closes_at = self._clock.monotonic() + FAREWELL
        while self.server_state.connections and self._clock.monotonic() < closes_at:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Protocol):
                    connection.leave()
            await asyncio.sleep(_SWEEP)
        dismissing = asyncio.create_task(self._dismiss())
        try:
            await super().shutdown()
        finally:
            dismissing.cancel()

    async def _dismiss(self) -> None:
        """Close connections that come to be even now: their TLS handshakes had begun before."""
        while True:
            for connection in list(self.server_state.connections):
                connection.shutdown()
            await asyncio.sleep(_SWEEP)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"server.listen: {host} is no address of this machine: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit these
        for option, value in _PROBING.items():
            listening.setsockopt(socket.IPPROTO_TCP, option, value)
        listening.bind(address)
        listening.listen()  # from here on the port is ours: without it two servers could bind and one fail later
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"server.listen: cannot listen on {host}:{port}: {error.strerror}; give another with --listen HOST:PORT"
        ) from error
    return listening
