"""Runs async functions of apps on one event loop, which runs on its own thread and serves the whole process.

Guarantees:
- The caller waits until the async function has returned or raised, and gets its result or its error.
- All async functions of a process share the loop, so they can share sessions and connections of async libraries.
- An async function runs with the context variables of its caller, such as those of log lines.
- The event loop starts with the first call, and ends with the process.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, TypeVar

from ctrlmgr import threads

T = TypeVar("T")


class _Loop:
    """An event loop that runs on its own thread; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, awaitable: Awaitable[T]) -> T:
        """Wait on the calling thread until `awaitable` has ended; return its result, or raise its error."""
        result, error = asyncio.run_coroutine_threadsafe(_outcome(awaitable), self._running()).result()
        if error is not None:
            raise error
        assert result is not None
        return result[0]

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threads.start("async functions", self._loop.run_forever)
            return self._loop


async def _outcome(awaitable: Awaitable[T]) -> tuple[tuple[T] | None, BaseException | None]:
    try:
        return (await awaitable,), None
    except BaseException as error:  # A function may raise SystemExit with sys.exit(), which would end the loop.
        return None, error


_LOOP = _Loop()


def blocking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a plain function that calls `function` and waits for it; a plain function is returned unchanged.

    For an async generator function, return a function that returns a generator.
    """
    if inspect.isasyncgenfunction(function):
        return functools.wraps(function)(lambda *arguments: _steps(function(*arguments)))
    if inspect.iscoroutinefunction(function):
        return functools.wraps(function)(lambda *arguments: _LOOP.run(function(*arguments)))
    return function


def _steps(steps: AsyncGenerator[Any, Any]) -> Generator[Any, Any, None]:
    try:
        sent = None
        while True:
            sent = yield _LOOP.run(steps.asend(sent))
    except StopAsyncIteration:
        return
    finally:
        _LOOP.run(steps.aclose())
