"""Tests of worker threads for blocking work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ctrlmgr.server.workers import Workers


def test_a_call_runs_on_a_worker_and_returns_its_result() -> None:
    async def main() -> tuple[int, bool]:
        workers = Workers(1)
        workers.start()
        here = threading.get_ident()
        there = await workers.run(threading.get_ident)
        workers.stop()
        return there, there != here

    there, elsewhere = asyncio.run(main())
    assert there
    assert elsewhere


def test_an_error_of_a_call_is_raised_where_it_is_awaited() -> None:
    async def main() -> None:
        workers = Workers(1)
        workers.start()
        try:
            with pytest.raises(ZeroDivisionError):
                await workers.run(lambda: 1 // 0)
            assert await workers.run(lambda: 2) == 2, "the thread goes on"
        finally:
            workers.stop()

    asyncio.run(main())


def test_as_many_calls_run_concurrently_as_there_are_threads() -> None:
    async def main() -> list[int]:
        workers, both = Workers(2), threading.Barrier(2)
        workers.start()
        try:
            return await asyncio.gather(*[workers.run(lambda: both.wait(10)) for _ in range(2)])
        finally:
            workers.stop()

    assert sorted(asyncio.run(main())) == [0, 1]


def test_submitted_calls_run_before_the_threads_stop() -> None:
    done: list[int] = []

    async def main() -> None:
        workers = Workers(1)
        calls = [asyncio.ensure_future(workers.run(lambda number=number: done.append(number))) for number in range(3)]  # type: ignore[misc]  # binds the number
        await asyncio.sleep(0)
        workers.stop()
        workers.start()
        await asyncio.gather(*calls)

    asyncio.run(main())
    assert done == [0, 1, 2]


def test_a_cancelled_waiter_is_not_notified() -> None:
    async def main() -> None:
        workers, go = Workers(1), threading.Event()
        workers.start()
        try:
            call = asyncio.ensure_future(workers.run(lambda: go.wait(10)))
            await asyncio.sleep(0)
            call.cancel()
            go.set()
            assert await workers.run(lambda: "next") == "next"
        finally:
            workers.stop()

    asyncio.run(main())
