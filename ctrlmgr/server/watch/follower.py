"""Keeps the cacher up with the log, and wakes those that wait for it to get somewhere.

Guarantees:
- `catch_up` returns when the cacher has everything that was acknowledged, by whichever process, before it was called.
  Where that cannot be seen at once (`EventLog.peek`) the log is asked on a worker thread: one question at a time, and
  its answer serves all that asked before it was put, none that asked later.
- It returns or fails in seconds, even while the database says nothing at all.
- However many events arrive while the loop is busy, it is woken once for all of them.
- What the feed has lost is read on a worker thread; until then nothing newer is seen, and who waits for it waits on.
- Used on the event loop only, but for `_wake`, which any thread may call.
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
from ctrlmgr.informer.watchcache import Feed
from ctrlmgr.server.workers import Workers

log = structlog.get_logger(__name__)

PATIENCE = 3.5
"""Seconds that it may take to learn where the log is, and for the cacher to get there: it takes milliseconds, unless
the database hangs."""


class Followed(Feed, Protocol):
    """What the follower asks of a feed."""

    def catch_up(self) -> Revision:
        """Read what the log has beyond the feed's head, and return the head then."""


class Stepping(Protocol):
    """What the follower asks of a cacher."""

    @property
    def revision(self) -> Revision:
        """How far it has got."""

    @property
    def is_behind(self) -> bool:
        """Whether the feed has lost what comes next."""

    def step(self) -> int:
        """Take in what the feed has."""

    def read_missing(self) -> Any:
        """Read what the feed has lost; runs on a worker thread."""

    def take(self, missing: Any) -> None:
        """Go on with what has been read."""


class Follower:
    """See the module's docstring."""

    def __init__(self, event_log: EventLog, feed: Followed, cacher: Stepping, workers: Workers) -> None:
        """Follow `event_log` with `cacher`, which reads `feed`."""
        self._log = event_log
        self._feed = feed
        self._cacher = cacher
        self._workers = workers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = False  # whether `_advance` is on its way; set by any thread, cleared by the loop
        self._listeners: list[Callable[[], None]] = []
        self._reaching: list[tuple[Revision, asyncio.Future[bool]]] = []
        # Who waits for the next question to the log to be answered; the one under way is not for them.
        self._asking: list[asyncio.Future[Revision]] = []
        self._question: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None  # of what the feed has lost
        feed.on_advance(self._wake)

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._advance()

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Have `listener` called on the loop whenever the cacher may have got further."""
        self._listeners.append(listener)

    def is_current(self) -> bool:
        """Whether the cacher has, seen without waiting, everything acknowledged before this call."""
        newest = self._log.peek()
        if newest is None:
            return False
        if self._cacher.revision < newest:
            self._step()
        return self._cacher.revision >= newest

    async def catch_up(self) -> None:
        """Return when the cacher has everything acknowledged before this call; raises `LogUnavailable`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        newest = self._log.peek()
        if newest is None:
            newest = await self._ask()
        if not await self.reach(newest, until - loop.time()):
            raise LogUnavailable(f"the cache has not reached revision {newest} within {PATIENCE:g} s")

    async def reach(self, revision: Revision, patience: float) -> bool:
        """Return whether the cacher gets to `revision` within `patience` seconds."""
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
        with suppress(RuntimeError):  # the loop is closed: there is no waiter left to wake
            self._loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        self._woken = False  # before looking: what comes from here on wakes again
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
        """Bring the cacher to where the feed begins; if the log is away, the next question for more begins again."""
        log.info("the feed has lost what comes next, reading the log", revision=self._cacher.revision)
        try:
            while self._cacher.is_behind:
                self._cacher.take(await self._workers.run(self._cacher.read_missing))
                self._cacher.step()
        except LogError as error:
            log.warning("the log cannot be read", error=str(error), revision=self._cacher.revision)
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
            except Exception as error:  # the asker is told, whatever it is
                for answer in asking:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for answer in asking:
                    _resolve(answer, revision)
        self._question = None

    def _look_up(self) -> Revision:
        """Return the log's head, and see that the feed has it; runs on a worker thread."""
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
