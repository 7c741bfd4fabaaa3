"""Runs the engine's operations on a controller's own thread; `engine.operations` defines what a driver must do.

Guarantees:
- The runner uses no event loop. The thread that calls the runner computes the decisions and waits for the appends.
- Every call ends in a bounded time, because the log limits the time of an append, and `PATIENCE` limits the wait for
  the caches.
- If an append was refused, the operation continues only when the state contains all events that caused the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.admission_cause_dedup import AdmissionCauseDedup
from ctrlmgr.engine.calls.call import UNREACHABLE, Call, CallOut, Reply
from ctrlmgr.engine.deferred_proposals import decided
from ctrlmgr.engine.operations import Append, Appends, Await, Command, Compute, Consult, Operation, Read, Refresh, drive
from ctrlmgr.engine.strategy import State
from ctrlmgr.errors import CtrlmgrError, LogUnavailable, ServiceUnavailable
from ctrlmgr.eventlog.event import Cause, Event, Fence
from ctrlmgr.eventlog.log import Appending, EventLog
from ctrlmgr.tracing import spans

T = TypeVar("T")

PATIENCE: Final = 3.5
"""The maximum number of seconds to wait until the caches have caught up with the log."""


def _unreachable(calls: Sequence[Call]) -> list[Reply]:
    return [UNREACHABLE for _ in calls]


class ControllerRunner:
    """A `Runner` for controllers. Several threads may share a runner."""

    def __init__(
        self,
        event_log: EventLog,
        state: State,
        reach: Callable[[Revision, float], bool],
        call: Callable[[Sequence[Call]], Sequence[Reply]] | None = None,
        consult: Callable[[Coroutine[Any, Any, Any]], Any] | None = None,
    ) -> None:
        """Create a runner that appends to `event_log` and reads `state`.

        `reach(revision, seconds)` waits for at most `seconds` until `state` contains the revision, and returns whether
        the state contains the revision. `call` sends requests to other processes; if `call` is None, every request to
        another process fails. The function `consult` runs a coroutine on an event loop and waits for its result.
        """
        self._consult = consult
        self._call = call or _unreachable
        self._log = event_log
        self._admission_causes = AdmissionCauseDedup(event_log)
        self._state = state
        self._reach = reach

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation until it has finished.

        Raises the operation's errors, `Fenced` if this process no longer leads, and `LogUnavailable` if the caches do
        not catch up.
        """
        return drive(operation, lambda command: self._perform(command, cause, fence))

    def _perform(self, command: Command, cause: Cause | None, fence: Fence | None) -> Any:
        match command:
            case Append():
                return self._append(command, cause, fence)
            case Appends(appends):
                return self._append_each(appends, cause, fence)
            case Refresh():
                return self._refresh()
            case Read(call) | Compute(call):
                return call()
            case CallOut(calls):
                return self._call(calls)
            case Consult(ask):
                if self._consult is None:
                    raise ServiceUnavailable("no event loop runs that could send the request")
                return self._consult(ask())
            case Await(revision, patience):
                self._reach(revision, patience)
                return None

    def _append(self, command: Append, cause: Cause | None, fence: Fence | None) -> Sequence[Event]:
        own, admission_cause = command.proposals, command.cause if cause is None else None
        late = decided(command.late, self._state) if command.late else ()
        try:
            with spans.span("append"):
                events = self._log.append(
                    [*own, *late], author=command.author, fence=fence, cause=cause or admission_cause
                )
            if admission_cause is not None:
                self._admission_causes.end(admission_cause)
            return events[: len(own)] if late else events
        except CtrlmgrError as error:
            if error.lost_race:
                self._refresh()
            raise

    def _append_each(
        self, appends: Sequence[Append], cause: Cause | None, fence: Fence | None
    ) -> list[Sequence[Event] | CtrlmgrError]:
        """Submit all appends before waiting for the first one, so that the log commits the appends in few groups."""
        with spans.span("append"):
            found = self._appended_each(appends, cause, fence)
        if any(isinstance(each, CtrlmgrError) and each.lost_race for each in found):
            self._refresh()
        return found

    def _appended_each(
        self, appends: Sequence[Append], cause: Cause | None, fence: Fence | None
    ) -> list[Sequence[Event] | CtrlmgrError]:
        found: list[Sequence[Event] | CtrlmgrError] = []
        for each, pending in [(each, self._submitted(each, cause, fence)) for each in appends]:
            try:
                found.append(pending if isinstance(pending, CtrlmgrError) else pending.result())
            except CtrlmgrError as error:
                found.append(error)
            else:
                if cause is None and each.cause is not None:
                    self._admission_causes.end(each.cause)
        return found

    def _submitted(self, append: Append, cause: Cause | None, fence: Fence | None) -> Appending | CtrlmgrError:
        try:
            return self._log.submit(append.proposals, author=append.author, fence=fence, cause=cause or append.cause)
        except CtrlmgrError as error:
            return error

    def _refresh(self) -> None:
        newest = self._log.peek()
        if newest is None:
            newest = self._log.head().revision
        if self._state.revision < newest and not self._reach(newest, PATIENCE):
            raise LogUnavailable(f"the caches have not reached revision {newest} within {PATIENCE:g} s")
