"""Informers: stores that begin as a snapshot of the log and then follow its feed, telling handlers of each change.

Guarantees:
- **One cursor.** The informers of one `Informers` stand at the same revision: `revision` says that everything up
  to there, and nothing beyond, is in every store (while an event is being applied, its own may be one ahead).
- **Once, in order.** Each event is applied once; an event at or below `revision` is ignored, so feeding the same
  events again changes nothing and calls no handler.
- **Store first.** Handlers run on the stepping thread after the change is in the store and `revision` has moved,
  so what a handler wakes finds the change in the lister.
- **An unbroken chain.** For each key, a change's `old` is what the change before it (or nothing) left, also
  across a re-sync, where only the difference is told: what came and went unseen stays unseen, and an object
  deleted and created again between two looks is one MODIFIED with another uid.

- **One handler harms no other.** With a quarantine, a handler that raises is told of nothing any more, for it may have
  missed what it needs; the others are, the change included. Not so one that is vital: what it raises leaves `step`,
  and so ends `run` and with it the manager, as without a quarantine (in tests and replays) anything does.

Not promised: containing an index function that raises.
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
from ctrlmgr.informer.quarantine import Quarantine
from ctrlmgr.informer.store import IndexFunction, Lister, Store
from ctrlmgr.informer.watchcache import Feed
from ctrlmgr.interpreter import collector_paused

log = structlog.get_logger(__name__)

_LOOK_UP = 0.5
"""Seconds after which `run` looks whether it should stop."""

_RETRY = 1.0
"""Seconds between attempts while the log cannot be reached."""

_MANY = 10_000
"""Objects from which on freezing them pays."""


class Change(NamedTuple):
    """What happened to one object: ADDED has no `old`, DELETED no `new` (and `old` is its last state)."""

    type: EventType
    old: Object | None
    new: Object | None
    revision: Revision
    is_listed: bool = False
    """Whether this tells of an object that was there when the informer, or the handler, began: no event came for it."""
    is_request: bool = False
    """Whether a request wrote it, and no reconcile; False if that is not known."""

    @property
    def object(self) -> Object:
        """The object as it is now, or as it last was."""
        return self.new or self.old  # type: ignore[return-value]  # no change has neither


Handler = Callable[[Change], None]
SyncHandler = Callable[[], None]


class Informer:
    """The store of one resource and who wants to hear of its changes. Made by `Informers.informer`."""

    def __init__(
        self,
        resource: Resource,
        is_telling: Callable[[], bool] = lambda: False,
        quarantine: Quarantine | None = None,
    ) -> None:
        """Start with an empty store that has not synced; `is_telling` says whether handlers are being told.

        Handlers that raise go into the `quarantine`; without one, what they raise goes on.
        """
        self.resource = resource
        self._is_telling = is_telling
        self._store = Store()
        self._handlers: list[Handler] = []
        self._sync_handlers: list[SyncHandler] = []
        self._quarantine = quarantine
        self._names: dict[Handler | SyncHandler, str] = {}  # of those that may be taken out
        self._synced = False
        self._changed_at: Revision = 0  # set once the store has it: what was listed before it may lack the change

    @property
    def lister(self) -> Lister:
        """The store, as its readers see it."""
        return self._store

    @property
    def has_synced(self) -> bool:
        """Whether the first snapshot is in the store and every handler has heard of its objects."""
        return self._synced

    def add_index(self, name: str, fn: IndexFunction) -> None:
        """Let `lister.by_index(name, value)` find the objects for which the pure function `fn` gives `value`."""
        self._store.add_index(name, fn)

    def add_label_index(self) -> None:
        """Let `lister.list` find labels by index; worth it where selectors are looked up often."""
        self._store.add_label_index()

    def add_handler(self, fn: Handler, *, name: str = "", vital: bool = False) -> None:
        """Have `fn` called with every change, ADDED for what is there when this syncs.

        `name` is what the log and health checks call it. One that is `vital` is never taken out: without what it
        keeps, others would do wrong.

        Once synced it can be added by another handler, on the stepping thread: it is told at once of what is there. At
        other times it is a RuntimeError, as it would miss something.
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
        """Have `fn` called after each re-sync, once its differences are told: what came and went unseen is not in them.

        Kubernetes' informers tell of every object after a relist; a controller that needs that asks for it here.
        """
        self._names[fn] = name or getattr(fn, "__qualname__", repr(fn))
        self._sync_handlers.append(fn)

    def _apply(self, event: Event) -> Change | None:
        """Put an event into the store; None when that changed nothing or there is no handler."""
        new = None if event.type is EventType.DELETED else event.object
        return self._put(event.key, new, event.revision, is_request=not event.reconcile)

    def _put(self, key: Key, new: Object | None, revision: Revision, *, is_request: bool = False) -> Change | None:
        old = self._store.apply(key, new)
        self._changed_at = revision
        return _change(old, new, revision, is_request=is_request) if self._handlers else None

    def _replace(self, snapshot: Snapshot) -> Iterator[Change]:
        """Put a snapshot into the store at once; what it changed is worked out as the result is walked."""
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
        """Tell a handler that raised of nothing any more; False if it has to be told, or the error is not its own."""
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
                    change.new.forget_decoded()  # what handlers read of it; see `Store.replace`
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
    """Yield what turns one store into another: deletions by key, then the rest in the order of `after`."""
    for key in sorted(before.keys() - after.keys()):
        yield Change(EventType.DELETED, before[key], None, at)
    for key, new in after.items():
        old = before.get(key)
        if old is None:
            yield Change(EventType.ADDED, None, new, new.revision, are_listed)
        elif old.revision != new.revision:
            yield Change(EventType.MODIFIED, old, new, new.revision)


class Informers:
    """The informers of one process over one feed; a Runnable. `sync` and `step` belong to one thread at a time."""

    name = "informers"

    def __init__(self, log: EventLog, feed: Feed, *, clock: Clock, quarantine: Quarantine | None = None) -> None:
        """Take snapshots from `log` and events from `feed`, which must be a feed of that log.

        Handlers that raise go into the `quarantine`; without one, what they raise ends this.
        """
        self._quarantine = quarantine
        self._log = log
        self._feed = feed
        self._clock = clock
        self._informers: dict[Resource, Informer] = {}
        self._revision: Revision = 0
        self._epoch = 0
        self._synced = False
        self._telling = False  # whether a handler is being told of something, on the stepping thread
        self._added: list[Informer] = []  # what handlers have asked for and has not synced yet
        self._reached = threading.Condition()  # notified when `revision` has moved and there are threads that wait
        self._waiting = 0

    @property
    def revision(self) -> Revision:
        """Everything up to here is in the stores; readable from any thread."""
        return self._revision

    @property
    def epoch(self) -> int:
        """Odd while a sync replaces one store after the other and tells of it; readable from any thread.

        Two equal, even readings say that no sync came between: what was read of several stores, and of what
        handlers made of their changes, followed the log event by event.
        """
        return self._epoch

    def informer(self, resource: Resource) -> Informer:
        """Return the one informer of `resource`.

        A new one is had before the first sync, or while a handler is told of a change: it syncs at that change's
        revision, before anything later is in any store. RuntimeError at other times, as it would stay empty.
        """
        informer = self._informers.get(resource)
        if informer is None:
            if self._synced and not self._telling:
                raise RuntimeError(f"an informer of {resource} was asked for after the sync")
            informer = self._informers[resource] = Informer(resource, lambda: self._telling, self._quarantine)
            if self._telling:
                self._added.append(informer)
        return informer

    def lister(self, resource: Resource) -> Lister | None:
        """Return the store of a resource if there is an informer of it that has synced; any thread may ask."""
        informer = self._informers.get(resource)
        return informer.lister if informer is not None and informer.has_synced else None

    def changed_at(self, resources: Iterable[Resource]) -> Revision | None:
        """Return the revision of the last change, or sync, of any of these; None if not all have synced.

        Any thread may ask, before it lists what it wants to know again once that has changed.
        """
        informers, newest = self._informers, 0
        for resource in resources:
            informer = informers.get(resource)
            if informer is None or not informer._synced:
                return None
            newest = max(newest, informer._changed_at)
        return newest

    def reach(self, revision: Revision, patience: float) -> bool:
        """Return whether the stores come to hold `revision` within `patience` seconds; any thread but ours may wait."""
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
        """Return which handlers raised and hear of nothing any more; None if all do."""
        return None if self._quarantine is None else self._quarantine.problem()

    def has_synced(self) -> bool:
        """Whether every informer has."""
        return self._synced

    def sync(self) -> Revision:
        """Make every store what the log held at one revision, and return that.

        Handlers are told ADDED for everything at the first sync and the difference at later ones, once all
        the stores are replaced.
        """
        with collector_paused():
            at, snapshots = self._snapshots()
            self._epoch += 1
            told = [(informer, informer._replace(snapshots[name])) for name, informer in self._informers.items()]
            if sum(len(snapshot.objects) for snapshot in snapshots.values()) >= _MANY:
                gc.freeze()  # as `collector_paused` would, but only where it pays
        self._revision = at
        self._telling = True
        for informer, changes in told:
            informer._tell_synced(changes)
        self._sync_added()
        self._telling = False
        self._epoch += 1
        self._synced = True
        self._tell_waiting()
        return at

    def _snapshots(self) -> tuple[Revision, Mapping[Resource, Snapshot]]:
        """Read every resource as of one revision; begins again if compaction passes that revision meanwhile."""
        while True:
            at = self._log.head().revision
            try:
                return at, self._log.snapshots(self._informers.keys(), at=at)
            except Expired:
                continue

    def step(self, limit: int = 500) -> int:
        """Apply up to `limit` of the events the feed has, and return how many that were; never waits.

        Raises `Expired` when the feed has forgotten some of them, after which only `sync` helps.
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
                    change.old.forget_decoded()  # from here on it is history, of which only the bytes are asked for
                if self._added:
                    self._sync_added()

    def _sync_added(self) -> None:
        """Bring the informers that handlers have asked for to the revision at which all others are.

        Raises `Expired` when the log has it no more; then everything has to be synced, and these with it.
        """
        while self._added:
            informer = self._added.pop()
            informer._tell_synced(informer._replace(self._log.snapshot(informer.resource, at=self._revision)))

    def run(self, stop: threading.Event) -> None:
        """Sync unless that was done, then follow the feed until `stop`.

        Syncs again when it has fallen out of the feed's history; tries again every second while the log
        cannot be reached. What a handler raises that is not taken out, and any other error of the log, ends it.
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
                log.warning("log unreachable, following later", error=str(error), retry_in=_RETRY)
                pause(self._clock, _RETRY)

    def _follow(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._feed.wait(self._revision, _LOOK_UP)
            while not stop.is_set() and self.step():
                pass
