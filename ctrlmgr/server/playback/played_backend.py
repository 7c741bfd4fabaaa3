"""Implements the backend of a played recording, which uses a new `Backend` after the playback seeks backward.

Guarantees:
- Clients never receive events that change objects back to an earlier state of the recording. When the playback seeks
  backward, every watch and every request for a revision in the future ends with 410 (Expired). After a 410, the
  clients' reflectors list again, at the new position.
- The `Backend` that received a request completes the request. A replaced `Backend` stops after its last request has
  ended.
- Resources in `apart` have their own backends; a seek does not affect these backends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.server.backend import Backend
from ctrlmgr.server.event_loop_driver import BatchListener
from ctrlmgr.server.resource_handler import Call
from ctrlmgr.server.watch.watcher import DisconnectReason
from ctrlmgr.server.workers import Workers


class PlayedBackend:
    """A backend that delegates to another `Backend`, which can be replaced. Used on the event loop's thread only."""

    def __init__(self, first: Backend, apart: Mapping[Resource, Backend]) -> None:
        """Create an instance that delegates to the backend `first`."""
        self.workers = Workers()
        """Worker threads that do not depend on the position."""
        self._now = _BackendLifetime(first)
        self._apart = {resource: _BackendLifetime(backend) for resource, backend in apart.items()}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def kinds(self) -> Kinds:
        """The kinds that are served."""
        return self._now.backend.kinds

    @property
    def api(self) -> PlayedBackend:
        """The handler of requests for resources, which is this object itself."""
        return self

    def step(self) -> None:
        """Apply all acknowledged events to the caches that are known without waiting."""
        for era in self._eras:
            era.backend.step()

    async def answer(self, call: Call, verb: str) -> None:
        """Process a call; raises `ApiError` if the response is an error."""
        era = self._apart.get(call.endpoint.kind.storage, self._now)
        await era.answer(call, verb)

    def replace(self, backend: Backend) -> None:
        """Switch to another backend, and end the watches of the current backend."""
        before, self._now = self._now, _BackendLifetime(backend)
        if self._tasks is not None:
            self._tasks.create_task(self._now.run(), name="recording")
        before.end(DisconnectReason.REWOUND)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the backends on the current event loop while the context is open."""
        self.workers.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for era in self._eras:
                    tasks.create_task(era.run(), name="recording")
                try:
                    yield
                finally:
                    self._tasks = None
                    for era in self._eras:
                        era.stop()
        finally:
            self.workers.stop()

    @property
    def _eras(self) -> list[_BackendLifetime]:
        return [self._now, *self._apart.values()]

    def add_batch_listener(self, listener: BatchListener) -> None:
        """Do nothing, because only writes are processed in rounds, and a recording has no writes."""

    def end_watches(self) -> None:
        """End all watches; watches that start later end immediately."""
        for era in self._eras:
            era.end(DisconnectReason.CLOSING, stops=False)

    async def end_watches_within(self, grace: float) -> None:
        """End all watches one after another within `grace` seconds, and return when all watches have ended."""
        await asyncio.gather(*(era.backend.end_watches_within(grace) for era in self._eras))


class _BackendLifetime:
    """Runs one backend from its start until no request needs the backend any more."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._requests = 0  # number of running requests
        self._is_over = False
        self._done = asyncio.Event()

    async def run(self) -> None:
        async with self.backend.running():
            await self._done.wait()

    async def answer(self, call: Call, verb: str) -> None:
        self._requests += 1
        try:
            await self.backend.api.answer(call, verb)
        finally:
            self._requests -= 1
            self._stop_when_idle()

    def end(self, parting: DisconnectReason, *, stops: bool = True) -> None:
        """End the backend's watches; if `stops` is set, stop the backend after its last request."""
        self.backend.end_watches(parting)
        self._is_over = stops
        self._stop_when_idle()

    def stop(self) -> None:
        self._done.set()

    def _stop_when_idle(self) -> None:
        if self._is_over and not self._requests:
            self._done.set()
