"""The cacher: the current state of every resource, folded from the log's feed, and the changes of the recent past.

Guarantees:
- **One moment.** After `step` every resource is as of `revision`: nothing of it is missing, nothing beyond it is there.
- **Single-threaded.** It belongs to one thread (the server's event loop, a test); nothing here locks or copies.
- **Never in the way.** `step` and all questions are answered from memory. Where that is not enough, `is_behind` says
  so, and what is missing is read by `read_missing`, on any thread, and taken in by `take`.
- **Cheap to ask.** An object is one look-up, a list one slice, the changes of one resource do not depend on how much
  happens to others. `step` costs the new events alone; when there are none, a microsecond.
- **Bounded.** At least the newest `window` events are kept as changes, at most a quarter more; who wants older ones is
  served by the log (`engine.history`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.engine.resource_store import Past, ResourceStore, Span
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog.event import Event, EventType, Snapshot
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.informer import Change
from ctrlmgr.informer.watchcache import Feed
from ctrlmgr.interpreter import collector_paused

_BATCH = 500
_EMPTY = ResourceStore()


class State(NamedTuple):
    """What a log holds at a revision, by resource."""

    revision: Revision
    stores: Mapping[Resource, ResourceStore]

    @classmethod
    def of(cls, snapshot: Snapshot) -> State:
        """Sort a snapshot by resource; the caller owns the result's stores."""
        with collector_paused():
            by_resource: dict[Resource, list[Object]] = {}
            for obj in snapshot.objects:
                by_resource.setdefault(obj.resource, []).append(obj)
            stores = {resource: ResourceStore(objects, snapshot.revision) for resource, objects in by_resource.items()}
            for obj in snapshot.objects:
                obj.forget_decoded()  # most are never asked for more than their bytes
        return cls(snapshot.revision, stores)


class Index(Protocol):
    """Something that is kept up with some resources, object by object."""

    @property
    def resources(self) -> Sequence[Resource]:
        """What it has to be told of."""

    def reset(self, resource: Resource, objects: Sequence[Object]) -> None:
        """Take `objects` for all that there are of a resource."""

    def apply(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Take note that an object of a resource has become `obj`, None if it is gone."""


class _Following:
    """Who wants to know of the changes of a resource, and up to which one they do."""

    __slots__ = ("listener", "seen")

    def __init__(self, listener: Callable[[], None]) -> None:
        self.listener = listener
        self.seen: Revision = 0


class Cacher:
    """The state that requests are decided on; a `strategy.View`."""

    def __init__(self, log: EventLog, feed: Feed, *, window: int = 10_000) -> None:
        """Start as the log's snapshot; `feed` must be of that log."""
        self._log = log
        self._feed = feed
        self._window = window
        self._trim_at = window + window // 4 + 1
        self._stores: dict[Resource, ResourceStore] = {}
        self._followed: dict[Resource, _Following] = {}
        self._indices: dict[Resource, Index] = {}
        self.revision: Revision = 0
        """Everything up to here, and nothing else, is in the state."""
        self.oldest: Revision = 0
        """The changes after this revision are here, older ones are the log's."""
        self.is_behind = False
        """Whether the feed has lost what comes next, so that no `step` gets any further before a `take`."""
        self.take(State.of(log.snapshot()))

    def step(self) -> int:
        """Apply everything that the feed has, and return how far that was; says by `is_behind` if it has lost some."""
        before = self.revision
        while events := self._feed.held_after(self.revision, limit=_BATCH):
            self._apply(events)
            if len(events) < _BATCH:
                break
        self.is_behind = events is None
        return self.revision - before

    def read_missing(self) -> Sequence[Event] | State:
        """Read from the log what the feed has lost, for `take`: events, or everything if the log has lost them too.

        It waits for the log and changes nothing, so that it may run on another thread. Raises what the log raises.
        """
        with suppress(Expired):
            if events := self._log.events_after(self.revision, limit=_BATCH):
                return events
        return State.of(self._log.snapshot())

    def take(self, missing: Sequence[Event] | State) -> None:
        """Go on with what `read_missing` has read; the next `step` tells whether that was enough.

        After a whole state the changes in between are gone: `changes_after` then sends its callers to the
        log, which says `Expired`.
        """
        if not isinstance(missing, State):
            self._apply(missing)
        elif missing.revision >= self.revision:
            self._stores = dict(missing.stores)
            self.revision = self.oldest = missing.revision
            for resource, index in self._indices.items():
                index.reset(resource, self.list(resource))
            for resource, following in self._followed.items():
                self._tell(resource, following)

    def feed(self, index: Index) -> None:
        """Keep an index up with the state from now on, on this thread; a resource has one index at most."""
        for resource in index.resources:
            self._indices[resource] = index
            index.reset(resource, self.list(resource))

    def follow(self, resource: Resource, listener: Callable[[], None]) -> None:
        """Have `listener` called now, and whenever objects of a resource may have changed, on this thread."""
        self._followed[resource] = following = _Following(listener)
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
        for resource, following in self._followed.items():
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

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if there is none."""
        store = self._stores.get(resource)
        return store.get(key) if store is not None else None

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), in etcd's order."""
        store = self._stores.get(resource)  # admission asks for many kinds of which there is nothing
        return store.list(Span.of(namespace)) if store else []

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the revision of the last change of any of these resources, 0 if there was none."""
        stores = self._stores
        if stores.keys().isdisjoint(resources):  # as it is with what hardly anyone registers
            return 0
        return max(store.newest for each in resources if (store := stores.get(each)) is not None)

    def span(self, resource: Resource, span: Span) -> Sequence[Object]:
        """Return the objects whose paths are in a span, in order."""
        return self._stores.get(resource, _EMPTY).list(span)

    def at(self, revision: Revision, resource: Resource, span: Span) -> Past | None:
        """Return what was in a span at a revision not above ours; None if only the log knows."""
        if revision < self.oldest:
            return None
        return self._stores.get(resource, _EMPTY).at(revision, span)

    def changes_after(self, revision: Revision, resource: Resource, limit: int = _BATCH) -> Sequence[Change] | None:
        """Return up to `limit` changes of one resource after a revision; None if some of them only the log has."""
        if revision < self.oldest:
            return None
        return self._stores.get(resource, _EMPTY).changes_after(revision, limit)
