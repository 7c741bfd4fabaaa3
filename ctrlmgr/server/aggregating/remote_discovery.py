"""Keeps the discovery of extension servers for the merged document.

Guarantees:
- No request waits for an extension server: the document has what was known last. A version whose server does not answer
  is listed as stale, without resources.
- Each server is asked by a task of its own: when its APIService changes, once a minute, and after a failure sooner
  (500 ms, doubled each time). A server that hangs delays no other.
- Any thread may read.

Source: kube-aggregator `pkg/apiserver/handler_discovery.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import User
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.engine.calls.remote_services import RemoteService
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.discovered_resources import aggregated_resources, legacy_resources
from ctrlmgr.server.aggregating.extension_servers import ExtensionServers, TransportUnusable
from ctrlmgr.server.aggregating.fetching import Fetcher

REFRESH: Final = 60.0
"""Seconds until a server is asked again (`discoveryRefreshInterval`)."""
SOONEST: Final = 0.5
"""Seconds until a server that failed is asked again for the first time."""
TIMEOUT: Final = 5.0
_TYPES: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)
_AGGREGATED: Final[Header] = (b"accept", _TYPES.encode())
_JSON: Final[Header] = (b"accept", b"application/json")
_UNPRIVILEGED: Final = User("system:kube-aggregator")
"""The user that asks for the document of one version."""


class RemoteVersion(NamedTuple):
    """A version that an extension server serves, as it was found last."""

    resources: Sequence[Unstructured] = ()
    is_current: bool = False


class _Cached(NamedTuple):
    etag: str
    found: Mapping[tuple[str, str], Sequence[Unstructured]]


class RemoteDiscovery:
    """The discovery of all extension servers. Changed on the event loop only."""

    def __init__(self, servers: ExtensionServers) -> None:
        """Ask `servers`."""
        self.epoch = 0
        """A number that grows with each change."""
        self._servers = servers
        self._versions: Mapping[tuple[str, str], RemoteVersion] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._followed: dict[tuple[str, str], RemoteService] = {}
        self._cached: dict[tuple[str, str, int], _Cached] = {}
        self._fetcher: Fetcher | None = None
        servers.on_change(self._update)

    @property
    def versions(self) -> Mapping[tuple[str, str], RemoteVersion]:
        """The versions by group and version; a change replaces the mapping."""
        return self._versions

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ask the servers on the current event loop while the context is open."""
        self._fetcher = Fetcher(self._servers)
        self._update()
        try:
            yield
        finally:
            self._fetcher = None
            for task in self._tasks.values():
                task.cancel()

    def _update(self) -> None:
        """Start or restart the task of each server whose APIService has changed, and end those of removed ones."""
        wanted = self._servers.services
        if gone := self._versions.keys() - wanted.keys():
            self._put({key: found for key, found in self._versions.items() if key not in gone})
        for key in self._followed.keys() - wanted.keys():
            self._end(key)
        used = {(each.namespace, each.service, each.port) for each in wanted.values()}
        self._cached = {where: each for where, each in self._cached.items() if where in used}
        for key, remote in wanted.items():
            if self._followed.get(key) != remote:
                self._follow(key, remote)

    def _follow(self, key: tuple[str, str], remote: RemoteService) -> None:
        if key not in self._versions:
            self._put({**self._versions, key: RemoteVersion()})
        if self._fetcher is None:
            return  # it is followed from `running` on
        self._followed[key] = remote
        if key in self._tasks:
            self._tasks[key].cancel()
        self._tasks[key] = asyncio.get_running_loop().create_task(self._ask_again_and_again(key, remote, self._fetcher))

    def _end(self, key: tuple[str, str]) -> None:
        del self._followed[key]
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def _ask_again_and_again(self, key: tuple[str, str], remote: RemoteService, fetcher: Fetcher) -> None:
        pause = SOONEST
        while True:
            found = await self._ask(key, remote, fetcher)
            if found != self._versions.get(key):
                self._put({**self._versions, key: found})
            await asyncio.sleep(REFRESH if found.is_current else pause)
            pause = SOONEST if found.is_current else min(2 * pause, REFRESH)

    async def _ask(self, key: tuple[str, str], remote: RemoteService, fetcher: Fetcher) -> RemoteVersion:
        with suppress(UpstreamFailed, Unresolved, TransportUnusable, ValueError, msgspec.MsgspecError):
            return RemoteVersion(await self._resources(key, remote, fetcher), is_current=True)
        return RemoteVersion()

    async def _resources(self, key: tuple[str, str], remote: RemoteService, fetcher: Fetcher) -> Sequence[Unstructured]:
        where = remote.namespace, remote.service, remote.port
        cached = self._cached.get(where)
        headers = [_AGGREGATED, *([(b"if-none-match", cached.etag.encode())] if cached and cached.etag else [])]
        answer = await fetcher.fetch(remote, "/apis", headers, TIMEOUT)
        if answer.code == 304 and cached is not None:
            return cached.found.get(key, ())
        if answer.code == 503:
            raise UpstreamFailed(f"service {remote.service} returned non-success response code: 503")
        if answer.code == 200 and "as=APIGroupDiscoveryList" in answer.header(b"content-type"):
            found = aggregated_resources(answer.body)
            self._cached[where] = _Cached(answer.header(b"etag"), found)
            return found.get(key, ())
        legacy = await fetcher.fetch(remote, remote.path, [_JSON], TIMEOUT, _UNPRIVILEGED)
        if legacy.code != 200:
            raise UpstreamFailed(f"failed to download legacy discovery for {remote.path}: {legacy.code}")
        return legacy_resources(legacy.body)

    def _put(self, versions: Mapping[tuple[str, str], RemoteVersion]) -> None:
        self._versions = versions
        self.epoch += 1
