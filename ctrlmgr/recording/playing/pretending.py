"""What becomes of writes to a recording, which cannot be changed.

`Refusing` refuses them all. `Pretending` answers as if they were done, stores nothing, and remembers what they were:
so a controller runs unchanged, and afterwards one can see what it would have done.

Guarantees of the latter: what would have been refused is refused (a change made on top of another revision, the
creation of what exists), and is not remembered; what is answered has the revision at which the object is, or for a
new one the newest there is, so that a client that goes on from it finds what is really there. The newest `KEPT` are
kept.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_GROUP, Key, Resource, Revision
from ctrlmgr.errors import MethodNotAllowed, StatusDetails
from ctrlmgr.eventlog.acceptance import EMPTY, Slot, refusal
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Event, EventType, Proposal

KEPT = 10_000
"""How many writes are remembered."""

VERBS = {EventType.ADDED: "create", EventType.MODIFIED: "change", EventType.DELETED: "delete"}


class Write(msgspec.Struct, frozen=True, rename="camel"):
    """One write that was pretended: the object as it would have become, or last been."""

    number: int
    """Counted from 1."""
    verb: str
    resource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    at: Revision
    """The newest revision that had been played when it came."""
    recorded_time: str
    """What time it was in the recording (RFC 3339)."""
    time: str
    """When it came (RFC 3339)."""
    object: msgspec.Raw


class Moment(Protocol):
    """Where a recording is while a client writes."""

    @property
    def revision(self) -> Revision:
        """The newest revision there has been."""

    def current(self, resource: Resource, key: Key) -> Object | None:
        """Return an object as it is now."""


class Writes(Protocol):
    """Decides what becomes of an append."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Return the events that it is answered with, or raise the refusal."""


class Refusing:
    """Nothing can be written."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Raise `MethodNotAllowed`."""
        raise MethodNotAllowed(
            "a recording is being served, which cannot be changed (--writes pretend answers as if it could)",
            details=StatusDetails(),
        )


class Pretending:
    """Everything can be written, and nothing comes of it; used by any threads."""

    def __init__(self, stamps: Callable[[], tuple[str, str]]) -> None:
        """`stamps` returns what time it is in the recording and in the world (RFC 3339)."""
        self._stamps = stamps
        self._lock = threading.Lock()
        self._kept: deque[Write] = deque(maxlen=KEPT)
        self._count = 0

    @property
    def count(self) -> int:
        """How many writes there have been."""
        return self._count

    def after(self, number: int, limit: int) -> list[Write]:
        """Return up to `limit` writes after that of a number, of those that are kept."""
        with self._lock:
            return [write for write in self._kept if write.number > number][:limit]

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Answer as if it were done, and remember it; raises what the log would raise."""
        revision = moment.revision
        events = []
        for index, proposal in enumerate(pending.proposals):
            there = moment.current(proposal.object.resource, proposal.object.key)
            slot = Slot(there.revision, exists=True) if there is not None else EMPTY
            if refused := refusal(proposal, slot):
                raise refused
            events.append(pending.event(index, slot.head or revision, slot.head, b""))
        self._remember(pending, events, revision)
        return events

    def _remember(self, pending: PendingAppend, events: Sequence[Event], revision: Revision) -> None:
        recorded_time, time = self._stamps()
        with self._lock:
            for proposal, event in zip(pending.proposals, events, strict=True):
                if event.resource.group != INTERNAL_GROUP:
                    self._count += 1
                    self._kept.append(_write(self._count, proposal, event, revision, recorded_time, time))


def _write(number: int, proposal: Proposal, event: Event, at: Revision, recorded_time: str, time: str) -> Write:
    key = event.key
    return Write(
        number=number,
        verb=VERBS[proposal.type],
        resource=str(event.resource),
        namespace=key.namespace,
        name=key.name,
        user=event.actor,
        user_agent=event.user_agent,
        at=at,
        recorded_time=recorded_time,
        time=time,
        object=msgspec.Raw(event.object.body),
    )
