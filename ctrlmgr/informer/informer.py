"""An informer is a store that begins with a snapshot of the log and applies each later event.

Informers call handlers for each change.

Guarantees:
- **One cursor.** All informers of one `Informers` are at the same revision. The stores contain all events up to
  `revision` and no later ones. Only while an event is applied, the store of the event's resource may be one event
  ahead.
- **Once, in order.** Each event is applied once. An event at or below `revision` is ignored and calls no handler.
- **Store first.** Handlers run on the stepping thread, after the change is in the store and `revision` has advanced.
  Therefore code that a handler notifies finds the change in the lister.
- **An unbroken chain.** For each key, `old` of a change is `new` of the previous change. The chain of changes is also
  unbroken across a re-sync, which passes only differences to handlers. If an object was created and deleted between two
  snapshots, handlers receive no change. If an object was deleted and created again between two snapshots, handlers
  receive one MODIFIED with another uid.

- **Handlers are isolated.** With a quarantine, a handler that raises is removed, because it may have missed a change;
  the other handlers still receive the change. The error of a vital handler is raised by `step`, and ends `run` and the
  manager. Without a quarantine (in tests and replays), `step` raises the error of any handler.

Errors of index functions are not isolated.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock, pause
from ctrlmgr.errors import Expired, LogUnavailable
from ctrlmgr.eventlog.event import Event, EventType, Snapshot
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.event_window import Feed
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.informer.store import IndexFunction, Lister, Store
from ctrlmgr.interpreter import collector_paused

log = structlog.get_logger(__name__)

_LOOK_UP = 0.5
"""The time in seconds after which `run` checks the stop event again."""

_RETRY = 1.0
"""Seconds between attempts to read the log while it is unavailable."""

_MANY = 10_000
"""The number of objects in a store from which on `gc.freeze` saves time."""


class Change(NamedTuple):
    """A change of one object.

    A change of type ADDED has no `old`. A change of type DELETED has no `new`, and its `old` is the object's last
    state.
    """

    type: EventType
    old: Object | None
    new: Object | None
    revision: Revision
    is_listed: bool = False
    """Whether the object existed before the informer or handler started, so that no event caused the change."""
    is_request: bool = False
    """Whether a request wrote the object, and not a reconcile; False if the author is unknown."""

    @property
    def object(self) -> Object:
        """The object's new state; if the object was deleted, its last state."""
        return self.new or self.old  # type: ignore[return-value]  # no change has neither


Handler = Callable[[Change], None]
SyncHandler = Callable[[], None]


class Informer:
    """The store of one resource and its handlers. `Informers.informer` creates the instances."""

    def __init__(
        self,
        resource: Resource,
        is_telling: Callable[[], bool] = lambda: False,
        quarantine: Quarantine | None = None,
    ) -> None:
        """Start with an empty store that has not synced; `is_telling` returns whether handlers are being called now.

        Handlers that raise are removed and recorded in the `quarantine`; without a quarantine, their errors are raised.
        """
        self.resource = resource
        self._is_telling = is_telling
        self._store = Store()
        self._handlers: list[Handler] = []
        self._sync_handlers: list[SyncHandler] = []
        self._quarantine = quarantine
        self._names: dict[Handler | SyncHandler, str] = {}  # The names of the handlers that may be removed.
        self._synced = False
        # This field is set only after the store contains the change. If the field were set earlier, a reader could list
        # the old state and regard the list as new.
        self._changed_at: Revision = 0

    @property
    def lister(self) -> Lister:
        """The read side of the store."""
        return self._store

    @property
    def has_synced(self) -> bool:
        """Return whether the first snapshot is in the store and every handler has received the snapshot's objects."""
        return self._synced

    def add_index(self, name: str, fn: IndexFunction) -> None:
        """Add an index: `lister.by_index(name, value)` returns the objects for which `fn` yields `value`.

        The function `fn` must be pure.
        """
        self._store.add_index(name, fn)

    def add_label_index(self) -> None:
        """Add an index by labels, with which `lister.list` finds objects without reading all objects."""
        self._store.add_label_index()

    def add_handler(self, fn: Handler, *, name: str = "", vital: bool = False) -> None:
        """Call `fn` with every change.

        When the informer syncs, `fn` receives existing objects as changes of type ADDED.

        `name` is the handler's name in log lines and health checks. A `vital` handler is never removed, because other
        code depends on the state that the handler keeps.

        After the sync, only a running handler may add a handler. The new handler receives the existing objects at once.
        At other times after the sync, the method raises RuntimeError, because the new handler would miss changes.
        """
        if self._synced:
            if not self._is_telling():
                raise RuntimeError(f"a handler of {self.resource} was added after it synced")
            for obj in self._store.list():
                fn(Change(EventType.ADDED, None, obj, obj.revision, is_listed=True))
                obj.forget_decoded()
        if not vital:
            self._names[fn] = name or getattr(fn, "__qualname__", repr(fn))
        self._handlers.append(fn)

    def add_sync_handler(self, fn: SyncHandler, *, name: str = "") -> None:
        """Call `fn` after each re-sync.

        A sync handler is necessary because handlers receive no changes of objects that were created and deleted between
        two snapshots.

        In Kubernetes, informers pass every object to their handlers after a relist. A controller that depends on this
        behaviour uses a sync handler.
        """
        self._names[fn] = name or getattr(fn, "__qualname__", repr(fn))
        self._sync_handlers.append(fn)

    def _apply(self, event: Event) -> Change | None:
        """Apply an event to the store; return the change for the handlers, or None if handlers need not be called."""
        new = None if event.type is EventType.DELETED else event.object
        return self._put(event.key, new, event.revision, is_request=not event.reconcile)

    def _put(self, key: Key, new: Object | None, revision: Revision, *, is_request: bool = False) -> Change | None:
        old = self._store.apply(key, new)
        self._changed_at = revision
        return _change(old, new, revision, is_request=is_request) if self._handlers else None

    def _replace(self, snapshot: Snapshot) -> Iterator[Change]:
        """Replace the store's content with a snapshot.

        Return an iterator over the changes, which computes the differences while the caller iterates.
        """
        before, after = self._store.replace(snapshot.objects)
        self._changed_at = snapshot.revision
        return _differences(before, after, snapshot.revision, are_listed=not self._synced)

    def _tell(self, change: Change) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception as error:
                if not self._take_out(handler, change.object.key, error):
                    raise

    def _take_out(self, handler: Handler | SyncHandler, key: Key | None, error: Exception) -> bool:
        """Remove a handler that raised an error; return False if the handler is vital or did not cause the error."""
        name = self._names.get(handler)
        if name is None or self._quarantine is None or not self._quarantine.holds(error):
            return False
        self._handlers = [each for each in self._handlers if each is not handler]
        self._sync_handlers = [each for each in self._sync_handlers if each is not handler]
        self._quarantine.take(self.resource, name, key, error)
        return True

    def _tell_synced(self, changes: Iterator[Change]) -> None:
        if self._handlers:
            for change in changes:
                self._tell(change)
                if change.new is not None:
                    # The following call frees metadata and views that handlers have decoded; see `Store.replace`.
                    change.new.forget_decoded()
        if self._synced:
            for handler in self._sync_handlers:
                try:
                    handler()
                except Exception as error:
                    if not self._take_out(handler, None, error):
                        raise
        self._synced = True


def _change(old: Object | None, new: Object | None, revision: Revision, *, is_request: bool) -> Change | None:
    if new is None:
        return None if old is None else Change(EventType.DELETED, old, None, revision, is_request=is_request)
    type_ = EventType.ADDED if old is None else EventType.MODIFIED
    return Change(type_, old, new, revision, is_request=is_request)


def _differences(
    before: Mapping[Key, Object], after: Mapping[Key, Object], at: Revision, *, are_listed: bool
) -> Iterator[Change]:
    """Yield the changes between two stores: deletions by key, then the other changes in the order of `after`."""
    for key in sorted(before.keys() - after.keys()):
        yield Change(EventType.DELETED, before[key], None, at)
    for key, new in after.items():
        old = before.get(key)
        if old is None:
            yield Change(EventType.ADDED, None, new, new.revision, are_listed)
        elif old.revision != new.revision:
            yield Change(EventType.MODIFIED, old, new, new.revision)


class Informers:
    """The informers of one process; as a Runnable, they read the events of one feed.

    Only one thread at a time may call `sync` and `step`.
    """

    name = "informers"

    def __init__(self, log: EventLog, feed: Feed, *, clock: Clock, quarantine: Quarantine | None = None) -> None:
        """Read snapshots from `log` and events from `feed`, which must be a feed of that log.

        Handlers that raise are removed and recorded in the `quarantine`; without a quarantine, an error of a handler
        ends this runnable.
        """
        self._quarantine = quarantine
        self._log = log
        self._feed = feed
        self._clock = clock
        self._informers: dict[Resource, Informer] = {}
        self._revision: Revision = 0
        self._epoch = 0
        self._synced = False
        self._telling = False  # Whether a handler is being called, on the stepping thread.
        self._added: list[Informer] = []  # The informers that handlers have requested and that have not synced yet.
        self._reached = threading.Condition()  # Notified when `revision` has advanced and threads wait for this.
        self._waiting = 0

    @property
    def revision(self) -> Revision:
        """The revision up to which the stores contain all events; any thread may read it."""
        return self._revision

    @property
    def epoch(self) -> int:
        """A counter that is odd while a sync replaces the stores and calls handlers; any thread may read it.

        If two reads of the counter return the same even value, no sync happened between the reads. Without a sync, the
        stores and the state of handlers change only by single events of the log.
        """
        return self._epoch

    def informer(self, resource: Resource) -> Informer:
        """Return the informer of `resource`.

        A new informer can be created before the first sync, or while a handler is called. An informer that a handler
        creates syncs at the revision of the handler's change, before any later event is applied. At other times the
        method raises RuntimeError, because the informer would stay empty.
        """
        informer = self._informers.get(resource)
        if informer is None:
            if self._synced and not self._telling:
                raise RuntimeError(f"an informer of {resource} was requested after the sync")
            informer = self._informers[resource] = Informer(resource, lambda: self._telling, self._quarantine)
            if self._telling:
                self._added.append(informer)
        return informer

    def lister(self, resource: Resource) -> Lister | None:
        """Return the store of a resource if its informer has synced, otherwise None.

        The method is thread-safe.
        """
        informer = self._informers.get(resource)
        return informer.lister if informer is not None and informer.has_synced else None

    def changed_at(self, resources: Iterable[Resource]) -> Revision | None:
        """Return the revision of the last change or sync of any of these resources.

        Return None if the informer of one resource has not synced. Any thread may call this method before it lists
        objects. If a later call returns the same revision, the listed objects are up to date.
        """
        informers, newest = self._informers, 0
        for resource in resources:
            informer = informers.get(resource)
            if informer is None or not informer._synced:
                return None
            newest = max(newest, informer._changed_at)
        return newest

    def reach(self, revision: Revision, patience: float) -> bool:
        """Wait until the stores reach `revision`; return False if the stores do not reach it within `patience` seconds.

        Any thread may call this method, except the thread that calls `step`.
        """
        deadline = self._clock.monotonic() + patience
        with self._reached:
            self._waiting += 1
            try:
                while self._revision < revision:
                    left = deadline - self._clock.monotonic()
                    if left <= 0:
                        return False
                    self._clock.wait(self._reached, left)
            finally:
                self._waiting -= 1
        return True

    def problem(self) -> str | None:
        """Return a description of the handlers that were removed because they raised errors.

        Return None if no handler was removed.
        """
        return None if self._quarantine is None else self._quarantine.problem()

    def has_synced(self) -> bool:
        """Return whether all informers have synced."""
        return self._synced

    def sync(self) -> Revision:
        """Replace all stores by snapshots of one revision, and return the revision.

        After all stores are replaced, handlers receive ADDED for every object at the first sync, and the differences at
        later syncs.
        """
        with collector_paused():
            at, snapshots = self._snapshots()
            self._epoch += 1
            updates = [(informer, informer._replace(snapshots[name])) for name, informer in self._informers.items()]
            if sum(len(snapshot.objects) for snapshot in snapshots.values()) >= _MANY:
                gc.freeze()  # Here the code does the same as `collector_paused`, but only if it pays.
        self._revision = at
        self._telling = True
        for informer, changes in updates:
            informer._tell_synced(changes)
        self._sync_added()
        self._telling = False
        self._epoch += 1
        self._synced = True
        self._tell_waiting()
        return at

    def _snapshots(self) -> tuple[Revision, Mapping[Resource, Snapshot]]:
        """Read snapshots of all resources at one revision.

        If the log compacts that revision during the reads, start again at a newer revision.
        """
        while True:
            at = self._log.head().revision
            try:
                return at, self._log.snapshots(self._informers.keys(), at=at)
            except Expired:
                continue

    def step(self, limit: int = 500) -> int:
        """Apply up to `limit` available events, and return the number of applied events.

        The method never waits for events.

        Raises `Expired` if the feed no longer has some of these events; the caller must then call `sync`.
        """
        events = self._feed.events_after(self._revision, limit=limit)
        self._apply(events)
        self._tell_waiting()
        return len(events)

    def _tell_waiting(self) -> None:
        if self._waiting:
            with self._reached:
                self._reached.notify_all()

    def _apply(self, events: Sequence[Event]) -> None:
        informers = self._informers
        for event in events:
            if event.revision <= self._revision:
                continue
            informer = informers.get(event.object.resource)
            change = informer._apply(event) if informer is not None else None
            self._revision = event.revision
            if change is not None and informer is not None:
                self._telling = True
                informer._tell(change)
                self._telling = False
                if change.old is not None:
                    change.old.forget_decoded()  # The old object is history now, so only its bytes are needed.
                if self._added:
                    self._sync_added()

    def _sync_added(self) -> None:
        """Bring the informers that handlers have requested to the revision of all other informers.

        Raises `Expired` if the log no longer has that revision; the caller must then sync all informers.
        """
        while self._added:
            informer = self._added.pop()
            informer._tell_synced(informer._replace(self._log.snapshot(informer.resource, at=self._revision)))

    def run(self, stop: threading.Event) -> None:
        """Call `sync` unless the informers have synced, then apply the events of the feed until `stop` is set.

        If the feed no longer has the next event, sync again. While the log is unavailable, try again every second.
        Raises errors of handlers that cannot be removed, and other errors of the log.
        """
        must_sync = not self._synced
        while not stop.is_set():
            try:
                if must_sync:
                    self.sync()
                    must_sync = False
                self._follow(stop)
            except Expired as error:
                log.info("history compacted, syncing again", revision=self._revision, oldest=error.oldest)
                must_sync = True
            except LogUnavailable as error:
                log.warning("event log unreachable, retrying", error=str(error), retry_in=_RETRY)
                pause(self._clock, _RETRY)

    def _follow(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._feed.wait(self._revision, _LOOK_UP)
            while not stop.is_set() and self.step():
                pass
