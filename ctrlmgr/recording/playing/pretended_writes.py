"""Answers writes to a recording, which cannot be changed.

`RefusedWrites` refuses all writes. `PretendedWrites` answers as if the writes were made, but only keeps a list of them.
So a controller runs unchanged, and the list contains the writes that it would have made.

Guarantees of `PretendedWrites`: invalid writes are refused as usual (a conflict, the creation of an existing object),
and are not in the list. An answer has the revision of the existing object, or the newest revision for a new object, so
a client that continues from this revision reads the actual state. The newest `KEPT` writes are kept.
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
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Event, EventType, Proposal
from ctrlmgr.eventlog.optimistic_concurrency import EMPTY, Slot, refusal

KEPT = 10_000
"""The maximum number of writes in the list."""

VERBS = {EventType.ADDED: "create", EventType.MODIFIED: "change", EventType.DELETED: "delete"}


class PretendedWrite(msgspec.Struct, frozen=True, rename="camel"):
    """One pretended write: the object as it would be after the write, or its last state for a deletion."""

    number: int
    """The number of the write, counted from 1."""
    verb: str
    resource: str
    namespace: str
    name: str
    user: str
    user_agent: str
    at: Revision
    """The newest revision that had been played at the time of the write."""
    recorded_time: str
    """The time of the recording at the write (RFC 3339)."""
    time: str
    """The real time of the write (RFC 3339)."""
    object: msgspec.Raw


class Moment(Protocol):
    """The position in a recording at the time of a write."""

    @property
    def revision(self) -> Revision:
        """The newest revision that has been played."""

    def current(self, resource: Resource, key: Key) -> Object | None:
        """Return the current state of an object."""


class Writes(Protocol):
    """Decides the answer to an append."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Return the events that answer an append, or raise the refusal."""


class RefusedWrites:
    """Refuses all writes."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Raise `MethodNotAllowed`."""
        raise MethodNotAllowed(
            "a recording is being served, which cannot be changed (--writes pretend answers as if it could)",
            details=StatusDetails(),
        )


class PretendedWrites:
    """Answers writes as if they were made, without storing objects; thread-safe."""

    def __init__(self, stamps: Callable[[], tuple[str, str]]) -> None:
        """Create an empty list of writes; `stamps` returns the time of the recording and the real time (RFC 3339)."""
        self._stamps = stamps
        self._lock = threading.Lock()
        self._kept: deque[PretendedWrite] = deque(maxlen=KEPT)
        self._count = 0

    @property
    def count(self) -> int:
        """The number of writes so far."""
        return self._count

    def after(self, number: int, limit: int) -> list[PretendedWrite]:
        """Return up to `limit` writes of the list after number `number`."""
        with self._lock:
            return [write for write in self._kept if write.number > number][:limit]

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Return the answer to an append as if it were made, and keep its writes; raises the errors of a log."""
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


def _write(
    number: int, proposal: Proposal, event: Event, at: Revision, recorded_time: str, time: str
) -> PretendedWrite:
    key = event.key
    return PretendedWrite(
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
