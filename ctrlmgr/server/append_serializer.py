"""Serializes and batches appends that change a shared object.

While an append is in progress, further writes that change its shared object wait. After the append, the serializer
decides the waiting writes one after another, each on the result of the previous writes, and appends these writes
together. For example, if a hundred creations change one ResourceQuota, each creation costs little more than an append
without a shared object.

Guarantees: in this process, only one append per shared object is in progress at a time. Appends begin in the order of
the calls. A refused write does not affect the other writes of its batch. If the log refuses a batch, each write of the
batch is appended alone. Used on the event loop's thread only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ctrlmgr.engine.deferred_proposals import Overlay
from ctrlmgr.engine.operations import Append
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import AlreadyExists, ApiError, Conflict, CtrlmgrError, NotFound
from ctrlmgr.eventlog.event import Author, Cause, Event, Fence, Proposal
from ctrlmgr.tracing import spans

_TOGETHER = 64
"""The maximum number of writes in one append."""

Submit = Callable[[Sequence[Proposal], Author, Cause | None, Fence | None], Awaitable[Sequence[Event]]]


class _Waiting(NamedTuple):
    append: Append
    cause: Cause | None
    fence: Fence | None
    outcome: asyncio.Future[Sequence[Event]]
    trace: str
    """The trace context of the request or reconcile that appends; empty if tracing is off."""

    def can_join(self, other: _Waiting) -> bool:
        """Return whether two appends can be combined: they have the same author, cause, fence and trace."""
        return (self.append.author, *self[1:3], self.trace) == (other.append.author, *other[1:3], other.trace)

    def fail(self, error: CtrlmgrError) -> None:
        if not self.outcome.done():
            self.outcome.set_exception(error)


class AppendSerializer:
    """Serializes and batches appends that change a shared object."""

    def __init__(self, view: View, submit: Submit, catch_up: Callable[[], Awaitable[None]]) -> None:
        """Create a serializer that decides writes on `view`, which `catch_up` updates, and appends with `submit`."""
        self._view = view
        self._submit = submit
        self._catch_up = catch_up
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._working: set[asyncio.Task[None]] = set()

    async def append(self, command: Append, cause: Cause | None, fence: Fence | None) -> Sequence[Event]:
        """Append a write after all earlier writes of its shared object, and return the events of the write.

        Raises `CtrlmgrError` if the write is refused.
        """
        outcome: asyncio.Future[Sequence[Event]] = asyncio.get_running_loop().create_future()
        place = command.late[0].place
        waiting = self._waiting.get(place)
        if waiting is None:
            waiting = self._waiting[place] = deque()
            task = asyncio.create_task(self._work(place, waiting), name=f"appends of {place}")
            self._working.add(task)
            task.add_done_callback(self._working.discard)
        waiting.append(_Waiting(command, cause, fence, outcome, spans.current()))
        return await outcome

    async def _work(self, place: str, waiting: deque[_Waiting]) -> None:
        try:
            while waiting:
                together = [waiting.popleft()]
                while waiting and len(together) < _TOGETHER and waiting[0].can_join(together[0]):
                    together.append(waiting.popleft())
                await self._append_all([each for each in together if not each.outcome.done()])
        finally:
            del self._waiting[place]
            for each in waiting:  # the queue is not empty only if the server stops during an append
                each.outcome.cancel()

    async def _append_all(self, together: Sequence[_Waiting]) -> None:
        try:
            await self._catch_up()
            admitted, shared = self._decide(together)
            if not admitted:
                return
            first = admitted[0]
            proposals = [proposal for each in admitted for proposal in each.append.proposals]
            with spans.within(first.trace):
                events = await self._submit([*proposals, *shared], first.append.author, first.cause, first.fence)
        except (AlreadyExists, Conflict, NotFound) as error:
            if len(together) == 1:
                together[0].fail(error)
                return
            for each in together:
                if not each.outcome.done():
                    await self._append_all([each])
        except CtrlmgrError as error:
            for each in together:
                each.fail(error)
        else:
            _tell(admitted, events)

    def _decide(self, together: Sequence[_Waiting]) -> tuple[list[_Waiting], Sequence[Proposal]]:
        """Decide the waiting writes; return the accepted writes, and the changes of the shared objects."""
        overlay = Overlay(self._view)
        admitted: list[_Waiting] = []
        for each in together:
            own = Overlay(overlay)
            try:
                for late in each.append.late:
                    own.add(late.decide(own))
            except ApiError as error:
                each.fail(error)
                continue
            overlay.add(own.proposals)
            admitted.append(each)
        return admitted, overlay.proposals


def _tell(admitted: Sequence[_Waiting], events: Sequence[Event]) -> None:
    """Return to each waiting write the events that the log stored for its proposals."""
    start = 0
    for each in admitted:
        end = start + len(each.append.proposals)
        if not each.outcome.done():
            each.outcome.set_result(events[start:end])
        start = end
