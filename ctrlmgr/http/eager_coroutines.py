"""Starts coroutines immediately, so a coroutine that never waits needs no task and no turn of the event loop.

Guarantees: a coroutine behaves as in a task, and its steps have the same order. Until the coroutine first waits, it
runs within `start`. Before its first wait, the coroutine must not use the current task, as `asyncio.timeout` and task
groups do. In Python 3.12, `asyncio.eager_task_factory` has the same effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


def start(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> asyncio.Task[None] | None:
    """Run the coroutine `work` until it waits; return the task that continues `work`, or None if `work` has ended.

    Raises the errors that `work` raises before it waits.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return None
    return loop.create_task(_rest(work, waits_for))


async def _rest(work: Coroutine[Any, Any, None], waits_for: Any) -> None:
    await resumed(work, waits_for)


@coroutine
def resumed(work: Coroutine[Any, Any, None], waits_for: Any) -> Generator[Any, Any, None]:
    """Yield the awaitables of `work` to the current task, and pass their results to `work`."""
    try:
        while True:
            try:
                answer = yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                waits_for = work.throw(error)
            else:
                waits_for = work.send(answer)
    except StopIteration:
        return
