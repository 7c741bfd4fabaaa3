"""Runs the engine's operations on the calling thread, for tests, tools and callers that may block.

Guarantees: this driver performs each command as `engine.operations` requires. The thread that runs operations owns the
cacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ctrlmgr.engine.admission_cause_dedup import AdmissionCauseDedup
from ctrlmgr.engine.calls.call import UNREACHABLE, Call, CallOut, Reply
from ctrlmgr.engine.deferred_proposals import decided
from ctrlmgr.engine.operations import Append, Appends, Await, Command, Compute, Consult, Operation, Read, Refresh, drive
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import CtrlmgrError, ServiceUnavailable
from ctrlmgr.eventlog.event import Cause, Event, Fence
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.event_window import EventWindow
from ctrlmgr.tracing import spans

T = TypeVar("T")


def _unreachable(call: Call) -> Reply:
    return UNREACHABLE


class Driver:
    """Runs operations one after the other on the calling thread."""

    def __init__(
        self,
        log: EventLog,
        feed: EventWindow,
        cacher: Cacher,
        *,
        patience: float = 3.0,
        fence: Fence | None = None,
        cause: Cause | None = None,
        caller: Callable[[Call], Reply] | None = None,
    ) -> None:
        """Create a driver that appends to `log`; `fence` and `cause` apply to every append.

        `feed` and `cacher` must belong to the log `log`. An operation waits at most `patience` seconds for a future
        revision. The function `caller` calls other processes; if `caller` is None, every call fails.
        """
        self._caller = caller or _unreachable
        self._log = log
        self._feed = feed
        self._cacher = cacher
        self._patience = patience
        self._fence = fence
        self._cause = cause
        self._admission_causes = AdmissionCauseDedup(log)

    def run(self, operation: Operation[T]) -> T:
        """Return the result of an operation, or raise its error."""
        self._step()
        return drive(operation, self._perform)

    def _perform(self, command: Command) -> Any:
        match command:
            case Refresh():
                return self._refresh()
            case Append():
                return self._append(command)
            case Appends(appends):
                return [self._outcome(each) for each in appends]
            case Read() | Compute():
                return command.call()
            case CallOut(calls):
                return [self._caller(call) for call in calls]
            case Consult():
                raise ServiceUnavailable("no event loop runs that could send the request")
            case Await():
                self._feed.wait(command.revision - 1, min(command.timeout, self._patience))
                return self._refresh()

    def _append(self, command: Append) -> Sequence[Event]:
        own = list(command.proposals)
        late = decided(command.late, self._cacher) if command.late else ()
        try:
            with spans.span("append"):
                events = self._log.append(
                    [*own, *late], author=command.author, fence=self._fence, cause=self._cause or command.cause
                )
        except CtrlmgrError:
            self._refresh()
            raise
        if self._cause is None and command.cause is not None:
            self._admission_causes.end(command.cause)
        self._step()
        return events[: len(own)]

    def _outcome(self, command: Append) -> Sequence[Event] | CtrlmgrError:
        try:
            return self._append(command)
        except CtrlmgrError as error:
            return error

    def _refresh(self) -> None:
        self._step()
        newest = self._log.peek()
        if newest is None or newest > self._cacher.revision:
            self._feed.catch_up()
            self._step()

    def _step(self) -> None:
        self._cacher.step()
        while self._cacher.is_behind:
            self._cacher.take(self._cacher.read_missing())
            self._cacher.step()
