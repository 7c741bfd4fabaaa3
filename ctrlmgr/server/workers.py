"""Runs blocking calls, such as database reads and compression, on threads, so that the event loop never blocks.

Guarantees: calls start in the order in which callers pass them; at most `count` calls run at a time. The coroutine that
awaits a call receives the call's result or error. `stop` waits until all earlier calls have ended.
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
"""Default number of threads. On more connections, a database would not serve reads faster."""


class Workers:
    """A pool of worker threads that the server starts and stops."""

    def __init__(self, count: int = COUNT) -> None:
        """Create the pool with `count` threads, which are not started yet."""
        self._count = count
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def start(self) -> None:
        """Start the worker threads."""
        for number in range(self._count):
            threads.start(f"server worker {number}", self._work)

    def stop(self) -> None:
        """Stop the threads after all calls that were passed before have ended."""
        for _ in range(self._count):
            self._calls.put(None)

    async def run(self, call: Callable[[], T]) -> T:
        """Run `call` on a worker thread. Return the result of the call, or raise its error."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = call()
            except BaseException as error:  # the error is raised again where the call is awaited
                _tell(loop, _fail, future, error)
            else:
                _tell(loop, _succeed, future, result)

        self._calls.put(work)
        return await future

    def begin(self, call: Callable[[], None]) -> None:
        """Run `call` on a thread without waiting for its end; `call` must not raise errors."""
        self._calls.put(call)

    def _work(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
            # the thread releases the call and its arguments, such as a large body, before it waits for the next call
            del work


def _tell(loop: asyncio.AbstractEventLoop, resolve: Callable[..., None], *arguments: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed, so no caller waits
        loop.call_soon_threadsafe(resolve, *arguments)


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
