"""Keeps the cacher up with the log, and wakes whoever waits for it to get somewhere.

Guarantees:
- `catch_up` returns when the cacher has everything that was acknowledged, by whichever process, before it was called.
  Where that cannot be seen at once (`EventLog.peek`) the log is asked on a worker thread: one question at a time, and
  its answer serves everybody who asked before it was put, nobody who asked later.
- However many events arrive while the loop is busy, it is woken once for all of them.
- Used on the event loop only, but for `_wake`, which any thread may call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import WatchCache
from ctrlmgr.server.workers import Workers

_PATIENCE = 3.0
"""Seconds that the cacher may take to get where the log is known to be; it follows in milliseconds."""


class Stepping(Protocol):
    """What the follower asks of a cacher."""

    @property
    def revision(self) -> Revision:
        """How far it has got."""

    def step(self) -> int:
        """Take in what the feed has."""


class Follower:
    """See the module's docstring."""

    def __init__(self, event_log: EventLog, feed: WatchCache, cacher: Stepping, workers: Workers) -> None:
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
            self._cacher.step()
        return self._cacher.revision >= newest

    async def catch_up(self) -> None:
        """Return when the cacher has everything acknowledged before this call; raises `LogUnavailable`."""
        newest = self._log.peek()
        if newest is None:
            newest = await self._ask()
        if not await self.reach(newest, _PATIENCE):
            raise LogUnavailable(f"the cache has not reached revision {newest} within {_PATIENCE:g} s")

    async def reach(self, revision: Revision, patience: float) -> bool:
        """Return whether the cacher gets to `revision` within `patience` seconds."""
        if self._cacher.revision < revision:
            self._cacher.step()
        if self._cacher.revision >= revision:
            return True
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[bool] = loop.create_future()
        self._reaching.append((revision, reached))
        timer = loop.call_later(patience, _settle, reached, False)
        try:
            return await reached
        finally:
            timer.cancel()

    def _wake(self, head: Revision) -> None:
        if self._woken or self._loop is None:
            return
        self._woken = True
        with suppress(RuntimeError):  # the loop is closed: there is nobody left to wake
            self._loop.call_soon_threadsafe(self._advance)

    def _advance(self) -> None:
        self._woken = False  # before looking: what comes from here on wakes again
        self._cacher.step()
        revision = self._cacher.revision
        for target, reached in self._reaching:
            if target <= revision:
                _settle(reached, True)
        self._reaching = [each for each in self._reaching if not each[1].done()]
        for listener in self._listeners:
            listener()

    async def _ask(self) -> Revision:
        answer: asyncio.Future[Revision] = asyncio.get_running_loop().create_future()
        self._asking.append(answer)
        if self._question is None:
            self._question = asyncio.create_task(self._ask_for_all())
        return await answer

    async def _ask_for_all(self) -> None:
        while asking := self._asking:
            self._asking = []
            try:
                revision = await self._workers.run(self._look_up)
            except Exception as error:  # whoever asked is told, whatever it is
                for answer in asking:
                    if not answer.done():
                        answer.set_exception(error)
            else:
                for answer in asking:
                    _settle(answer, revision)
        self._question = None

    def _look_up(self) -> Revision:
        """Return the log's head, and see that the feed has it; runs on a worker thread."""
        revision = self._log.head().revision
        if self._feed.head() < revision:
            self._feed.catch_up()
        return revision


def _settle(future: asyncio.Future[object] | asyncio.Future[bool] | asyncio.Future[Revision], value: object) -> None:
    if not future.done():
        future.set_result(value)  # type: ignore[arg-type]  # whoever calls this knows what the future is of
