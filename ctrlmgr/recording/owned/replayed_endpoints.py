"""Endpoints in a replay: the recorded controller's writes are expected, other clients' writes are inputs.

"Our" controller is the controller of ctrlmgr, in contrast to the recorded controller. Our controller could act after
every input, but its result matters only at checkpoints, and when later results depend on its result. Therefore our
controller acts on a triggered object

1. before an input changes that object, because the client edited the controller's last result, and the edit stays until
a later trigger; 2. when the recorded controller created or deleted the object, because a deletion also removes clients'
edits; 3. before its parent (the Service) changes or is deleted, if the recorded controller has written the object since
our controller acted. The controller must act before the Service changes, because a Service that loses its selector
keeps its last Endpoints. If the recorded controller has not written the object, it had not acted on the triggers, so
our controller must not act on them; 4. at a checkpoint, when so much virtual time has passed that no retry or delay is
pending.

In one case, our controller acts without a trigger. If the recorded controller overwrote a client's edit that is in our
log, the two writes were concurrent: the recorded controller was triggered before the edit and acted after the edit, but
our controller acted before the edit (rule 1). Therefore our controller acts on the object again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.recording.expectation import Expectation, Ownership
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.object_comparison import comparable
from ctrlmgr.recording.replay_stage import ReplayStage
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_pairing import WriteState, WriteTracker, whole


class OwnedEndpoints:
    """The Endpoints of the recording and of our log."""

    is_shared = False
    expects_others = False

    def __init__(self, stage: ReplayStage, ownership: Ownership) -> None:
        """Follow our controller's writes on `stage`; the instance must be created before the stage starts."""
        informer = stage.informer(ownership.resource)
        self.resource = ownership.resource
        self._stage = stage
        self._ownership = ownership
        self._expectation = Expectation(ownership)
        self._lister = informer.lister
        self._changed: set[Key] = set()  # keys that have changed in our log since the last checkpoint
        self._edits: dict[Key, bytes] = {}  # the last edit of each object by a client, until the next write
        # The objects that the recorded controller has written since our controller last acted on them.
        self._behind: set[Key] = set()
        self._tracker: WriteTracker | None = None
        informer.add_handler(self._on_change)

    @property
    def ownership(self) -> Ownership:
        """The ownership of the kind Endpoints."""
        return self._ownership

    @property
    def expected(self) -> int:
        """The number of changes that the recorded controller made."""
        return self._expectation.expected

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """From now on, report each write to `tracker`."""
        self._tracker = tracker
        tracker.follow(self.resource, whole(comparable))
        return (self._ownership.controller,)

    def act_on(self, subject: Key) -> None:
        """Let our controller act on an object, if it is triggered."""
        self._stage.act(self._ownership.controller, subject)

    def _on_change(self, change: StoreChange) -> None:
        self._changed.add(change.object.key)

    @property
    def subjects(self) -> Collection[Key]:
        """The Endpoints that exist on either side."""
        return self._expectation.objects.keys() | {obj.key for obj in self._lister.list()}

    @property
    def changed(self) -> Iterable[Key]:
        """The Endpoints that have changed since the last checkpoint."""
        return self._changed | self._expectation.changed

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the recorded and our Endpoints, without the fields that differ between clusters."""
        recorded, ours = self._expectation.objects.get(subject), self._lister.get(subject)
        return recorded and comparable(recorded), ours and comparable(ours)

    def observe(self, change: Change) -> None:
        """Before a Service changes, let our controller act if the recorded controller has written its objects."""
        self._expectation.observe(change)
        if change.object.resource == self._ownership.parent and change.object.key in self._behind:
            self._act(change.object.key)

    def expects(self, change: Change) -> bool:
        """Return False, because changes of other kinds are inputs."""
        return False

    def take(self, change: Change) -> bool:
        """Append a client's change to our object; for a write of the recorded controller, let our controller act."""
        if self._expectation.take(change):
            self._edit(change)
        else:
            self._follow_suit(change)
            self._track(change)
        return True

    def take_past(self, change: Change) -> bool:
        """Record Endpoints from before the start of the recording."""
        self._expectation.take_past(change)
        return False

    def _track(self, change: Change) -> None:
        if self._tracker is not None:
            obj = change.object
            state = None if change.type is EventType.DELETED else comparable(obj)
            self._tracker.recorded((self.resource, obj.key), WriteState(obj.revision, change.line, state))

    def prepare(self) -> None:
        """Do nothing, because checkpoints need no preparation."""

    def passed(self, revision: Revision) -> None:
        """Reset the recorded state after a checkpoint."""
        self._changed.clear()
        self._behind.clear()
        self._expectation.checkpoint(revision)

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return nothing, because all Endpoints can be compared."""
        return ()

    def _edit(self, change: Change) -> None:
        """Append another client's change of an owned object as an input.

        If our log has the object, apply only the change.
        """
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
        """Let our controller act because the recorded controller acted; see the rules in the module's docstring."""
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
    """Return the object `recorded` with the uid and creation time of our object with the same key."""
    if ours is None or ours.uid == recorded.uid:
        return recorded
    return recorded.with_metadata(uid=ours.uid, creation_timestamp=ours.metadata.creation_timestamp)
