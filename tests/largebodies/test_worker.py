"""Tests of a worker process: how its jobs end, and how the process ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex
from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import RequestEntityTooLarge, RequestTimeout
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.largebodies.blueprint import DEFAULT, Rights
from ctrlmgr.largebodies.worker import MOST_MEMORY
from ctrlmgr.server.largebodies.large_body_jobs import LargeBodyJobs
from tests.largebodies import hostile


async def obey(command: Any) -> Any:
    raise AssertionError(command)


def run(main: Callable[[Callable[..., Any]], Coroutine[Any, Any, None]], deadline: float = 10.0) -> None:
    """Start the worker processes, and call `main` with a function that runs a job in one of them."""

    async def started() -> None:
        clock = SystemClock()
        log = MemoryEventLog(clock=clock, random=Random(1))
        cacher = Cacher(log, EventWindow(log, clock=clock))
        rights = Rights(AlwaysAllow(), RbacIndex())
        large = LargeBodyJobs(
            DEFAULT, rights, DEFAULT.kinds(), cacher, clock=clock, random=Random(2), deadline=deadline
        )
        large.start()
        try:
            await main(lambda *job: large.run("user", *job, obey=obey))
        finally:
            await large.stop()

    asyncio.run(started())


def test_a_job_above_the_memory_limit_is_refused_and_the_process_replaced() -> None:
    async def main(do: Callable[..., Any]) -> None:
        first = await do(hostile.pid)
        assert await do(hostile.greedy, MOST_MEMORY // 4) == MOST_MEMORY // 4
        with pytest.raises(RequestEntityTooLarge, match="more memory"):
            await do(hostile.greedy, MOST_MEMORY)
        assert await do(hostile.pid) != first

    run(main)


def test_a_job_above_the_time_limit_is_killed_with_its_process() -> None:
    async def main(do: Callable[..., Any]) -> None:
        first = await do(hostile.pid)
        with pytest.raises(RequestTimeout):
            await do(hostile.endless)
        assert await do(hostile.pid) != first

    run(main, deadline=1.0)


def test_an_internal_error_keeps_the_process() -> None:
    async def main(do: Callable[..., Any]) -> None:
        first = await do(hostile.pid)
        with pytest.raises(RuntimeError):
            await do(hostile.mistaken)
        assert await do(hostile.pid) == first

    run(main)
