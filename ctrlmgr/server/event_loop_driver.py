"""Runs the engine's operations on the event loop, and performs their commands without blocking the event loop.

Guarantees (in addition to those that `engine.operations` requires of a driver):
- An operation that appends continues only after the append is durable or finally refused. If the outcome of an append
  is unknown after `WRITE_PATIENCE` seconds, the operation fails with 504. An append with an unknown outcome may still
  reach the log, so the client must read the object again.
- After a refused append, the operation reads a state that contains all events that caused the refusal.
- A slow read continues as long as the database answers other queries. If the database does not respond to other
  queries, the read fails with 503.
- An operation whose commands need no waiting, such as most GETs, runs without switching tasks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.admission_cause_dedup import AdmissionCauseDedup
from ctrlmgr.engine.calls.call import CallOut
from ctrlmgr.engine.operations import Append, Appends, Await, Command, Compute, Consult, Operation, Read, Refresh
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import CtrlmgrError, Expired, LogError, RequestTimeout, StatusDetails
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.event import Author, Cause, Event, Fence, Proposal
from ctrlmgr.eventlog.log import Appending
from ctrlmgr.server.append_serializer import AppendSerializer
from ctrlmgr.server.outbound_calls import Caller
from ctrlmgr.server.watch.follower import Follower
from ctrlmgr.server.workers import Workers
from ctrlmgr.tracing import spans
from ctrlmgr.tracing.latencies import STORAGE, measuring

T = TypeVar("T")


class BatchListener(Protocol):
    """Receives a call before and after each turn of the event loop in which several operations continue."""

    def begin_batch(self) -> None:
        """Handle the beginning of a round; the first operation of the round continues after this call."""

    def end_batch(self) -> None:
        """Handle the end of a round; all operations of the round have ended or wait again."""


WRITE_PATIENCE = 4.5
"""Maximum duration of an append, in seconds."""

READ_PATIENCE = 1.0
"""The seconds between two checks, during a slow read, that the log still responds."""


class Driver:
    """Drives operations. Used on the event loop's thread only."""

    def __init__(
        self,
        event_log: EventLog,
        follower: Follower,
        workers: Workers,
        view: View,
        *,
        computing: Workers,
        rewinds: bool = False,
        caller: Caller | None = None,
    ) -> None:
        """Create a driver that appends to `event_log` and reads it on the threads `workers`.

        `follower` follows the log. `caller` is used to call other processes. Long computations, such as compiling a
        CustomResourceDefinition, run on the threads `computing`. Deferred proposals are decided on `view`, which
        `follower` keeps up to date. `rewinds` says whether the log can be reset to an earlier revision. If the log can
        be reset, a read of a revision that does not exist raises `Expired` instead of waiting for the revision.
        """
        self._log = event_log
        self._follower = follower
        self._workers = workers
        self._computing = computing
        self._rewinds = rewinds
        self._caller = caller or Caller(SystemClock())
        self._admission_causes = AdmissionCauseDedup(event_log)
        self._serializer = AppendSerializer(view, self._submitted, self._current)
        # Appends that have ended, with the futures of their callers. The committing thread adds entries to this list.
        self._ended: deque[tuple[asyncio.Future[Sequence[Event]], Appending]] = deque()
        # whether `_resolve_ended` is scheduled; the committing thread sets this, and the event loop clears it
        self._resolving = False
        self.round: BatchListener | None = None
        """The object that is notified before and after operations whose appends ended together continue."""

    async def run(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Return the result of an operation, or raise its error. The operation's appends carry `cause` and `fence`."""
        try:
            command = next(operation)
            while True:
                try:
                    if type(command) is Refresh and self._follower.is_current():
                        answer = None
                    else:
                        answer = await self._perform(command, cause, fence)
                except CtrlmgrError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def compute(self, call: Callable[[], T]) -> T:
        """Run a long computation on another thread and return its result; raises the computation's error."""
        return await self._computing.run(call)

    async def perform(self, command: Command) -> Any:
        """Perform a command that a worker process sent, and return its result; raises the command's error."""
        return await self._perform(command, None, None)

    async def _perform(self, command: Command, cause: Cause | None, fence: Fence | None) -> Any:
        match command:
            case Refresh():
                with measuring(STORAGE):
                    return await self._follower.catch_up()
            case Append():
                with measuring(STORAGE):
                    return await self._append(command, cause, fence)
            case Appends(appends):
                with measuring(STORAGE):
                    return await asyncio.gather(*(self._outcome(each, cause, fence) for each in appends))
            case Read(call):
                with measuring(STORAGE):
                    return await self._read(call)
            case Compute(call):
                return await self.compute(call)
            case CallOut(calls):
                return await self._caller.call(calls)
            case Consult(ask):
                return await ask()
            case Await(revision, patience):
                if self._rewinds and revision > (newest := self._log.peek() or 0):
                    raise Expired(revision, newest)
                await self._follower.reach(revision, patience)
                return None

    async def _current(self) -> None:
        if not self._follower.is_current():
            await self._follower.catch_up()

    async def _read(self, call: Callable[[], Any]) -> Any:
        """Return the result of `call`, which reads the log; raises `LogUnavailable` if the log does not respond."""
        reading = asyncio.ensure_future(self._workers.run(call))
        try:
            while not (await asyncio.wait((reading,), timeout=READ_PATIENCE))[0]:
                await self._follower.catch_up()
            return reading.result()
        finally:
            reading.cancel()

    async def _append(self, command: Append, cause: Cause | None, fence: Fence | None) -> Sequence[Event]:
        admission_cause = command.cause if cause is None else None
        if command.late:
            events = await self._serializer.append(command, cause or admission_cause, fence)
        else:
            events = await self._submitted(command.proposals, command.author, cause or admission_cause, fence)
        if admission_cause is not None:
            self._admission_causes.end(admission_cause)
        return events

    async def _outcome(
        self, command: Append, cause: Cause | None, fence: Fence | None
    ) -> Sequence[Event] | CtrlmgrError:
        try:
            return await self._append(command, cause, fence)
        except CtrlmgrError as error:
            return error

    async def _submitted(
        self, proposals: Sequence[Proposal], author: Author, cause: Cause | None, fence: Fence | None
    ) -> Sequence[Event]:
        try:
            if spans.tracer is None:
                return await self._appended(self._log.submit(proposals, author=author, fence=fence, cause=cause))
            with spans.span("append"):
                return await self._appended(self._log.submit(proposals, author=author, fence=fence, cause=cause))
        except RequestTimeout:
            raise
        except CtrlmgrError:
            # after a failure, the operation decides on an older state, and the log refuses the operation's append again
            with suppress(LogError):
                await self._follower.catch_up()
            raise

    async def _appended(self, pending: Appending) -> Sequence[Event]:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Sequence[Event]] = loop.create_future()

        def ended(pending: Appending) -> None:
            """Queue the outcome of an append for the event loop.

            `ended` runs on the committing thread, once for each append of a group.
            """
            self._ended.append((outcome, pending))
            if not self._resolving:
                self._resolving = True
                with suppress(RuntimeError):  # the loop is closed, so no caller waits
                    loop.call_soon_threadsafe(self._resolve_ended)

        pending.add_done_callback(ended)
        timer = loop.call_later(WRITE_PATIENCE, _give_up, outcome)
        try:
            return await outcome
        finally:
            timer.cancel()

    def _resolve_ended(self) -> None:
        """Resolve the futures of appends that have ended."""
        # the flag is cleared first, so that the next call resolves the appends that end from here on
        self._resolving = False
        loop, listener = asyncio.get_running_loop(), self.round
        if listener is not None:
            loop.call_soon(listener.begin_batch)  # the loop runs callbacks in the order in which they were scheduled
        try:
            self._tell_ended()
        finally:
            if listener is not None:
                loop.call_soon(listener.end_batch)

    def _tell_ended(self) -> None:
        while self._ended:
            outcome, pending = self._ended.popleft()
            if outcome.done():
                continue
            try:
                outcome.set_result(pending.result(0))
            except CtrlmgrError as error:
                outcome.set_exception(error)


def _give_up(outcome: asyncio.Future[Any]) -> None:
    if not outcome.done():
        message = "Timeout: request did not complete within requested timeout - context deadline exceeded"
        outcome.set_exception(RequestTimeout(message, details=StatusDetails()))
