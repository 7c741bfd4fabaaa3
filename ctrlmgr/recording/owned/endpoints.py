"""Endpoints in a replay: what the recorded controller wrote is expected, what clients wrote stands between it.

When our controller acts. It could after every input, but what it would write is looked at only where it can make a
difference: at a checkpoint, and where it is about to become history that later results depend on. A recording shows
where that is. So ours acts on an object, if its own watches have given it a reason to,

1. before an input changes that object: a client edited what the controller had made until then, and the edit stands
   until there is a reason to act that came after it;
2. where the recorded controller created or deleted it: with an object goes what clients had added to it;
3. before its parent (the service) changes or goes, if the recorded controller has written it since ours acted: a
   service that loses its selector leaves behind what was made until then. If the recorded one has not written, it had
   not acted on the reasons that ours has, and ours must not either;
4. at a checkpoint, after letting virtual time pass until no retry or delay is left.

One hint is taken from the recorded writes. Where the recorded controller overwrote a client's edit that stands in our
log, the two had crossed: it had a reason from before the edit and acted after it, where ours acted before (1). Then
ours is told to look at that object without a reason of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.recording.divergence import comparable
from ctrlmgr.recording.every_write import WriteTracker, Written, whole
from ctrlmgr.recording.expectation import Expectation, Ownership
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.report import Unjudged
from ctrlmgr.recording.stage import Stage


class OwnedEndpoints:
    """What is recorded of the kind, and what our log has."""

    is_shared = False
    expects_others = False

    def __init__(self, stage: Stage, ownership: Ownership) -> None:
        """Follow what our controller writes on `stage`; ask before it starts."""
        informer = stage.informer(ownership.resource)
        self.resource = ownership.resource
        self._stage = stage
        self._ownership = ownership
        self._expectation = Expectation(ownership)
        self._lister = informer.lister
        self._changed: set[Key] = set()  # in our log, since the last checkpoint
        self._edits: dict[Key, bytes] = {}  # the last client's edit of each object, until another client writes it
        self._behind: set[Key] = set()  # what the recorded controller has written since ours acted on it
        self._tracker: WriteTracker | None = None
        informer.add_handler(self._on_change)

    @property
    def ownership(self) -> Ownership:
        """What says whose work this kind is."""
        return self._ownership

    @property
    def expected(self) -> int:
        """How many of the recorded changes were the recorded controller's."""
        return self._expectation.expected

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """Tell of each write from now on."""
        self._tracker = tracker
        tracker.follow(self.resource, whole(comparable))
        return (self._ownership.controller,)

    def act_on(self, subject: Key) -> None:
        """Let our controller act on an object that it has a reason to look at."""
        self._stage.act(self._ownership.controller, subject)

    def _on_change(self, change: StoreChange) -> None:
        self._changed.add(change.object.key)

    @property
    def subjects(self) -> Collection[Key]:
        """Every object of either side."""
        return self._expectation.objects.keys() | {obj.key for obj in self._lister.list()}

    @property
    def changed(self) -> Iterable[Key]:
        """What has changed since the last checkpoint."""
        return self._changed | self._expectation.changed

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the whole objects, but for what no two clusters agree in."""
        recorded, ours = self._expectation.objects.get(subject), self._lister.get(subject)
        return recorded and comparable(recorded), ours and comparable(ours)

    def observe(self, change: Change) -> None:
        """Let our controller act before a service changes, if the recorded one had."""
        self._expectation.observe(change)
        if change.object.resource == self._ownership.parent and change.object.key in self._behind:
            self._act(change.object.key)

    def expects(self, change: Change) -> bool:
        """Return False: of other kinds everything is input."""
        return False

    def take(self, change: Change) -> bool:
        """Append a client's change as one of our object; follow suit where the recorded controller wrote."""
        if self._expectation.take(change):
            self._edit(change)
        else:
            self._follow_suit(change)
            self._track(change)
        return True

    def take_past(self, change: Change) -> bool:
        """Record Endpoints of the past."""
        self._expectation.take_past(change)
        return False

    def _track(self, change: Change) -> None:
        if self._tracker is not None:
            obj = change.object
            state = None if change.type is EventType.DELETED else comparable(obj)
            self._tracker.recorded((self.resource, obj.key), Written(obj.revision, change.line, state))

    def prepare(self) -> None:
        """Do nothing: what our controllers do at a checkpoint needs no preparation."""

    def passed(self, revision: Revision) -> None:
        """Forget what was before the checkpoint."""
        self._changed.clear()
        self._behind.clear()
        self._expectation.checkpoint(revision)

    def unjudged(self) -> Iterable[Unjudged]:
        """Return nothing: all of it can be compared."""
        return ()

    def _edit(self, change: Change) -> None:
        """Make an input of another client's change of an owned kind; it is told of *our* object, if there is one."""
        key = change.object.key
        self._act(key)
        ours = self._lister.get(key)
        self._edits.pop(key, None)
        if change.type is EventType.DELETED:
            if ours is not None:
                self._stage.append(EventType.DELETED, ours)
            return
        edited = _as_incarnation_of(ours, change.object)
        self._edits[key] = edited.body
        self._stage.append(EventType.ADDED if ours is None else EventType.MODIFIED, edited)

    def _follow_suit(self, change: Change) -> None:
        """Let our controller act where the recorded one did, at once if that matters; see the module's docstring."""
        key = change.object.key
        edit = self._edits.pop(key, None)
        if change.type is EventType.MODIFIED and edit is None:
            self._behind.add(key)
            return
        self._act(key)
        ours = self._lister.get(key)
        if edit is not None and ours is not None and ours.body == edit:
            self._stage.act(self._ownership.controller, key, unasked=True)

    def _act(self, key: Key) -> None:
        self._behind.discard(key)
        self._stage.act(self._ownership.controller, key)


def _as_incarnation_of(ours: Object | None, recorded: Object) -> Object:
    """Return `recorded` with the identity of the object that stands in its place in our log."""
    if ours is None or ours.uid == recorded.uid:
        return recorded
    return recorded.with_metadata(uid=ours.uid, creation_timestamp=ours.metadata.creation_timestamp)
