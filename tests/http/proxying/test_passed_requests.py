"""Tests of requests that are passed on while the server stops."""

from __future__ import annotations

import asyncio

import pytest

from ctrlmgr.http.proxying.passed_requests import PassedRequests
from ctrlmgr.http.response_stream import Disconnected


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_running_request_ends_with_the_server() -> None:
    async def stop() -> None:
        passed = PassedRequests()
        running = asyncio.create_task(passed.run(forever()))
        await asyncio.sleep(0)
        passed.end()
        with pytest.raises(Disconnected):
            await running
        with pytest.raises(Disconnected):
            await passed.run(forever())

    asyncio.run(stop())


def test_a_cancelled_caller_cancels_its_request_only() -> None:
    async def cancel() -> None:
        passed = PassedRequests()
        first, second = (asyncio.create_task(passed.run(forever())) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.sleep(0)
        assert not second.done()
        assert len(asyncio.all_tasks()) == 3  # this task, the second caller and its request
        second.cancel()

    asyncio.run(cancel())


def test_errors_of_a_request_are_raised() -> None:
    async def fail() -> None:
        raise ValueError("the request failed")

    with pytest.raises(ValueError, match="the request failed"):
        asyncio.run(PassedRequests().run(fail()))
