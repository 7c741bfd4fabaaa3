"""What stands behind the API of a recording that is played: a backend until it is played back, then another.

Guarantees:
- No client sees what there was become what there was before. When the recording goes back, every watch ends with 410
  (Expired), and so does what is asked about revisions that have not been yet; what clients then list is of the new
  moment. That is how client-go's reflectors, and all that work like them, come to begin anew.
- A request is answered by the backend that it came to, whose log stays as it was; that backend stops with its last
  request.
- Resources that are kept apart (`apart`) are served from backends of their own, whatever happens to the recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.server.api import Call
from ctrlmgr.server.backend import Backend
from ctrlmgr.server.driver import Round
from ctrlmgr.server.watch.watcher import Parting
from ctrlmgr.server.workers import Workers


class PlayedBackend:
    """Stands where a `Backend` can; used on the event loop only."""

    def __init__(self, first: Backend, apart: Mapping[Resource, Backend]) -> None:
        """Begin with `first`."""
        self.workers = Workers()
        """For what outlives any moment of the recording."""
        self._now = _Era(first)
        self._apart = {resource: _Era(backend) for resource, backend in apart.items()}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def kinds(self) -> Kinds:
        """What is served."""
        return self._now.backend.kinds

    @property
    def api(self) -> PlayedBackend:
        """What answers requests."""
        return self

    def step(self) -> None:
        """Take in what has been acknowledged, as far as that is known without waiting."""
        for era in self._eras:
            era.backend.step()

    async def answer(self, call: Call, verb: str) -> None:
        """Answer a call; raises the error to answer with."""
        era = self._apart.get(call.endpoint.kind.storage, self._now)
        await era.answer(call, verb)

    def replace(self, backend: Backend) -> None:
        """Go on with another backend, and send away who watches this one."""
        before, self._now = self._now, _Era(backend)
        if self._tasks is not None:
            self._tasks.create_task(self._now.run(), name="recording")
        before.end(Parting.REWOUND)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be at work on the running event loop."""
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
    def _eras(self) -> list[_Era]:
        return [self._now, *self._apart.values()]

    def tell_of_rounds(self, around: Round) -> None:
        """Tell nothing: what is recorded takes no writes, and only writes are answered several at a time."""

    def end_watches(self) -> None:
        """End all watches, and those that begin from now on as soon as they have begun."""
        for era in self._eras:
            era.end(Parting.CLOSING, stops=False)


class _Era:
    """A backend, from when it begins to serve until it is not needed any more."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._requests = 0  # under way
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

    def end(self, parting: Parting, *, stops: bool = True) -> None:
        """Send watchers away, and stop with the last request if so."""
        self.backend.end_watches(parting)
        self._is_over = stops
        self._stop_when_idle()

    def stop(self) -> None:
        self._done.set()

    def _stop_when_idle(self) -> None:
        if self._is_over and not self._requests:
            self._done.set()
