"""Implements the event log for controllers of another API server, as far as the server's API allows.

Controllers use this log to read current objects and to write the Lease. Guarantees: a write returns after the server
has acknowledged the write. Reconciles are not recorded, because an API server cannot store them. Methods that would
read old revisions raise `LogUnavailable`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NoReturn

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable, NotFound
from ctrlmgr.eventlog.event import (
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
from ctrlmgr.eventlog.imports import Imported, ImportedRange
from ctrlmgr.eventlog.log import Appending
from ctrlmgr.framework.remote.consistency import ConsistencyStore
from ctrlmgr.framework.remote.remote_api import Api
from ctrlmgr.recording.capture.cluster_client import Served


class NoFeed:
    """A feed without events."""

    def head(self) -> Revision:
        """Return 0, because the feed has no events."""
        return 0

    def events_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event]:
        """Return nothing."""
        return ()

    def held_after(self, revision: Revision, *, limit: int = 500) -> Sequence[Event] | None:
        """Return nothing."""
        return ()

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Return immediately."""
        return 0

    def on_advance(self, wake: Callable[[Revision], None]) -> None:
        """Do not call `wake`, because the feed has no events."""


class _CompletedAppend:
    """The result of a completed append."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events

    def result(self, timeout: float | None = None) -> Sequence[Event]:
        return self._events

    def add_done_callback(self, done: Callable[[Appending], None]) -> None:
        done(self)


class RemoteLog:
    """An `EventLog` whose objects are stored in an API server, as far as the API allows."""

    def __init__(self, api: Api, *, clock: Clock) -> None:
        """Use `api`."""
        self._api = api
        self._clock = clock
        self._served: dict[Resource, Served] = {}
        self.consistency = ConsistencyStore()
        """The store that tracks which writes of this process the caches contain."""

    def served(self, resource: Resource) -> Served:
        """Return the URL path under which a resource is served; raises `NotFound` if the resource is not served."""
        found = self._served.get(resource)
        if found is None:
            found = self._served[resource] = self._api.find(resource)
        return found

    def wrote(self, obj: Object) -> None:
        """Record a write of this process with the revision in the server's response."""
        self.consistency.wrote(obj.resource, obj.key, obj.revision)

    def peek(self) -> Revision | None:
        """Return the revision of the newest write of this process."""
        return self.consistency.newest()

    # Reads

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return an object's current state, None if there is none."""
        if at is not None:
            self._unknown()
        try:
            served = self.served(resource)
            obj = self._api.object("GET", f"{served.url(key.namespace)}/{key.name}")
        except NotFound:
            return None
        return Object(resource, obj.body, obj.revision)

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the current objects of a resource."""
        if resource is None:
            self._unknown()
        revision, objects = self._api.list(self.served(resource), namespace or "")
        return Snapshot(revision, sorted((Object(resource, each.body, each.revision) for each in objects), key=_key))

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return the current objects of each of the `resources`."""
        return {each: self.snapshot(each, at=at) for each in resources}

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the existing objects among those with these keys."""
        found = {key: self.get(resource, key, at=at) for key in keys}
        return {key: obj for key, obj in found.items() if obj is not None}

    def head(self) -> Head:
        """Return the revision of the newest write of this process."""
        return Head("", self.peek() or 0, b"")

    # The Lease

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Appending:
        """Send the write of one proposal to the server, and return when the server has acknowledged it.

        Raises `ApiError` if the server refuses the write. The fence of the proposal is ignored.
        """
        return _CompletedAppend([self._write(each, author) for each in proposals])

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Send the writes of several proposals one by one, as `submit` does."""
        return [self._write(each, author) for each in proposals]

    def _write(self, proposal: Proposal, author: Author) -> Event:
        obj = proposal.object
        path = self.served(obj.resource).url(obj.namespace)
        match proposal.type:
            case EventType.ADDED:
                stored = self._api.object("POST", path, obj.with_metadata(uid="", creation_timestamp=None).body)
            case EventType.MODIFIED:
                stored = self._api.object("PUT", f"{path}/{obj.name}", obj.at(proposal.expected or 0).wire())
            case _:
                self._unknown()
        self.wrote(stored)
        now = self._clock.now()
        return Event(
            stored.revision, obj.revision, proposal.type, stored, now, author.actor, author.user_agent, 0, 0, 0, b""
        )

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Do nothing, because an API server cannot store reconciles."""

    def record_failure(self, failure: Failure) -> None:
        """Do nothing, because an API server cannot store reconciles."""

    def failures(self) -> Sequence[Failure]:
        """Return no records, because an API server cannot store records of reconciles."""
        return ()

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return no trace contexts, because an API server does not return them."""
        return {}

    def flush(self) -> None:
        """Do nothing, because there is no queue of writes."""

    def reconcile(self, id: int) -> Reconcile | None:
        """Return None, because an API server does not store reconciles."""
        return None

    def close(self) -> None:
        """Do nothing, because this log holds no resources to close."""

    # The following methods need a log.

    def _unknown(self) -> NoReturn:
        raise LogUnavailable("a cluster has no past revisions")

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Raise `LogUnavailable`."""
        self._unknown()

    def imports(self) -> Sequence[ImportedRange]:
        """Return nothing."""
        return ()

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Raise `LogUnavailable`."""
        self._unknown()

    def floor(self, resource: Resource | None = None) -> Revision:
        """Raise `LogUnavailable`."""
        self._unknown()

    def revision_at(self, moment: int) -> Revision:
        """Raise `LogUnavailable`."""
        self._unknown()

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Raise `LogUnavailable`."""
        self._unknown()

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Raise `LogUnavailable`."""
        self._unknown()

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Raise `LogUnavailable`."""
        self._unknown()

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Never call the observer, because there are no commits."""


def _key(obj: Object) -> Key:
    return obj.key
