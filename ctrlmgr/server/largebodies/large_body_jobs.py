"""Runs requests with large bodies as jobs in worker processes, and answers the queries of these processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Verdict
from ctrlmgr.clock import Clock
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Command
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.largebodies.blueprint import Blueprint, Rights
from ctrlmgr.largebodies.messages import Job, WorkerMessage, dumped
from ctrlmgr.server.largebodies.pool import DEADLINE, Pool
from ctrlmgr.server.largebodies.worker_process import Process, start
from ctrlmgr.server.workers import Workers

Obey = Callable[[Command], Awaitable[Any]]
"""A function that executes a command of an engine operation, and returns the result."""


class Listener(NamedTuple):
    """Receives the decoded body of a request, for the audit log."""

    hear: Callable[[Unstructured, Callable[[], bytes]], None]
    """A callback that receives the decoded object, and a function that returns the encoded object with defaults."""
    keeps: bool
    """Whether the listener needs the encoded object in addition to the decoded object."""


class LargeBodyJobs:
    """Runs jobs in worker processes. Used on the event loop's thread only."""

    def __init__(
        self,
        blueprint: Blueprint,
        rights: Rights,
        kinds: Kinds,
        cacher: Cacher,
        *,
        clock: Clock,
        random: Random,
        deadline: float = DEADLINE,
    ) -> None:
        """Create an instance. Worker processes decide with the kinds of `blueprint`, on the state of `cacher`."""
        self._blueprint = blueprint
        self._rights = rights
        self._kinds = kinds
        self._cacher = cacher
        self._clock = clock
        self._random = random
        self._workers = Workers(1)
        self.pool = Pool(self._started, clock, deadline=deadline)
        """The worker processes."""

    def start(self) -> None:
        """Start the thread that starts worker processes."""
        self._workers.start()

    async def stop(self) -> None:
        """End all worker processes."""
        await self.pool.stop()
        self._workers.stop()

    async def _started(self) -> Process:
        return await start(self._blueprint, self._kinds.by_gvk, self._workers)

    async def run(
        self, user: str, function: Callable[..., Any], *arguments: Any, obey: Obey, listener: Listener | None = None
    ) -> Any:
        """Run a job of `ctrlmgr.largebodies.jobs` in a worker process; return the job's result, or raise its error.

        `obey` performs the commands of the job's operation; `listener` receives the decoded body.
        """
        work = dumped((function, arguments))
        job = Job(self._kinds.epoch, self._random.getrandbits(64), self._clock.now(), work)
        return await self.pool.run(user, job, partial(self._answer, obey, listener))

    async def _answer(self, obey: Obey, listener: Listener | None, ask: WorkerMessage) -> Any:
        """Return the answer to a query of a worker process."""
        match ask.what:
            case "command":
                return await obey(*ask.arguments)
            case "revision":
                return self._cacher.revision
            case "authorize":
                return await self._verdict(*ask.arguments)
            case "rules":
                return self._rights.authorizer.rules(*ask.arguments)
            case "grants" | "role_rules":
                return getattr(self._rights.index, ask.what)(*ask.arguments)
            case "keeps":
                return listener is not None and listener.keeps
            case "heard":
                return _tell(listener, *ask.arguments)
            case "get" | "list" | "changed_at" | "changes_after":
                return getattr(self._cacher, ask.what)(*ask.arguments)
        raise ValueError(ask.what)

    async def _verdict(self, user: User, attributes: Attributes) -> Verdict:
        authorizer = self._rights.authorizer
        verdict = authorizer.authorize(user, attributes)
        return verdict if verdict is not None else await authorizer.ask(user, attributes)


def _tell(listener: Listener | None, reply: Unstructured, written: bytes) -> None:
    if listener is not None:
        listener.hear(reply, lambda: written)
