"""The worker processes of a server, and whose job is next.

Guarantees:
- Users take turns. One user has at most one job in work, so that another user's job finds a process that is free; at
  most `WAITING` jobs of a user wait, and the next one is refused with 429.
- A job that works for more than `DEADLINE` seconds ends with 504, one that takes too much memory with 413, and its
  process with it. What the job waits for meanwhile, the log or a webhook, does not count.
- Processes are started when the first job comes, and end after `IDLE` seconds without any.
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
from ctrlmgr.largebodies.messages import Answer, Ask, Done, Job
from ctrlmgr.server.large.process import Ended, Process

log = structlog.get_logger(__name__)

DEADLINE: Final = 10.0
"""Seconds that a job may work: three times what the largest body takes on a slow machine beside others."""
PROCESSES: Final = 2
WAITING: Final = 32
"""Jobs of a user that wait."""
IDLE: Final = 120.0
"""Seconds without a job after which the processes end."""

Start = Callable[[], Awaitable[Process]]
Answering = Callable[[Ask], Awaitable[Any]]


class _Waiting(NamedTuple):
    """A job that waits for a process."""

    job: Job
    answer: Answering
    outcome: asyncio.Future[Any]


class Pool:
    """See the module's docstring; used on the event loop only."""

    def __init__(self, start: Start, clock: Clock, *, deadline: float = DEADLINE, idle: float = IDLE) -> None:
        """Have `start` start processes."""
        self._start = start
        self._clock = clock
        self._deadline = deadline
        self._idle = idle
        self._free: list[Process] = []
        self._alive = 0  # processes that are starting, free or at work
        self._waiting: dict[str, deque[_Waiting]] = {}  # by user, whose turn is next first
        self._at_work: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: asyncio.TimerHandle | None = None
        self._is_stopped = False

    async def run(self, user: str, job: Job, answer: Answering) -> Any:
        """Have a process do a job for a user, and return what it comes to; `answer` answers its questions.

        Raises what the job raises, `RequestTimeout`, `RequestEntityTooLarge`, `TooManyRequests`.
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
        """End all processes, and the jobs that they are at."""
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
        """Give jobs to free processes, as far as there are both, and have one process more than there is work for."""
        if self._is_stopped:
            return
        while self._free and (found := self._next()) is not None:
            self._begin(self._work(self._free.pop(), *found))
        wanted = bool(self._waiting) or bool(self._at_work)
        if wanted and not self._free and self._alive < PROCESSES:
            self._alive += 1
            self._begin(self._add())
        self._rest(wanted=wanted)

    def _next(self) -> tuple[str, _Waiting] | None:
        """Return the next job and whose it is: users take turns, and who has one in work waits."""
        for user, own in self._waiting.items():
            if user not in self._at_work:
                waiting = own.popleft()
                del self._waiting[user]
                if own:
                    self._waiting[user] = own  # behind the others
                self._at_work.add(user)
                return user, waiting
        return None

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        """Start a process."""
        try:
            self._free.append(await self._start())
        except Ended:
            self._alive -= 1
            log.exception("a process for large bodies could not be started")
            if not self._alive:
                self._fail_all()
            return
        self._go_on()

    def _fail_all(self) -> None:
        """Tell who waits that there is no process."""
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
                await _Doing(process, self._clock, self._deadline).do(waiting)
        except Ended:
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
        """Have free processes end when there has been nothing to do for a while."""
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


class _Doing:
    """One job in one process."""

    def __init__(self, process: Process, clock: Clock, deadline: float) -> None:
        self._process = process
        self._clock = clock
        self._left = deadline
        self._is_overdue = False

    async def do(self, waiting: _Waiting) -> None:
        """Have it done and set its outcome; raises `Ended` if that is the end of the process."""
        try:
            done = await self._done(waiting)
        except Ended:
            self._tell(waiting.outcome, await self._reason())
            raise
        if done.failure:
            log.error("a large body could not be worked on", traceback=done.failure)
        failure = RuntimeError("a large body could not be worked on") if done.failure else None
        self._tell(waiting.outcome, done.error or failure, done.value)
        if done.out_of_memory:
            raise Ended

    async def _done(self, waiting: _Waiting) -> Done:
        process = self._process
        await process.send(waiting.job)
        while True:
            message = await self._received()
            if isinstance(message, Done):
                return message
            try:
                answer = Answer(await waiting.answer(message))
            except CtrlmgrError as error:
                answer = Answer(error=error)
            await process.send(answer)

    async def _received(self) -> Any:
        """Return the next message; the process is killed if that takes longer than it has left."""
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
        """Return the error for a job whose process has ended."""
        code = await self._process.ended()
        if self._is_overdue:
            log.warning("a large body took too long, its process was ended")
            words = "Timeout: request did not complete within the allotted timeout"
            return RequestTimeout(words, details=StatusDetails())
        log.warning("a process for large bodies has ended", code=code)
        if code == -SIGKILL:  # for want of memory: the process does that to itself, or the system does it
            return RequestEntityTooLarge("Request entity is too large", details=StatusDetails())
        return RuntimeError(f"a process for large bodies ended with {code}")

    def _tell(self, outcome: asyncio.Future[Any], error: Exception | None, value: Any = None) -> None:
        with suppress(asyncio.InvalidStateError):
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(value)
