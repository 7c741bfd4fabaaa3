"""The cacher: the current state of every resource, built from the log's feed, and recent changes.

Guarantees:
- **Consistent.** After `step`, the state of every resource is exactly the state at `revision`.
- **Single-threaded.** One thread owns the cacher: the thread of the server's event loop, or that of a test. Because one
  thread owns the cacher, the module uses no locks and makes no copies.
- **Non-blocking.** `step` and all reads use memory only. If the feed has lost events, `is_behind` is true. While
  `is_behind` is true, any thread may call `read_missing`, and the owner passes the result to `take`.
- **Cheap reads.** Reading an object takes one look-up, and reading a list one slice. The cost of reading the changes of
  a resource does not depend on other resources. The duration of `step` depends only on the number of new events.
- **Bounded.** At least the newest `window` events are kept as changes, and at most a quarter more than that. The log
  serves older changes (`engine.watch_cache.log_history`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.engine.watch_cache.resource_store import PastRange, ResourceStore, Span
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog.api_history import oldest_for_clients
from ctrlmgr.eventlog.event import Event, EventType, Snapshot
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.event_window import Feed
from ctrlmgr.informer.informer import Change
from ctrlmgr.interpreter import collector_paused

_BATCH = 500
_EMPTY = ResourceStore()


class State(NamedTuple):
    """A snapshot: the objects of a log at a revision, by resource."""

    revision: Revision
    stores: Mapping[Resource, ResourceStore]

    @classmethod
    def of(cls, snapshot: Snapshot) -> State:
        """Split a snapshot by resource into new stores, which the caller owns."""
        with collector_paused():
            by_resource: dict[Resource, list[Object]] = {}
            for obj in snapshot.objects:
                by_resource.setdefault(obj.resource, []).append(obj)
            stores = {resource: ResourceStore(objects, snapshot.revision) for resource, objects in by_resource.items()}
            for obj in snapshot.objects:
                obj.forget_decoded()  # most objects are only sent as bytes, so the decoded form is dropped
        return cls(snapshot.revision, stores)


class Index(Protocol):
    """An index of some resources, which is updated object by object."""

    @property
    def resources(self) -> Sequence[Resource]:
        """The resources whose objects the index needs."""

    def reset(self, resource: Resource, objects: Sequence[Object]) -> None:
        """Replace all indexed objects of a resource by `objects`."""

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Record the new state of an object; None means that it was deleted."""


class _Following:
    """A listener for the changes of a resource, and the newest revision for which it was called."""

    __slots__ = ("listener", "seen")

    def __init__(self, listener: Callable[[], None]) -> None:
        self.listener = listener
        self.seen: Revision = 0


class Cacher:
    """The state on which decisions about requests are based; it implements `strategy.View`."""

    def __init__(self, log: EventLog, feed: Feed, *, window: int = 10_000, is_past: bool = False) -> None:
        """Create a cacher, and load the log's snapshot; `feed` must belong to the same log.

        If `is_past` is set, clients may read every revision of the log, including revisions that the servers of this
        log no longer served.
        """
        self._log = log
        self._feed = feed
        self._is_past = is_past
        self._window = window
        self._trim_at = window + window // 4 + 1
        self._stores: dict[Resource, ResourceStore] = {}
        self._followed: list[tuple[Resource, _Following]] = []
        self._indices: dict[Resource, Index] = {}
        self.revision: Revision = 0
        """The revision of the state, which contains exactly the events up to this revision."""
        self.oldest: Revision = 0
        """The revision after which the cacher holds all changes; older changes are only in the log."""
        self.is_behind = False
        """Whether the feed has lost the next events.

        If the feed has lost events, `step` makes no progress until `take` is called.
        """
        self.take(State.of(log.snapshot()))

    def step(self) -> int:
        """Apply all events that the feed holds, and return the increase of the revision.

        Set `is_behind` if the feed has lost events.
        """
        before = self.revision
        while events := self._feed.held_after(self.revision, limit=_BATCH):
            self._apply(events)
            if len(events) < _BATCH:
                break
        self.is_behind = events is None
        return self.revision - before

    def read_missing(self) -> Sequence[Event] | State:
        """Read from the log the events that the feed has lost; the result is for `take`.

        If the log was compacted, the whole state is read. The read blocks and does not change the cacher, so it may run
        on another thread. Raises the log's errors if the events cannot be read.
        """
        with suppress(Expired):
            if events := self._log.events_after(self.revision, limit=_BATCH):
                return events
        return State.of(self._log.snapshot())

    def take(self, missing: Sequence[Event] | State) -> None:
        """Apply the result of `read_missing`; if events are still missing, the next `step` sets `is_behind`.

        If the result is a whole state, the cacher drops its recent changes. When the recent changes are dropped,
        callers of `changes_after` must read older changes from the log; the log raises `Expired`.
        """
        if not isinstance(missing, State):
            self._apply(missing)
        elif missing.revision >= self.revision:
            self._stores = dict(missing.stores)
            self.revision = self.oldest = missing.revision
            for resource, index in self._indices.items():
                index.reset(resource, self.list(resource))
            for resource, following in self._followed:
                self._tell(resource, following)

    def feed(self, index: Index) -> None:
        """Keep an index up to date from now on, on the cacher's thread; a resource can have only one index."""
        for resource in index.resources:
            self._indices[resource] = index
            index.reset(resource, self.list(resource))

    def follow(self, resource: Resource, listener: Callable[[], None]) -> None:
        """Call `listener` now and after each possible change of a resource's objects, on the cacher's thread."""
        following = _Following(listener)
        self._followed.append((resource, following))
        self._tell(resource, following)

    def _tell(self, resource: Resource, following: _Following) -> None:
        following.seen = self._stores.get(resource, _EMPTY).newest
        following.listener()

    def _apply(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.revision > self.revision:
                obj = event.object
                resource = obj.resource
                self._store_of(resource).apply(event)
                if (index := self._indices.get(resource)) is not None:
                    index.apply(resource, obj.key, None if event.type is EventType.DELETED else obj)
                self.revision = event.revision
        for resource, following in self._followed:
            if self._stores.get(resource, _EMPTY).newest != following.seen:
                self._tell(resource, following)
        if self.revision - self.oldest >= self._trim_at:
            self._trim()

    def _store_of(self, resource: Resource) -> ResourceStore:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = ResourceStore()
        return store

    def _trim(self) -> None:
        self.oldest = self.revision - self._window
        for store in self._stores.values():
            store.forget(self.oldest)

    def oldest_for_clients(self) -> Revision:
        """Return the oldest revision that clients may read; 0 if clients may read all revisions of the log."""
        return 0 if self._is_past else oldest_for_clients(self)

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the object with the given key; None if no object has the key."""
        store = self._stores.get(resource)
        return store.get(key) if store is not None else None

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, in etcd's order; a namespace of None means all namespaces."""
        store = self._stores.get(resource)  # this case is frequent, because admission lists many kinds without objects
        return store.list(Span.of(namespace)) if store else []

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the revision of the last change of any of `resources`; 0 if no object has changed."""
        stores = self._stores
        if stores.keys().isdisjoint(resources):  # the usual case for webhook configurations
            return 0
        return max(store.newest for each in resources if (store := stores.get(each)) is not None)

    def span(self, resource: Resource, span: Span) -> Sequence[Object]:
        """Return the objects whose paths are in a span, in etcd's order."""
        return self._stores.get(resource, _EMPTY).list(span)

    def at(self, revision: Revision, resource: Resource, span: Span) -> PastRange | None:
        """Return the state of the objects in a span at a revision up to `self.revision`.

        The method returns None if only the log contains the state.
        """
        if revision < self.oldest:
            return None
        return self._stores.get(resource, _EMPTY).at(revision, span)

    def changes_after(self, revision: Revision, resource: Resource, limit: int = _BATCH) -> Sequence[Change] | None:
        """Return up to `limit` changes of one resource after a revision.

        The method returns None if some of these changes are only in the log.
        """
        if revision < self.oldest:
            return None
        return self._stores.get(resource, _EMPTY).changes_after(revision, limit)
