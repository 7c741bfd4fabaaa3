"""Keeps the cache up to date with the log, and wakes waiting callers when the cache reaches a revision.

Guarantees:
- `catch_up` returns when the cache has all events that any process had acknowledged before the call. If the newest
  revision is not known immediately (`EventLog.peek`), a worker thread queries the log. At most one query runs at a
  time. All callers that waited before a query started use the query's result; later callers wait for the next query.
- `catch_up` returns or fails within seconds, even if the database does not answer at all.
- If many events arrive while the event loop is busy, the follower wakes the event loop only once for all these events.
- A worker thread reads events that the feed has lost from the log. Until the thread has read the lost events, the cache
  applies no newer events, and callers that wait for newer revisions keep waiting.
- Used on the event loop's thread only, except for `_wake`, which any thread may call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import structlog

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import LogError, LogUnavailable
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer.event_window import Feed
from ctrlmgr.server.workers import Workers

log = structlog.get_logger(__name__)

PATIENCE = 3.5
"""Maximum seconds for reading the newest revision and updating the cache to it.

Reading and updating usually take milliseconds; the limit matters only if the database hangs.
"""


class LogFeed(Feed, Protocol):
    """The interface of the feed that the follower uses."""

    def catch_up(self) -> Revision:
        """Read the events after the feed's head from the log; return the new head of the feed."""


class FeedReader(Protocol):
    """The interface of the cacher that the follower uses."""

    @property
    def revision(self) -> Revision:
        """The revision of the cache."""

    @property
    def is_behind(self) -> bool:
        """Return whether the feed no longer has the next event."""

    def step(self) -> int:
        """Apply the events of the feed to the cache."""

    def read_missing(self) -> Any:
        """Read the lost events from the log; runs on a worker thread."""

    def take(self, missing: Any) -> None:
        """Apply the events that were read from the log."""


class Follower:
    """Keeps the cache up to date with the log."""

    def __init__(self, event_log: EventLog, feed: LogFeed, cacher: FeedReader, workers: Workers) -> None:
        """Create a follower that updates the cache `cacher`, which reads `feed`, from `event_log`."""
        self._log = event_log
        self._feed = feed
        self._cacher = cacher
        self._workers = workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False  # whether `_advance` is scheduled; any thread sets it, the event loop clears it
        self._listeners: list[Callable[[], None]] = []
        self._reaching: list[tuple[Revision, asyncio.Future[bool]]] = []
        # Callers that wait for the next query of the log. These callers cannot use the running query, which began
        # before their calls.
        self._asking: list[asyncio.Future[Revision]] = []
        self._question: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # the task that reads the events that the feed has lost
        feed.on_advance(self._wake)

    def start(self) -> None:
        """Start to follow the log on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._advance()

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the event loop whenever the cache may have advanced."""
        self._listeners.append(listener)

    def is_current(self) -> bool:
        """Return whether the cache has all events that were acknowledged before this call.

        The method returns False if the newest revision is not known yet.
        """
        newest = self._log.peek()
        if newest is None:
            return False
        if self._cacher.revision < newest:
            self._step()
        return self._cacher.revision >= newest

    async def catch_up(self) -> None:
        """Wait until the cache has all events that were acknowledged before this call.

        Raises `LogUnavailable` if the log does not respond.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        newest = self._log.peek()
        if newest is None:
            newest = await self._ask()
        if not await self.reach(newest, until - loop.time()):
            raise LogUnavailable(f"the cache has not reached revision {newest} within {PATIENCE:g} s")

    async def reach(self, revision: Revision, patience: float) -> bool:
        """Wait until the cache reaches `revision`.

        The method returns False if the cache does not reach `revision` within `patience` seconds.
        """
        if self._cacher.revision < revision:
            self._step()
        if self._cacher.revision >= revision:
            return True
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[bool] = loop.create_future()
        self._reaching.append((revision, reached))
        timer = loop.call_later(patience, _resolve, reached, False)
        try:
            return await reached
        finally:
            timer.cancel()

    def _wake(self, head: Revision) -> None:
        if self._woken or self._loop is None:
            return
        self._woken = True
        with suppress(RuntimeError):  # the loop is closed, so no caller waits
            self._loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        self._woken = False  # cleared first, so that an event that arrives from here on schedules `_advance` again
        self._step()
        revision = self._cacher.revision
        for target, reached in self._reaching:
            if target <= revision:
                _resolve(reached, True)
        self._reaching = [each for each in self._reaching if not each[1].done()]
        for listener in self._listeners:
            listener()

    def _step(self) -> None:
        self._cacher.step()
        if self._cacher.is_behind and self._reading is None:
            self._reading = asyncio.create_task(self._read_missing())

    async def _read_missing(self) -> None:
        """Read lost events from the log until the cache contains all events of the feed.

        If the log is unavailable, `_read_missing` ends; the next step of the follower calls `_read_missing` again.
        """
        log.info("event window too small, reading events from the log", revision=self._cacher.revision)
        try:
            while self._cacher.is_behind:
                self._cacher.take(await self._workers.run(self._cacher.read_missing))
                self._cacher.step()
        except LogError as error:
            log.warning("reading event log failed", error=str(error), revision=self._cacher.revision)
            return
        finally:
            self._reading = None
        self._advance()

    async def _ask(self) -> Revision:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Revision] = loop.create_future()
        self._asking.append(answer)
        if self._question is None:
            self._question = asyncio.create_task(self._ask_for_all())
        timer = loop.call_later(PATIENCE, _give_up, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    async def _ask_for_all(self) -> None:
        while asking := self._asking:
            self._asking = []
            try:
                revision = await self._workers.run(self._look_up)
            except Exception as error:  # the error is raised again in the waiting callers
                for answer in asking:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for answer in asking:
                    _resolve(answer, revision)
        self._question = None

    def _look_up(self) -> Revision:
        """Return the log's head, and let the feed read the log up to the head; runs on a worker thread."""
        revision = self._log.head().revision
        if self._feed.head() < revision:
            self._feed.catch_up()
        return revision


def _resolve(future: asyncio.Future[object] | asyncio.Future[bool] | asyncio.Future[Revision], value: object) -> None:
    if not future.done():
        future.set_result(value)  # type: ignore[arg-type]  # the caller knows what the future is of


def _give_up(answer: asyncio.Future[Revision]) -> None:
    if not answer.done():
        answer.set_exception(LogUnavailable(f"the database has not answered within {PATIENCE:g} s"))
