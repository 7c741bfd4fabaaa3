"""Schedules jobs on the worker processes of a server, fairly between users.

Guarantees:
- A user has at most one running job, so that one user's jobs cannot occupy all processes. At most `WAITING` jobs of a
  user wait; the server refuses a further job of the user with 429.
- A job that runs for more than `DEADLINE` seconds fails with 504, and a job that exceeds the memory limit fails with
  413. In both cases, the server also ends the worker process of the job. Time during which a job waits for the log or a
    webhook
       does not count towards its deadline.
- Worker processes start with the first job, and end after `IDLE` seconds without jobs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from signal import SIGKILL
from typing import Any, Final, NamedTuple

import structlog

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CtrlmgrError, RequestEntityTooLarge, RequestTimeout, StatusDetails, TooManyRequests
from ctrlmgr.largebodies.messages import Answer, Job, JobResult, WorkerMessage
from ctrlmgr.server.largebodies.worker_process import Process, WorkerExited

log = structlog.get_logger(__name__)

DEADLINE: Final = 10.0
"""The maximum running time of a job in seconds: three times the time for the largest body on a slow and busy machine.
"""
PROCESSES: Final = 2
WAITING: Final = 32
"""Maximum number of waiting jobs of a user."""
IDLE: Final = 120.0
"""Seconds without a job after which the worker processes end."""

Start = Callable[[], Awaitable[Process]]
Answering = Callable[[WorkerMessage], Awaitable[Any]]


class _Waiting(NamedTuple):
    """A job that waits for a worker process."""

    job: Job
    answer: Answering
    outcome: asyncio.Future[Any]


class Pool:
    """Schedules jobs on worker processes. Used on the event loop's thread only."""

    def __init__(self, start: Start, clock: Clock, *, deadline: float = DEADLINE, idle: float = IDLE) -> None:
        """Create a pool that starts worker processes by calling `start`."""
        self._start = start
        self._clock = clock
        self._deadline = deadline
        self._idle = idle
        self._free: list[Process] = []
        self._alive = 0  # number of processes that are starting, free or busy
        # waiting jobs by user; users take turns in this order
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._at_work: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._is_stopped = False

    async def run(self, user: str, job: Job, answer: Answering) -> Any:
        """Run a user's job in a worker process and return the job's result; `answer` answers the process's queries.

        Raises the job's error, `RequestTimeout` or `RequestEntityTooLarge` if the job exceeds a limit, or
        `TooManyRequests` if too many of the user's jobs wait.
        """
        own = self._waiting.setdefault(user, deque())
        if len(own) >= WAITING:
            raise TooManyRequests(
                "too many requests, please try again later", details=StatusDetails(retry_after_seconds=1)
            )
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        own.append(_Waiting(job, answer, outcome))
        self._go_on()
        return await outcome

    async def stop(self) -> None:
        """End all worker processes and their jobs."""
        self._is_stopped = True
        if self._resting is not None:
            self._resting.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for own in self._waiting.values():
            for each in own:
                each.outcome.cancel()
        await asyncio.gather(*(process.ended() for process in self._free))
        self._free.clear()

    def _go_on(self) -> None:
        """Assign waiting jobs to free worker processes; if no worker process is free, start a further process."""
        if self._is_stopped:
            return
        while self._free and (found := self._next()) is not None:
            self._begin(self._work(self._free.pop(), *found))
        requested = bool(self._waiting) or bool(self._at_work)
        if requested and not self._free and self._alive < PROCESSES:
            self._alive += 1
            self._begin(self._add())
        self._rest(wanted=requested)

    def _next(self) -> tuple[str, _Waiting] | None:
        """Return the next waiting job and its user. Users take turns; a user with a running job is skipped."""
        for user, own in self._waiting.items():
            if user not in self._at_work:
                waiting = own.popleft()
                del self._waiting[user]
                if own:
                    self._waiting[user] = own  # move this user behind the other users
                self._at_work.add(user)
                return user, waiting
        return None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        """Start a further worker process."""
        try:
            self._free.append(await self._start())
        except WorkerExited:
            self._alive -= 1
            log.exception("starting large body worker failed")
            if not self._alive:
                self._fail_all()
            return
        self._go_on()

    def _fail_all(self) -> None:
        """Fail all waiting jobs, because no worker process can be started."""
        waiting, self._waiting = self._waiting, {}
        for own in waiting.values():
            for each in own:
                if not each.outcome.done():
                    words = "the process for large bodies could not be started"
                    each.outcome.set_exception(RequestTimeout(words, details=StatusDetails()))

    async def _work(self, process: Process, user: str, waiting: _Waiting) -> None:
        outcome = waiting.outcome
        try:
            if not outcome.done():
                await _RunningJob(process, self._clock, self._deadline).do(waiting)
        except WorkerExited:
            self._alive -= 1
            await process.ended()
        except BaseException:
            process.kill()
            outcome.cancel()
            raise
        else:
            self._free.append(process)
        finally:
            self._at_work.discard(user)
        self._go_on()

    def _rest(self, *, wanted: bool) -> None:
        """If no job waits, end the free worker processes after the idle time."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
        if not wanted and self._free:
            self._resting = asyncio.get_running_loop().call_later(self._idle, self._end_free)

    def _end_free(self) -> None:
        self._alive -= len(self._free)
        for process in self._free:
            process.kill()
        self._free.clear()


class _RunningJob:
    """Runs one job in one worker process."""

    def __init__(self, process: Process, clock: Clock, deadline: float) -> None:
        self._process = process
        self._clock = clock
        self._left = deadline
        self._is_overdue = False

    async def do(self, waiting: _Waiting) -> None:
        """Run the job and set its outcome; raises `WorkerExited` if the worker process has ended or must end."""
        try:
            done = await self._done(waiting)
        except WorkerExited:
            self._tell(waiting.outcome, await self._reason())
            raise
        if done.failure:
            log.error("processing large body failed", traceback=done.failure)
        failure = RuntimeError("a large body could not be processed") if done.failure else None
        self._tell(waiting.outcome, done.error or failure, done.value)
        if done.out_of_memory:
            raise WorkerExited

    async def _done(self, waiting: _Waiting) -> JobResult:
        process = self._process
        await process.send(waiting.job)
        while True:
            message = await self._received()
            if isinstance(message, JobResult):
                return message
            try:
                answer = Answer(await waiting.answer(message))
            except CtrlmgrError as error:
                answer = Answer(error=error)
            await process.send(answer)

    async def _received(self) -> Any:
        """Return the next message of the worker process; kill the process when the job's time limit is exceeded."""
        began = self._clock.monotonic()
        timer = asyncio.get_running_loop().call_later(self._left, self._end)
        try:
            return await self._process.receive()
        finally:
            timer.cancel()
            self._left -= self._clock.monotonic() - began

    def _end(self) -> None:
        self._is_overdue = True
        self._process.kill()

    async def _reason(self) -> Exception:
        """Return the error for a job whose worker process has ended."""
        code = await self._process.ended()
        if self._is_overdue:
            log.warning("large body timed out, worker process killed")
            words = "Timeout: request did not complete within the allotted timeout"
            return RequestTimeout(words, details=StatusDetails())
        log.warning("large body worker exited", code=code)
        if code == -SIGKILL:  # the process exceeded its memory limit and exited, or the kernel killed it
            return RequestEntityTooLarge("Request entity is too large", details=StatusDetails())
        return RuntimeError(f"a process for large bodies ended with {code}")

    def _tell(self, outcome: asyncio.Future[Any], error: Exception | None, value: Any = None) -> None:
        with suppress(asyncio.InvalidStateError):
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(value)
