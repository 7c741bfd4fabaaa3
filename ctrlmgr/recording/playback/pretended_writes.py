"""Responds to writes to a recording, which cannot be changed.

`RefusedWrites` refuses all writes. `PretendedWrites` responds as if the writes were made, but only keeps a list of
them. Therefore a controller runs unchanged, and the list contains the writes that the controller would have made.

`PretendedWrites` refuses invalid writes as usual (a conflict, the creation of an existing object), and does not list
them. A response has the revision of the existing object or, for a new object, the newest revision. Therefore a client
that starts a watch at the revision of a pretended write gets all later changes of the recording. The list keeps only
the newest `KEPT` writes.
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
    """One pretended write, with the object in the state that the write would have created.

    For a deletion, `object` is the object's last state.
    """

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
    """The recording's time at the write (RFC 3339)."""
    time: str
    """The real time of the write (RFC 3339)."""
    object: msgspec.Raw


class Moment(Protocol):
    """The position in a recording at the time of a write."""

    @property
    def revision(self) -> Revision:
        """The newest revision that has been played."""

    def current(self, resource: Resource, key: Key) -> Object | None:
        """Return the current state of an object in the recording."""


class Writes(Protocol):
    """Decides the response to an append."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Return the events that an append returns, or raise the error that refuses it."""


class RefusedWrites:
    """Refuses every write with an error."""

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Raise `MethodNotAllowed`."""
        raise MethodNotAllowed(
            "a recording is being served, which cannot be changed (--writes pretend answers as if it could)",
            details=StatusDetails(),
        )


class PretendedWrites:
    """Responds to writes as if they were made, without storing objects; thread-safe."""

    def __init__(self, stamps: Callable[[], tuple[str, str]]) -> None:
        """Create an empty list of writes; `stamps` returns the time of the recording and the real time (RFC 3339)."""
        self._stamps = stamps
        self._lock = threading.Lock()
        self._kept: deque[PretendedWrite] = deque(maxlen=KEPT)
        self._count = 0

    @property
    def count(self) -> int:
        """The number of pretended writes since the start."""
        return self._count

    def after(self, number: int, limit: int) -> list[PretendedWrite]:
        """Return up to `limit` writes of the list that follow the write with the number `number`."""
        with self._lock:
            return [write for write in self._kept if write.number > number][:limit]

    def take(self, pending: PendingAppend, moment: Moment) -> Sequence[Event]:
        """Return the response to an append as if it were made, and list its writes; raises the errors of a log."""
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
