"""The event log in memory, for tests and replay. The log is lost when its process exits.

The memory log passes the same contract suite as the SQL logs. Appends run on the calling thread under one lock.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from operator import attrgetter
from random import Random
from uuid import UUID

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import ApiError, BadRequest, CtrlmgrError, Expired, LogClosed
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import (
    FAILURES_KEPT,
    Author,
    Cause,
    Event,
    EventType,
    Failure,
    Fence,
    Head,
    Outcome,
    Proposal,
    Reconcile,
    Snapshot,
)
from ctrlmgr.eventlog.hash_chain import GENESIS, Place, link
from ctrlmgr.eventlog.imports import Imported, ImportedRange, extended, place_batch
from ctrlmgr.eventlog.optimistic_concurrency import EMPTY, Slot, fence_refusal, namespace_refusal, refusal
from ctrlmgr.eventlog.verification import Epoch, Stored

_revision = attrgetter("revision")
_Place = tuple[Resource, Key]


class MemoryEventLog:
    """An `EventLog` in memory."""

    def __init__(self, *, clock: Clock, random: Random) -> None:
        """Create an empty log; `random` generates the UUID of the log and the ids of its appends."""
        self._clock = clock
        self._random = random
        self._started_at = clock.now()
        self._uuid = str(UUID(int=random.getrandbits(128), version=4))
        self._changed = threading.Condition()
        # The condition `_changed` guards all attributes that follow.
        self._events: list[Event] = []  # ascending revisions; above every floor without gaps, except in imported ranges
        self._imports: list[ImportedRange] = []
        self._places: dict[_Place, list[Event]] = {}  # the retained events of each object, ascending, never empty
        self._terms: dict[str, int] = {}
        self._reconciles: dict[int, Reconcile] = {}
        self._failures: dict[tuple[str, str, int], Failure] = {}  # ordered by the time of the last update
        self._traces: dict[int, str] = {}  # the trace contexts of traced appends, by the ids of the appends
        self._floors: dict[Resource | None, Revision] = defaultdict(int)  # None: compactions of all resources
        self._parents: dict[Revision, bytes] = {}  # parent hash of the first event after each compacted range
        self._head: Revision = 0
        self._hash = GENESIS
        self._observers: list[Callable[[Sequence[Event]], None]] = []
        self._closed = False

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> PendingAppend:
        """Append immediately; the returned append is already finished."""
        pending = PendingAppend(
            proposals,
            author,
            fence,
            cause,
            recorded_at=self._clock.now(),
            append_id=self._random.getrandbits(63),
        )
        with self._open():
            try:
                events = self._append(pending)
            except CtrlmgrError as error:
                pending.fail(error)
                return pending
            for observer in self._observers:
                observer(events)
            self._changed.notify_all()
        pending.succeed(events)
        return pending

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Append atomically."""
        return self.submit(proposals, author=author, fence=fence, cause=cause).result()

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Add events at their recorded revisions; see the protocol."""
        with self._open():
            after = self._head
            placed = place_batch(events, after, self._hash, self._slot_of, self._random.getrandbits(63))
            added = [each.event for each in placed]
            if not added:
                return added
            self._keep(added)
            stretch = extended(self._imports, after, self._head)
            if self._imports and self._imports[-1].after == stretch.after:
                self._imports.pop()
            self._imports.append(stretch)
            for observer in self._observers:
                observer(added)
            self._changed.notify_all()
        return added

    def _slot_of(self, at: Place) -> Slot:
        resource, namespace, name = at
        return self._slot((Resource.parse(resource), Key(namespace, name)))

    def imports(self) -> Sequence[ImportedRange]:
        """Return the imported ranges of revisions, oldest first."""
        with self._open():
            return list(self._imports)

    @contextmanager
    def _open(self) -> Iterator[None]:
        """Hold the lock of the log in a context; raise `LogClosed` if the log is closed."""
        with self._changed:
            if self._closed:
                raise LogClosed
            yield

    def _append(self, pending: PendingAppend) -> list[Event]:
        fence = pending.fence
        if fence and (fenced := fence_refusal(fence, self._terms.get(fence.lease, 0))):
            raise fenced
        events = self._place(pending)
        self._keep(events)
        if fence and fence.takeover:
            self._terms[fence.lease] = fence.term
        if pending.cause:
            self._reconciles.setdefault(pending.cause.id, Reconcile(pending.cause, None))
        if pending.trace:
            self._traces[pending.stamp.append_id] = pending.trace
        return events

    def _keep(self, events: Sequence[Event]) -> None:
        for event in events:
            self._places.setdefault((event.resource, event.key), []).append(event)
        self._events += events
        self._head, self._hash = events[-1].revision, events[-1].hash

    def _place(self, pending: PendingAppend) -> list[Event]:
        """Return the events of an append with revisions and hashes, or raise the first refusal.

        The function does not change the log.
        """
        events: list[Event] = []
        touched: dict[_Place, Slot] = {}  # states of objects after the earlier proposals of this append
        revision, chain = self._head, self._hash
        for index, proposal in enumerate(pending.proposals):
            place = (proposal.object.resource, proposal.object.key)
            slot = touched.get(place) or self._slot(place)
            if refused := refusal(proposal, slot) or self._refused_within(proposal, touched):
                raise refused
            revision += 1
            chain = link(chain, revision, slot.head, pending.digests[index])
            events.append(pending.event(index, revision, slot.head, chain))
            touched[place] = Slot(revision, proposal.type is not EventType.DELETED)
        return events

    def _refused_within(self, proposal: Proposal, touched: Mapping[_Place, Slot]) -> ApiError | None:
        if proposal.within is None:
            return None
        place = (NAMESPACES, Key("", proposal.object.namespace))
        return namespace_refusal(proposal, touched.get(place) or self._slot(place))

    def _slot(self, place: _Place) -> Slot:
        history = self._places.get(place)
        return Slot(history[-1].revision, history[-1].type is not EventType.DELETED) if history else EMPTY

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Record the outcome of a reconcile that appended events."""
        with self._open():
            if known := self._reconciles.get(reconcile):
                self._reconciles[reconcile] = Reconcile(known.cause, outcome)

    def record_failure(self, failure: Failure) -> None:
        """Add a failure record or update it."""
        with self._open():
            self._failures.pop(identity := (failure.controller, failure.key, failure.since), None)
            self._failures[identity] = failure
            self._failures = dict([*self._failures.items()][-FAILURES_KEPT:])

    def failures(self) -> Sequence[Failure]:
        """Return the recorded failures, the most recent first."""
        with self._open():
            return sorted(self._failures.values(), key=lambda each: each.last_at, reverse=True)

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return the trace contexts of events whose appends were traced."""
        with self._open():
            if not self._traces:
                return {}
            wanted = frozenset(revisions)
            after = bisect_right(self._events, min(wanted, default=0) - 1, key=_revision)
            found = (each for each in self._events[after:] if each.revision in wanted)
            return {each.revision: self._traces[each.append_id] for each in found if each.append_id in self._traces}

    def flush(self) -> None:
        """Return immediately, because this log has no queue."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return the recorded reconcile with this id; None if there is none."""
        with self._open():
            return self._reconciles.get(id)

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`."""
        with self._open():
            self._refuse_expired(revision, resource)
            start = bisect_right(self._events, revision, key=_revision)
            if resource is None:
                return self._events[start : start + limit]
            found = []
            for index in range(start, len(self._events)):
                if self._events[index].resource == resource:
                    found.append(self._events[index])
                    if len(found) == limit:
                        break
            return found

    def _refuse_expired(self, requested: Revision, resource: Resource | None) -> None:
        floor = self._floor(resource)
        if requested < floor:
            raise Expired(requested, floor)

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that exist now, or existed at revision `at`."""
        with self._open():
            revision = self._readable(at, resource)
            states = [
                state
                for (res, key), history in self._places.items()
                if (resource is None or res == resource) and (namespace is None or key.namespace == namespace)
                if (state := state_at(history, revision))
            ]
        states.sort(key=lambda obj: (str(obj.resource), obj.key))
        return Snapshot(revision, states)

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`."""
        return {each: self.snapshot(each, at=at) for each in resources}

    def _readable(self, at: Revision | None, resource: Resource | None) -> Revision:
        if at is None:
            return self._head
        if at > self._head:
            raise BadRequest(f"revision {at} is beyond the head, {self._head}")
        self._refuse_expired(at, resource)
        return at

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object as it is now or was at a revision; None if it did not exist."""
        with self._open():
            revision = self._readable(at, resource)
            return state_at(self._places.get((resource, key), []), revision)

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the objects of `keys` that existed at revision `at`."""
        found = {key: self.get(resource, key, at=at) for key in keys}
        return {key: obj for key, obj in found.items() if obj is not None}

    def head(self) -> Head:
        """Return the newest revision of the log and its hash."""
        with self._open():
            return Head(self._uuid, self._head, self._hash)

    def peek(self) -> Revision:
        """Return the newest revision without taking the lock, because reading one attribute is atomic."""
        if self._closed:
            raise LogClosed
        return self._head

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` has been compacted; None means the highest of all resources."""
        with self._open():
            return self._floor(resource)

    def _floor(self, resource: Resource | None) -> Revision:
        if resource is None:
            return max(self._floors.values(), default=0)
        return max(self._floors[resource], self._floors[None])

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment`."""
        with self._open():
            return next((event.revision for event in reversed(self._events) if event.recorded_at <= moment), 0)

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Remove superseded events, as `EventLog.compact` specifies."""
        with self._open():
            before = min(before, self._head)
            self._floors[resource] = max(self._floors[resource], before)
            forgotten: set[Revision] = set()
            for place, history in list(self._places.items()):
                if resource is not None and place[0] != resource:
                    continue
                kept = _kept(history, before, keep, self._head)
                forgotten.update(event.revision for event in history[: len(history) - len(kept)])
                if kept:
                    self._places[place] = kept
                else:
                    del self._places[place]
            self._forget(forgotten)
            return len(forgotten)

    def _forget(self, forgotten: set[Revision]) -> None:
        """Remove events, and store the parent hash of the event after each removed range."""
        if not forgotten:
            return
        causes = {event.reconcile for event in self._events if event.revision in forgotten}
        for before, event in pairwise(self._events):
            if before.revision in forgotten:
                # An existing entry is the hash of an event that is closer to the kept event.
                self._parents.setdefault(event.revision, before.hash)
        self._events = [event for event in self._events if event.revision not in forgotten]
        for cause in causes - {event.reconcile for event in self._events}:
            self._reconciles.pop(cause, None)
        for revision in forgotten:
            self._parents.pop(revision, None)

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` on."""
        with self._open():
            events = self._events[bisect_right(self._events, start - 1, key=_revision) :]
        yield from events

    def stored(self, *, start: Revision = 1) -> Iterator[Stored]:
        """Yield every retained event with the data that `verify` needs."""
        with self._open():
            parents = dict(self._parents)
        for event in self.scan(start=start):
            yield Stored(event, event.key, parents.get(event.revision))

    def epochs(self) -> Sequence[Epoch]:
        """Return the log's only incarnation."""
        return [Epoch(self._uuid, 0, GENESIS, self._started_at, "created")]

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while self._head <= after:
                if self._closed:
                    raise LogClosed
                left = None if deadline is None else deadline - self._clock.monotonic()
                if (left is not None and left <= 0) or not self._clock.wait(self._changed, left):
                    break
            return self._head

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call `observer` with the events of each append."""
        with self._open():
            self._observers.append(observer)

    def close(self) -> None:
        """Refuse further appends and wake all waiting threads."""
        with self._changed:
            self._closed = True
            # An event window observes this log and refers to it. Clearing the observers breaks the reference cycle.
            self._observers.clear()
            self._changed.notify_all()


def state_at(history: Sequence[Event], revision: Revision) -> Object | None:
    """Return the state of an object at `revision`, given its retained events in order; None if it did not exist."""
    index = bisect_right(history, revision, key=_revision)
    if not index or history[index - 1].type is EventType.DELETED:
        return None
    return history[index - 1].object


def _kept(history: list[Event], before: Revision, keep: int, head: Revision) -> list[Event]:
    """Return the events of one object that compaction at `before` keeps; the log's last event is always kept."""
    newest = bisect_right(history, before, key=_revision) - 1  # the event that set the object's state at `before`
    first = max(0, min(newest, len(history) - keep))
    if first == newest == len(history) - 1 and history[newest].type is EventType.DELETED:
        first += history[newest].revision < head  # no older event is kept, so the DELETED event can be removed too
    return history[first:]
