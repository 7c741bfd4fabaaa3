"""The HTTP server: uvicorn on one event loop, run like everything else: it blocks until it is told to stop.

Guarantees:
- The address is taken when the server is made, so a port in use is an error before anything else has started.
- Stopping lets requests under way finish, for `GRACE` seconds at most.
"""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
import uvloop

from ctrlmgr.errors import SettingsError
from ctrlmgr.server.app import App

GRACE = 5


class HttpServer:
    """A Runnable that serves `app` at an address."""

    name = "http server"

    def __init__(self, app: App, address: tuple[str, int]) -> None:
        """Bind to `address` (host, port; port 0: any free one); raises `SettingsError` when that cannot be done."""
        self._app = app
        self._socket = _bind(*address)

    @property
    def url(self) -> str:
        """Where it answers, with the port it got."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

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
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        await _Server(config, stop).serve(sockets=[self._socket])


class _Server(uvicorn.Server):
    """uvicorn, which looks ten times a second whether it should exit: that is when `stop` is looked at, too."""

    def __init__(self, config: uvicorn.Config, stop: threading.Event) -> None:
        super().__init__(config)
        self._stop = stop

    async def on_tick(self, counter: int) -> bool:
        self.should_exit = self.should_exit or self._stop.is_set()
        return await super().on_tick(counter)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"server.listen: {host} is no address of this machine: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()  # from here on the port is ours: without it two servers could bind and one fail later
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"server.listen: cannot listen on {host}:{port}: {error.strerror}; give another with --listen HOST:PORT"
        ) from error
    return listening
