"""An event log that contains the events of a recording which were played so far.

Guarantees:
- At any time of the recording, this log has the same events, revisions and times as the log of the recorded cluster.
  The log begins with the initial objects; reads of earlier revisions raise `Expired`.
- The log has gaps at revisions that were not recorded; `imports` reports this.
- A log only grows, and never loses events. A seek backwards creates another log of the same recording, so a cache or a
  watch of a log never has to remove events.
- `Writes` responds to appends, which are never added to the log.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from random import Random
from uuid import UUID

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import BadRequest, CtrlmgrError, Expired, LogClosed
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Author, Cause, Event, Failure, Fence, Head, Outcome, Proposal, Reconcile, Snapshot
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.imports import Imported, ImportedRange
from ctrlmgr.eventlog.memory_log import state_at
from ctrlmgr.recording.playback.loaded_recording import LoadedRecording
from ctrlmgr.recording.playback.pretended_writes import Writes

_revision = attrgetter("revision")


class PlayedLog:
    """An `EventLog` over a loaded recording; any thread may read the log, but only the player may call `show`."""

    def __init__(self, tape: LoadedRecording, position: int, writes: Writes, *, clock: Clock, random: Random) -> None:
        """Create a log with the first `position` events of `tape`; `random` generates the log's UUID."""
        self.feed = PlayedFeed(self)
        """The feed for the log's event window."""
        self._tape = tape
        self._writes = writes
        self._clock = clock
        self._random = random
        self._uuid = str(UUID(int=random.getrandbits(128), version=4))
        self._changed = threading.Condition()
        self._closed = False
        self._position = position

    @property
    def position(self) -> int:
        """The number of events that have happened, according to the recording's time."""
        return self._position

    def show(self, position: int) -> None:
        """Extend the log to the first `position` events of the recording; `position` never decreases."""
        if position <= self._position:
            return
        with self._changed:
            self._position = position
            self._changed.notify_all()
        self.feed.wake(self.revision)

    @property
    def revision(self) -> Revision:
        """The newest revision that has been played."""
        return self._tape.events[self._position - 1].revision

    @property
    def oldest(self) -> Revision:
        """The revision at which the recording began."""
        return self._tape.events[self._tape.timetable.opening - 1].revision

    def current(self, resource: Resource, key: Key) -> Object | None:
        """Return the current state of an object."""
        return state_at(self._tape.history(resource, key), self.revision)

    # The following methods implement `EventLog`.

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> PendingAppend:
        """Return the response of `Writes` to an append; the append is finished when this method returns."""
        now, id_ = self._clock.now(), self._random.getrandbits(63)
        pending = PendingAppend(proposals, author, fence, cause, recorded_at=now, append_id=id_)
        try:
            self._refuse_closed()
            pending.succeed(self._writes.take(pending, self))
        except CtrlmgrError as error:
            pending.fail(error)
        return pending

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Return the response of `Writes` to several appends."""
        return self.submit(proposals, author=author, fence=fence, cause=cause).result()

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Raise `BadRequest`, because a recording cannot be changed."""
        raise BadRequest("nothing can be imported into a recording that is being played")

    def imports(self) -> Sequence[ImportedRange]:
        """Return one range that spans the whole recording, because gaps may be anywhere."""
        return [ImportedRange(0, self.revision)]

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Ignore the outcome of a reconcile, because a recording contains no reconciles."""

    def record_failure(self, failure: Failure) -> None:
        """Ignore the failure of a reconcile, because a recording contains no reconciles."""

    def failures(self) -> Sequence[Failure]:
        """Return an empty list, because a recording contains no reconciles."""
        return ()

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return no trace contexts, because a recording contains none."""
        return {}

    def flush(self) -> None:
        """Return at once, because this log has no queue."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return None, because a recording contains no reconciles."""
        return None

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`."""
        self._refuse_closed()
        newest = self.revision
        self._refuse_expired(revision)
        events = self._tape.of(resource)
        start = bisect_right(events, revision, key=_revision)
        found = events[start : start + limit]
        return list(takewhile(lambda event: event.revision <= newest, found))

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that exist now, or existed at revision `at`; raises `Expired` for a future revision."""
        position = self._place(at)
        objects = list(self._tape.objects(resource, namespace, position))
        objects.sort(key=lambda obj: (str(obj.resource), obj.key))
        return Snapshot(self._tape.events[position - 1].revision if at is None else at, objects)

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`."""
        return {each: self.snapshot(each, at=at) for each in resources}

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object now or at a revision; None if it did not exist then."""
        position = self._place(at)
        return state_at(self._tape.history(resource, key), self._tape.events[position - 1].revision)

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the objects of `keys` that existed at revision `at`."""
        found = {key: self.get(resource, key, at=at) for key in keys}
        return {key: obj for key, obj in found.items() if obj is not None}

    def head(self) -> Head:
        """Return the newest revision of the log and its hash."""
        self._refuse_closed()
        return Head(self._uuid, self.revision, GENESIS)

    def peek(self) -> Revision:
        """Return the newest revision."""
        self._refuse_closed()
        return self.revision

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision at which the recording began."""
        return self.oldest

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment`."""
        timetable = self._tape.timetable
        return self._tape.events[min(timetable.upto_time(moment), self._position) - 1].revision

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Return 0, because a recording is never compacted."""
        return 0

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every event so far from `start` on."""
        events = self._tape.events
        yield from events[bisect_right(events, start - 1, key=_revision) : self._position]

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while self.revision <= after:
                self._refuse_closed()
                left = None if deadline is None else deadline - self._clock.monotonic()
                if (left is not None and left <= 0) or not self._clock.wait(self._changed, left):
                    break
            return self.revision

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Ignore the observer, because this log commits no events."""

    def close(self) -> None:
        """Raise `LogClosed` from now on, and wake all waiting threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise LogClosed

    def _refuse_expired(self, revision: Revision) -> None:
        if revision < self.oldest:
            raise Expired(revision, self.oldest)

    def _place(self, at: Revision | None) -> int:
        self._refuse_closed()
        position = self._position
        if at is None:
            return position
        self._refuse_expired(at)
        newest = self._tape.events[position - 1].revision
        if at > newest:
            raise Expired(at, newest)
        return self._tape.timetable.upto_revision(at)


class PlayedFeed:
    """The feed of the log's event window; implements `Feed`."""

    def __init__(self, log: PlayedLog) -> None:
        """Follow `log`."""
        self._log = log
        self._wakers: tuple[Callable[[Revision], None], ...] = ()

    def head(self) -> Revision:
        """Return the newest revision that can be read."""
        return self._log.revision

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return up to `limit` events after `revision`."""
        return self._log.events_after(revision, limit=limit)

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return the result of `events_after`, because all events are in memory."""
        return self._log.events_after(revision, limit=limit)

    def catch_up(self) -> Revision:
        """Return the newest revision, which is always current."""
        return self._log.revision

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head."""
        return self._log.wait(after, timeout)

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Call `wake` whenever the log has changed."""
        self._wakers = (*self._wakers, wake)

    def wake(self, revision: Revision) -> None:
        """Notify waiting readers that the log has changed."""
        for wake in self._wakers:
            wake(revision)
