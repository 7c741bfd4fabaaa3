"""Tests of coroutines that start at once: results do not change, and a coroutine that never waits needs no task."""

from __future__ import annotations

import asyncio

import pytest

from ctrlmgr.http.eager_coroutines import start


def test_an_operation_without_waits_has_no_task() -> None:
    done: list[str] = []

    async def work() -> None:
        done.append("all")

    async def begin() -> None:
        assert start(work(), asyncio.get_running_loop()) is None
        assert done == ["all"]

    asyncio.run(begin())


def test_a_waiting_operation_continues_in_a_task() -> None:
    told: list[object] = []

    async def work(first: asyncio.Future[str], second: asyncio.Future[str]) -> None:
        told.append(await first)
        await asyncio.sleep(0)
        try:
            await second
        except ValueError as error:
            told.append(str(error))

    async def begin() -> None:
        loop = asyncio.get_running_loop()
        first, second = loop.create_future(), loop.create_future()
        task = start(work(first, second), loop)
        assert task is not None
        loop.call_soon(first.set_result, "first")
        loop.call_soon(second.set_exception, ValueError("second"))
        await task

    asyncio.run(begin())
    assert told == ["first", "second"]


def test_errors_are_raised_where_they_would_be_without_the_helper() -> None:
    async def at_once() -> None:
        raise ValueError("at once")

    async def later() -> None:
        await asyncio.sleep(0)
        raise ValueError("later")

    async def begin() -> None:
        loop = asyncio.get_running_loop()
        with pytest.raises(ValueError, match="at once"):
            start(at_once(), loop)
        task = start(later(), loop)
        assert task is not None
        with pytest.raises(ValueError, match="later"):
            await task

    asyncio.run(begin())


def test_cancelling_reaches_the_awaited_operation() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("cleaned up")

    async def begin() -> None:
        task = start(work(), asyncio.get_running_loop())
        assert task is not None
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(begin())
    assert ended == ["cleaned up"]
