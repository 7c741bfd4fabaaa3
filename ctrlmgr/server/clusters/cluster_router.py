"""Passes requests below `/clusters/NAME/` to the cluster NAME, and all other requests to the outer application.

Guarantees:
- A cluster receives the URL path without `/clusters/NAME`, and `Exchange.mounted_at` contains the removed start.
- A request to a sleeping cluster waits until the cluster is awake. Other requests do not wait meanwhile.
- If no cluster has the name, the outer application answers, so its authentication and rights decide what the client
  learns.
- If a cluster does not start, its requests are answered with 503, and requests to other clusters are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Protocol

from ctrlmgr.errors import ApiError
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.http_server import Application
from ctrlmgr.server.clusters.clusters_page import ClustersPage
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from ctrlmgr.server.presenting.responses import refused
from ctrlmgr.server.workers import Workers

ROOT: Final = b"/clusters/"
"""The URL path below which the clusters are served."""

_WAKING: Final = 8
"""Maximum number of clusters that wake at the same time."""


class ServedClusters(Protocol):
    """The clusters of a process. The methods may be called on any thread."""

    def find(self, name: str) -> MountedServer | None:
        """Return the server of a cluster that is awake, otherwise None; does not block."""

    def awake(self, name: str) -> MountedServer | None:
        """Return the server of a cluster, after waking the cluster if it sleeps; None if the cluster does not exist.

        Raises `ApiError` if the cluster cannot start.
        """


class ClusterRouter:
    """An application that serves the clusters, and `app` for all other URL paths."""

    def __init__(self, app: Application, clusters: ServedClusters, shared: SharedLoop, page: ClustersPage) -> None:
        """Serve `clusters`; while the router runs, `shared` contains its event loop, and `page` can answer."""
        self._app = app
        self._clusters = clusters
        self._shared = shared
        self._page = page
        self._workers = Workers(_WAKING)

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one HTTP request."""
        name, path = _split(exchange.path)
        if not name:
            await self._app(exchange)
            return
        server = self._clusters.find(name)
        try:
            while server is None or not server.is_open:
                server = await self._workers.run(partial(self._clusters.awake, name))
                if server is None:
                    await self._app(exchange)
                    return
        except ApiError as error:
            _refuse(exchange, error)
            return
        exchange.mounted_at = exchange.path[: len(exchange.path) - len(path)]
        exchange.path = path
        await server(exchange)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the outer application; clusters can wake while this context is open."""
        async with self._app.running():
            self._shared.running = asyncio.get_running_loop()
            self._workers.start()
            self._page.start()
            try:
                yield
            finally:
                self._page.stop()
                self._workers.stop()
                self._shared.running = None

    async def drain(self) -> None:
        """End the long-running requests of the outer application; the clusters end theirs when they stop."""
        await self._app.drain()


def _split(path: bytes) -> tuple[str, bytes]:
    """Return the name of the cluster in a URL path, and the path within the cluster; the name is empty without one."""
    if not path.startswith(ROOT):
        return "", path
    name, slash, rest = path[len(ROOT) :].partition(b"/")
    return (name.decode("ascii"), slash + rest) if slash else ("", path)


def _refuse(exchange: Exchange, error: ApiError) -> None:
    response = refused(error)
    exchange.answer(response.status, response.headers, response.body)
