"""Threads for what may wait: database reads and compression, so that the event loop never does.

Guarantees: calls are begun in the order they were given, a few at a time; the awaiter of one gets its result or what
it raised; stopping lets the calls that were given run to their end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from ctrlmgr import threads

T = TypeVar("T")

COUNT = 4
"""How many calls run at a time: as many as there are usefully connections to a database for reading."""


class Workers:
    """Started and stopped by the server that they work for."""

    def __init__(self, count: int = COUNT) -> None:
        """Make it `count` threads."""
        self._count = count
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def start(self) -> None:
        """Start the threads."""
        for number in range(self._count):
            threads.start(f"server worker {number}", self._work)

    def stop(self) -> None:
        """Have the threads end once the calls given before are done."""
        for _ in range(self._count):
            self._calls.put(None)

    async def run(self, call: Callable[[], T]) -> T:
        """Have a thread call `call`; return what it returns, or raise what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = call()
            except BaseException as error:  # raised again where the call is awaited
                _tell(loop, _fail, future, error)
            else:
                _tell(loop, _succeed, future, result)

        self._calls.put(work)
        return await future

    def begin(self, call: Callable[[], None]) -> None:
        """Have a thread call `call`, which raises nothing, without waiting for it."""
        self._calls.put(call)

    def _work(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
            del work  # and all that it holds, a large body perhaps, which would stay until the next one comes


def _tell(loop: asyncio.AbstractEventLoop, resolve: Callable[..., None], *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: no caller waits any more
        loop.call_soon_threadsafe(resolve, *arguments)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
