"""Tests of the pool of worker processes, with simulated processes: the order of jobs, and how jobs end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import NotFound, RequestEntityTooLarge, RequestTimeout, TooManyRequests
from ctrlmgr.largebodies.messages import Answer, Job, JobResult, WorkerMessage
from ctrlmgr.server.largebodies.pool import PROCESSES, WAITING, Pool
from ctrlmgr.server.largebodies.worker_process import WorkerExited


class SimulatedWorker:
    """A simulated worker process: each job is a list of messages; a job without further messages runs until the process
    is killed.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.is_alive = True
        self._messages: asyncio.Queue[Any] = asyncio.Queue()

    async def send(self, value: Any) -> None:
        if isinstance(value, Answer):
            self.stage.answers.append(value)
            return
        self.stage.began.append(value.work.decode())
        for each in self.stage.plays.get(value.work.decode(), ()):
            await self._messages.put(each)
        self.stage.at_work.set()

    async def receive(self) -> Any:
        message = await self._messages.get()
        if message is None:
            raise WorkerExited
        return message

    def end_job(self) -> None:
        self._messages.put_nowait(JobResult("done"))

    def kill(self) -> None:
        self.is_alive = False
        self._messages.put_nowait(None)

    async def ended(self) -> int:
        self.is_alive = False
        return self.stage.code


class Stage:
    """A pool of worker processes, and the messages that its simulated processes received and sent."""

    def __init__(self) -> None:
        self.plays: dict[str, list[Any]] = {}
        self.began: list[str] = []
        self.answers: list[Answer] = []
        self.made: list[SimulatedWorker] = []
        self.at_work = asyncio.Event()
        self.code = -9
        self.can_start = True

    async def start(self) -> Any:
        if not self.can_start:
            raise WorkerExited
        process = SimulatedWorker(self)
        self.made.append(process)
        return process

    def pool(self, **given: float) -> Pool:
        return Pool(self.start, SystemClock(), **given)


def job(name: str) -> Job:
    return Job(0, 0, 0, name.encode())


async def no_answer(ask: WorkerMessage) -> Any:
    raise NotFound("nothing is there")


def run(main: Callable[[Stage], Coroutine[Any, Any, Any]]) -> Any:
    async def staged() -> Any:
        return await main(Stage())

    return asyncio.run(staged())


async def begun(stage: Stage, count: int) -> None:
    while len(stage.began) < count:
        stage.at_work.clear()
        await asyncio.wait_for(stage.at_work.wait(), 10)


async def settled() -> None:
    """Run all tasks of the event loop that can continue."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_job_runs_and_its_queries_are_answered() -> None:
    async def main(stage: Stage) -> None:
        stage.plays["a"] = [WorkerMessage("get", (1,)), JobResult(5)]
        stage.plays["b"] = [WorkerMessage("get", (1,)), JobResult(error=NotFound("gone"))]
        pool = stage.pool()

        async def answer(ask: WorkerMessage) -> Any:
            return ask.arguments[0] + 1

        assert await pool.run("x", job("a"), answer) == 5
        with pytest.raises(NotFound, match="gone"):
            await pool.run("x", job("b"), no_answer)
        assert [each.value for each in stage.answers] == [2, None]
        assert str(stage.answers[1].error) == "nothing is there"
        assert len(stage.made) <= PROCESSES
        await pool.stop()
        assert not any(each.is_alive for each in stage.made)

    run(main)


def test_users_take_turns_and_one_user_leaves_one_process_free() -> None:
    async def main(stage: Stage) -> None:
        pool = stage.pool()
        many = [asyncio.ensure_future(pool.run("many", job(f"m{number}"), no_answer)) for number in range(3)]
        await begun(stage, 1)
        await settled()
        assert stage.began == ["m0"], "a process is left for others"
        other = asyncio.ensure_future(pool.run("other", job("o0"), no_answer))
        third = asyncio.ensure_future(pool.run("third", job("t0"), no_answer))
        await begun(stage, 2)
        assert stage.began == ["m0", "o0"]
        stage.made[1].end_job()
        stage.made[0].end_job()
        await begun(stage, 3)
        for process in stage.made:
            process.end_job()
        await begun(stage, 4)
        assert set(stage.began[2:4]) == {"m1", "t0"}
        for _ in range(3):
            for process in stage.made:
                process.end_job()
            await settled()
        assert await asyncio.gather(*many, other, third) == ["done"] * 5
        await pool.stop()

    run(main)


def test_the_queue_of_one_user_is_limited_without_affecting_others() -> None:
    async def main(stage: Stage) -> None:
        pool = stage.pool()
        first = asyncio.ensure_future(pool.run("many", job("m"), no_answer))
        await begun(stage, 1)
        waiting = [asyncio.ensure_future(pool.run("many", job(f"m{n}"), no_answer)) for n in range(WAITING)]
        await settled()
        with pytest.raises(TooManyRequests) as refused:
            await pool.run("many", job("more"), no_answer)
        assert refused.value.details is not None
        assert refused.value.details.retry_after_seconds == 1
        stage.plays["o"] = [JobResult("o")]
        assert await pool.run("other", job("o"), no_answer) == "o"
        await pool.stop()
        await settled()
        assert all(each.cancelled() for each in (first, *waiting))

    run(main)


def test_a_job_above_the_time_limit_is_killed_and_its_process_replaced() -> None:
    async def main(stage: Stage) -> None:
        pool = stage.pool(deadline=0.02)
        with pytest.raises(RequestTimeout):
            await pool.run("x", job("endless"), no_answer)
        assert not stage.made[0].is_alive
        stage.plays["next"] = [JobResult("next")]
        assert await pool.run("x", job("next"), no_answer) == "next"
        await pool.stop()

    run(main)


def test_waiting_times_of_a_job_do_not_count() -> None:
    async def main(stage: Stage) -> None:
        stage.plays["a"] = [WorkerMessage("command", ()), JobResult("a")]
        pool = stage.pool(deadline=0.2)

        async def slow(ask: WorkerMessage) -> None:
            await asyncio.sleep(0.3)

        assert await pool.run("x", job("a"), slow) == "a"
        await pool.stop()

    run(main)


def test_a_job_above_the_memory_limit_is_refused_and_its_process_replaced() -> None:
    async def main(stage: Stage) -> None:
        stage.plays["a"] = [JobResult(error=RequestEntityTooLarge("too large"), out_of_memory=True)]
        stage.plays["b"] = [None]
        stage.plays["c"] = [JobResult("c")]
        pool = stage.pool()
        for each in ("a", "b"):
            with pytest.raises(RequestEntityTooLarge):
                await pool.run("x", job(each), no_answer)
        assert await pool.run("x", job("c"), no_answer) == "c"
        await settled()
        assert sum(each.is_alive for each in stage.made) <= PROCESSES
        await pool.stop()

    run(main)


@pytest.mark.parametrize(("code", "error"), [(-9, RequestEntityTooLarge), (1, RuntimeError)])
def test_the_exit_of_a_process_is_reported_with_its_reason(code: int, error: type[Exception]) -> None:
    async def main(stage: Stage) -> None:
        stage.code = code
        stage.plays["a"] = [None]
        pool = stage.pool()
        with pytest.raises(error):
            await pool.run("x", job("a"), no_answer)
        await pool.stop()

    run(main)


def test_idle_processes_end_and_start_again() -> None:
    async def main(stage: Stage) -> None:
        stage.plays["a"] = [JobResult("a")]
        pool = stage.pool(idle=0.02)
        assert await pool.run("x", job("a"), no_answer) == "a"
        ends_at = asyncio.get_running_loop().time() + 10
        while any(each.is_alive for each in stage.made):
            assert asyncio.get_running_loop().time() < ends_at
            await asyncio.sleep(0.01)
        assert await pool.run("x", job("a"), no_answer) == "a"
        await pool.stop()

    run(main)


def test_an_internal_error_is_raised_and_the_process_continues() -> None:
    async def main(stage: Stage) -> None:
        stage.plays["a"] = [JobResult(failure="Traceback: a mistake")]
        stage.plays["b"] = [JobResult("b")]
        pool = stage.pool()
        with pytest.raises(RuntimeError, match="could not be processed"):
            await pool.run("x", job("a"), no_answer)
        assert await pool.run("x", job("b"), no_answer) == "b"
        assert all(each.is_alive for each in stage.made)
        await pool.stop()

    run(main)


def test_a_process_that_cannot_start_is_reported() -> None:
    async def main(stage: Stage) -> None:
        stage.can_start = False
        pool = stage.pool()
        with pytest.raises(RequestTimeout, match="could not be started"):
            await pool.run("x", job("a"), no_answer)
        await pool.stop()

    run(main)
