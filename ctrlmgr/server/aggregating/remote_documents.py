"""Fetches the documents of each server periodically, and stores the last response.

Guarantees:
- One task per server fetches the server's documents when its address or its APIService changes, and every `refresh`
  seconds. After a failure, the task retries after 500 ms; each further failure doubles this pause. A server that does
  not respond does not delay other servers.
- Any thread may read the stored responses.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.server.aggregating.extension_servers import TransportUnusable
from ctrlmgr.server.aggregating.fetching import Fetcher, R, RemoteServers

REFRESH: Final = 60.0
"""Seconds between two requests to a server (`discoveryRefreshInterval`, `successfulUpdateDelay`)."""
SOONEST: Final = 0.5
"""Seconds until the first retry of a failed request."""
_FAILURES: Final = (UpstreamFailed, Unresolved, TransportUnusable, ValueError, msgspec.MsgspecError)

Version: TypeAlias = tuple[str, str]
"""The key of a server: an API group and a version, or the name and the holder of an identity Lease."""
T = TypeVar("T")


class RemoteDocuments(Generic[R, T]):
    """The last responses of all servers, by the servers' keys.

    Only the event loop's thread may change the stored responses.
    """

    def __init__(self, servers: RemoteServers[R], longest_pause: float = REFRESH) -> None:
        """Create an instance for `servers`; failed requests are retried after at most `longest_pause` seconds."""
        self.epoch = 0
        """A number that increases with each change."""
        self.servers = servers
        self._longest = longest_pause
        self._answers: Mapping[Version, T] = {}
        self._tasks: dict[Version, asyncio.Task[None]] = {}
        self._followed: dict[Version, R] = {}
        self._fetcher: Fetcher[R] | None = None
        servers.on_change(self._update)

    @property
    def versions(self) -> Mapping[Version, T]:
        """The responses by key; every change replaces the whole mapping."""
        return self._answers

    @abstractmethod
    async def ask(self, key: Version, remote: R, fetcher: Fetcher[R]) -> T:
        """Fetch the documents of a server, and return its response."""

    @abstractmethod
    def without_answer(self, before: T | None) -> T:
        """Return the value that is stored for a server that has failed, or has not responded yet."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Fetch the servers' documents on the current event loop while the context is open."""
        self._fetcher = Fetcher(self.servers)
        self._update()
        try:
            yield
        finally:
            self._fetcher = None
            for task in self._tasks.values():
                task.cancel()

    def _update(self) -> None:
        """Start or restart the task of each server that has changed; end the tasks of removed servers."""
        requested = self.servers.services
        if gone := self._answers.keys() - requested.keys():
            self._put({key: found for key, found in self._answers.items() if key not in gone})
        for key in self._followed.keys() - requested.keys():
            self._end(key)
        for key, remote in requested.items():
            if self._followed.get(key) != remote:
                self._follow(key, remote)

    def _follow(self, key: Version, remote: R) -> None:
        if key not in self._answers:
            self._put({**self._answers, key: self.without_answer(None)})
        if self._fetcher is None:
            return  # requests are sent from `running` on
        if key in self._tasks:
            self._tasks[key].cancel()
        self._followed[key] = remote
        self._tasks[key] = asyncio.get_running_loop().create_task(self._repeat(key, remote, self._fetcher))

    def _end(self, key: Version) -> None:
        del self._followed[key]
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def _repeat(self, key: Version, remote: R, fetcher: Fetcher[R]) -> None:
        pause = SOONEST
        while True:
            before = self._answers.get(key)
            try:
                found, wait, pause = await self.ask(key, remote, fetcher), REFRESH, SOONEST
            except _FAILURES:
                found, wait, pause = self.without_answer(before), pause, min(2 * pause, self._longest)
            if found != before:
                self._put({**self._answers, key: found})
            await asyncio.sleep(wait)

    def _put(self, answers: Mapping[Version, T]) -> None:
        self._answers = answers
        self.epoch += 1
