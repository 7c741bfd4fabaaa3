"""Connects the components behind the API of one process: the cache, the engine, the driver and the watches.

The backend runs on the server's event loop. The backend starts when its context `running` is entered, and has released
all resources when the context ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.clock import Clock
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.event import Cause, Fence
from ctrlmgr.largebodies.blueprint import DEFAULT, Blueprint, Rights
from ctrlmgr.server.authn.review_resources import Reviews
from ctrlmgr.server.authn.token_last_used import LastUsedWriter
from ctrlmgr.server.authn.token_requests import TokenRequests
from ctrlmgr.server.connect_subresources import Runtime
from ctrlmgr.server.container_connector import Make
from ctrlmgr.server.event_loop_driver import BatchListener, Driver
from ctrlmgr.server.largebodies.large_body_jobs import LargeBodyJobs
from ctrlmgr.server.outbound_calls import Caller
from ctrlmgr.server.presenting.presentation import Presentations
from ctrlmgr.server.presenting.sending import Sender
from ctrlmgr.server.resource_handler import Api
from ctrlmgr.server.watch.follower import Follower, LogFeed
from ctrlmgr.server.watch.hub import Hub
from ctrlmgr.server.watch.watcher import DisconnectReason
from ctrlmgr.server.watch.watching import SHORTEST_WATCH, Watches
from ctrlmgr.server.workers import Workers

T = TypeVar("T")

_FOLLOWERS = 2
"""The number of threads that read the log's newest revision, and events that the feed no longer has."""


class Backend:
    """Holds the components behind the API; its attribute `api` processes requests."""

    def __init__(
        self,
        event_log: EventLog,
        feed: LogFeed,
        kinds: Kinds,
        reviews: Reviews,
        *,
        clock: Clock,
        random: Random,
        window: int = 10_000,
        is_past: bool = False,
        tokens: TokenRequests | None = None,
        rewinds: bool = False,
        blueprint: Blueprint = DEFAULT,
        rights: Rights | None = None,
        runtime: Runtime | None = None,
        shown_at: Clock | None = None,
        kubelets: Make | None = None,
        shortest_watch: float = SHORTEST_WATCH,
    ) -> None:
        """Create a backend that serves `kinds` from `event_log`, whose feed is `feed`.

        The cache keeps at least `window` events for watchers. If `is_past` is set, the log ends in the past, and
        clients may read every revision. `tokens` issues tokens of service accounts; if `tokens` is None, the server
        issues no tokens. `rewinds` is True if the log may be reset to an earlier revision; after a reset, clients may
        have revisions that do not exist. The kinds and their admission are created from `blueprint`. Admission checks
        users' permissions with `rights`; if `rights` is None, every write is allowed. `runtime` serves the pods on
        simulated nodes, and `kubelets`, if given, serves the pods on other nodes. Tables contain ages at the time of
        the clock `shown_at`, which is `clock` by default. A watch without a timeout lasts `shortest_watch` seconds or
        more.
        """
        self.kinds = kinds
        # Reads of the log can block, so they have threads of their own; otherwise other work would wait behind them.
        self.workers, self._readers, self._followers = Workers(), Workers(), Workers(_FOLLOWERS)
        self._computing = Workers(1)
        rights = rights or Rights(AlwaysAllow(), RbacIndex())
        admission = blueprint.made(kinds, rights, clock)
        cacher = Cacher(event_log, feed, window=window, is_past=is_past)
        if runtime is not None:
            cacher.feed(runtime.index)
        self._hub = Hub(cacher, clock=clock, rewinds=rewinds)
        self._follower = Follower(event_log, feed, cacher, self._followers)
        self._follower.on_advance(self._hub.advance)
        self.engine = Engine(kinds, cacher, event_log, clock=clock, random=random, admission=admission)
        self._large = LargeBodyJobs(blueprint, rights, kinds, cacher, clock=clock, random=random)
        self._caller = Caller(clock)
        self._driver = Driver(
            event_log,
            self._follower,
            self._readers,
            cacher,
            computing=self._computing,
            rewinds=rewinds,
            caller=self._caller,
        )
        self.last_used = LastUsedWriter(self.engine, self._driver, clock=clock)
        """Records the day on which the token of a Secret was last used, on the Secret."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watches = Watches(
            self._hub,
            cacher,
            event_log,
            self._readers,
            self._driver,
            clock=clock,
            random=random,
            shortest=shortest_watch,
        )
        self.api = Api(
            self.engine,
            self._driver,
            self._watches,
            Presentations(shown_at or clock),
            Sender(self.workers),
            reviews,
            tokens,
            self._large,
            runtime,
            kubelets,
            random=random,
        )

    def add_batch_listener(self, listener: BatchListener) -> None:
        """Call `listener` before and after each turn of the event loop in which several requests are answered."""
        self._driver.round = listener

    def run(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation of the engine, and return its result.

        Any thread except the event loop's thread may call `run`.

        Raises the operation's error, and `ServiceUnavailable` if the event loop is not running.
        """
        return self.wait_for(self._driver.run(operation, cause, fence))

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine `work` on the event loop, and return its result.

        Any thread except the event loop's thread may call `wait_for`.

        Raises the error of `work`, and `ServiceUnavailable` if the event loop is not running.
        """
        if self._loop is None:
            work.close()
            raise ServiceUnavailable("the API is not being served")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def step(self) -> None:
        """Apply those acknowledged events to the cache that are available without waiting."""
        self._follower.is_current()

    async def catch_up(self) -> None:
        """Apply all acknowledged events to the cache; raises `LogUnavailable` if the log does not respond."""
        await self._follower.catch_up()

    def call(self, calls: Sequence[Call]) -> list[Reply]:
        """Call other processes, and wait for their responses.

        Any thread except the event loop's thread may call this method.
        """
        if self._loop is None:
            return [Reply(problem="dial tcp: the server does not run") for _ in calls]
        return asyncio.run_coroutine_threadsafe(self._caller.call(calls), self._loop).result()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the backend on the current event loop while the context is open.

        If a background task raises an error, the context raises the error in the caller.
        """
        self._loop = asyncio.get_running_loop()
        for workers in (self.workers, self._readers, self._followers, self._computing, self._large):
            workers.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._follower.start()
                tasks.create_task(self._hub.run(), name="hub")
                try:
                    yield
                finally:
                    self.end_watches()
        finally:
            self._loop = None
            await self._caller.close()
            await self._large.stop()
            for workers in (self.workers, self._readers, self._followers, self._computing):
                workers.stop()

    def end_watches(self, parting: DisconnectReason = DisconnectReason.CLOSING) -> None:
        """End all watches and connections to containers; new watches and connections end immediately."""
        self._hub.close(parting)
        self.api.close()

    async def end_watches_within(self, grace: float) -> None:
        """End all watches one after another within `grace` seconds, and return when all watches have ended."""
        self._watches.pace.begin(grace)
        self._hub.close()
        await self._watches.pace.all_ended()
