"""Compares in a replay the kinds that both controllers and clients write: workloads and their pods.

The author of each recorded change of these kinds is determined. Writes of the recorded counterparts of replayed
controllers are expected. Writes of other clients (users, kubelets, the garbage collector) are inputs. If a controller
has also written the object, only the client's changes are applied (`client_changes`). Our objects get the names and
uids of their recorded counterparts (`expected_creations`).

A recording of ctrlmgr's log contains the author of each change. In a recording of a watch, the author is read from
`managedFields`, which do not show the author of a deletion. A recorded deletion is attributed to the recorded
controllers if our controllers, which act before it, make the same deletion.

Our controllers act at each pause of the recording, because the recorded controllers had finished their work at that
time. Our controllers also act at checkpoints, and before an input if the recorded controllers have written since our
controllers last acted. Except for short periods at checkpoints, virtual time is never ahead of the recording. Therefore
actions that depend on the time (deadlines, schedules) happen at the recorded times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key, Resource, Revision
from ctrlmgr.client import CONTROLLER_MANAGER
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.workloads.controlled_pods import controller_of
from ctrlmgr.eventlog import Event, EventType, Proposal
from ctrlmgr.recording.attribution import Managed, writer_of
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.owned.client_changes import carried_over
from ctrlmgr.recording.owned.expected_creations import ExpectedCreations
from ctrlmgr.recording.owned.likened_states import likened
from ctrlmgr.recording.owned.quota_usage_changes import QUOTAS, Usage
from ctrlmgr.recording.owned.replay_needs import ReplayNeeds
from ctrlmgr.recording.replay_stage import RECORDING, ReplayStage
from ctrlmgr.recording.replayed_controllers import user_of
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_pairing import WriteState, WriteTracker, whole

SHARED: Final[Mapping[str, Sequence[Resource]]] = {
    each.name: each.shared_kinds for each in registry.ALL if each.replays and each.shared_kinds
}
"""The kinds that each controller and other clients both write, by the controller's name."""

_CLAIMS = Resource("", "persistentvolumeclaims")
_OTHERS_TOO = frozenset({PODS, NODES, _CLAIMS, QUOTAS})
"""Kinds that can exist without workloads."""

_VOLUMES = Resource("", "persistentvolumes")
_MIXED = frozenset({_CLAIMS, NODES, _VOLUMES, Resource("storage.k8s.io", "volumeattachments")})
"""Kinds that components without replay change, too, with the same field manager."""

_PAUSE = 20_000
"""Microseconds without a change after which the recorded controllers are considered to have finished their work."""

_INSTANT = 0.05
"""Virtual seconds that pass each time our controllers act, which allows for immediate requeues."""

_AT_REST = 1.5
"""Virtual seconds that pass at a checkpoint while our controllers act, which allows for batching and retries."""

_LAG = 3_000
"""Maximum delay in microseconds with which a cache of the recorded cluster follows the log.

A recorded reconcile lists the revisions of its key that its cache contained.
"""

_SECOND = 1_000_000


class SharedKinds:
    """The recorded objects and our objects of the kinds that both controllers and clients write."""

    def __init__(self, stage: ReplayStage, shared: Mapping[str, Sequence[Resource]]) -> None:
        """Expect the recorded writes of controllers to their kinds in `shared`.

        The instance must be created before `stage` starts.
        """
        self._stage = stage
        self._shared = shared
        self._needs = ReplayNeeds(shared)
        self._users: set[str] = set()
        # the field managers of the controllers' writes
        self._managers: dict[Resource, set[str]] = {QUOTAS: {CONTROLLER_MANAGER}}
        self._begin([name for name in shared if name not in self._needs.waiting])
        resources = dict.fromkeys([*(resource for kinds in shared.values() for resource in kinds), QUOTAS])
        self.kinds = [SharedKind(self, stage, resource) for resource in resources]
        self._by_resource = {kind.resource: kind for kind in self.kinds}
        self._expected = ExpectedCreations()
        self._usage = Usage()
        self._is_there = False  # whether the recording has any workload so far
        self._foreseen: set[str] = set()  # uids of objects that can be owners
        # A heap of recorded reconciles whose writes are later in the recording.
        self._decisions: list[tuple[int, Revision]] = []
        self._is_behind = False  # whether the recorded controllers have written since our controllers acted
        stage.writings.append(self)

    def _begin(self, names: Iterable[str]) -> None:
        """Replay these controllers from now on."""
        for name in names:
            self._users.add(user_of(name))
            for resource in self._shared[name]:
                self._managers.setdefault(resource, set()).add(CONTROLLER_MANAGER if name in SHARED else name)
        self._stage.idle = self._needs.waiting
        self._stage.in_time = [name for name in self._shared if name not in self._needs.waiting]

    def recorded(self, resource: Resource, namespace: str) -> list[Object] | None:
        """Return the recorded objects of a kind in `shared` in a namespace; None for another kind."""
        kind = self._by_resource.get(resource)
        return None if kind is None else kind.recorded(namespace)

    def foresee(self, change: Change, *, is_past: bool) -> None:
        """Process a change that is read ahead, because our controllers may create objects before the recorded time.

        Changes of the past are ignored, because our controllers do not create these objects.
        """
        self._begin(self._needs.see(change.object.resource))
        kind = self._by_resource.get(change.object.resource)
        if kind is None:
            return
        self._foreseen.add(change.object.uid)
        if kind.resource not in _OTHERS_TOO:
            self._is_there = True
        if not self._is_there or is_past:
            return
        if change.made.decided_at and change.made.actor in self._users:
            heappush(self._decisions, (change.made.decided_at, change.made.seen))
        if change.type is EventType.ADDED:
            is_theirs = self._is_theirs(change, None)
            self._usage.created(change.object, is_theirs=is_theirs)
            if is_theirs:
                self._expected.expect(change.object)

    def before(self, moment: int, revision: Revision) -> None:
        """Let our controllers act in the pause before the next change, or when the recorded controllers acted."""
        if not self._is_there:
            return
        is_due = False
        while self._decisions and self._is_before(self._decisions[0], moment, revision):
            is_due = heappop(self._decisions)[0] + _LAG >= self._stage.clock.now() or is_due
        if is_due:
            self.act()
        pause = moment - self._stage.clock.now()
        if pause > _PAUSE:
            self.act((pause - _PAUSE) / _SECOND)

    def _is_before(self, decision: tuple[int, Revision], moment: int, revision: Revision) -> bool:
        """Return whether a recorded reconcile missed a change: it began before the change, or its cache was late."""
        began, seen = decision
        return began <= moment + (_LAG if seen and revision > seen else 0)

    def act(self, patience: float = _INSTANT, *, again: bool = False) -> None:
        """Let ctrlmgr's controllers reconcile now.

        Failed keys are retried if `again` is set or the recorded controllers have written.
        """
        again, self._is_behind = again or self._is_behind, False
        self._stage.catch_up(patience, again=again)

    def at_checkpoint(self) -> None:
        """Let our controllers act until they are quiescent."""
        if self._is_there:
            self.act(_AT_REST, again=True)

    def named(self, proposal: Proposal) -> Proposal:
        """Return our proposal; a creation gets the identity of its recorded counterpart."""
        return self._expected.named(proposal) if proposal.object.resource in self._by_resource else proposal

    def written(self, events: Sequence[Event]) -> None:
        """Record the writes of our controllers."""
        for event in events:
            kind = self._by_resource.get(event.resource)
            if kind is not None and self._is_there:
                kind.note(event.key)
                self._expected.forget(event.object)

    def take(self, kind: SharedKind, change: Change, old: Object | None) -> bool:
        """Process a change; return False if the caller can append it unchanged."""
        if not self._is_there:
            return False
        if self._is_expected(kind, change, old):
            self._is_behind = True
            kind.note(change.object.key)
            kind.tracked(change)
            if change.type is EventType.DELETED:
                self._expected.forget(change.object)
            return True
        if self._is_behind:
            self.act()
        return change.object.key in kind.written and self._edit(kind, change, old)

    def _is_expected(self, kind: SharedKind, change: Change, old: Object | None) -> bool:
        if self._is_of_unknown(change, old):
            return False
        if _tells(change):
            return change.made.actor in self._users
        going = change.type is EventType.DELETED or (
            change.object.is_terminating and old is not None and not old.is_terminating
        )
        return self._came_to_it(kind, change) if going else self._is_theirs(change, old)

    def _is_theirs(self, change: Change, old: Object | None) -> bool:
        """Return whether a recorded controller, and not another client, created or changed an object."""
        if self._is_of_unknown(change, old):
            return False
        if _tells(change):
            return change.made.actor in self._users
        if change.object.resource == QUOTAS and old is not None:
            return self._usage.is_of_theirs(old, change.object)
        if change.object.resource == _VOLUMES or (change.object.resource in _MIXED and old is not None):
            return False
        if change.object.resource == PODS and old is not None and _node(old) != _node(change.object):
            return False  # this is a binding, which managedFields do not contain
        if old is not None and self._is_orphaned(old, change.object):
            return False
        writer = writer_of(None if old is None else Managed(old), Managed(change.object))
        managers = self._managers.get(change.object.resource, ())
        return writer.manager in managers and (writer.certain or old is not None)

    def _is_of_unknown(self, change: Change, old: Object | None) -> bool:
        """Return whether an object is new and its owner was not recorded, so that we cannot create it."""
        owner = controller_of(change.object) if old is None and change.type is EventType.ADDED else None
        return owner is not None and owner.uid not in self._foreseen

    def _is_orphaned(self, old: Object, new: Object) -> bool:
        """Return whether a write removed a deleted or terminating owner, which only the garbage collector does."""
        kept = {each.uid for each in new.metadata.owner_references or ()}
        lost = {each.uid for each in old.metadata.owner_references or ()} - kept
        if not lost:
            return False
        staying = (kind.staying(new.namespace) for kind in self.kinds)
        return not any(uid in lost for uids in staying for uid in uids)

    def _came_to_it(self, kind: SharedKind, change: Change) -> bool:
        """Return whether our controllers have made a recorded deletion, too."""
        key = change.object.key
        if key not in kind.written:
            return False
        self.act()
        ours = kind.lister.get(key)
        return ours is None or (ours.is_terminating and change.type is not EventType.DELETED)

    def _edit(self, kind: SharedKind, change: Change, old: Object | None) -> bool:
        """Append a client's change of an object that controllers have written."""
        self._stage.follow()
        ours = kind.lister.get(change.object.key)
        if change.type is EventType.DELETED:
            if ours is not None:
                self._stage.append(EventType.DELETED, ours)
        elif ours is None:
            if old is None:
                self._stage.append(EventType.ADDED, change.object)
        elif old is None:
            self._stage.append(EventType.MODIFIED, change.object)
        else:
            edited = _edited(old, change.object, ours)
            self._stage.append(EventType.DELETED if _is_released(ours, edited) else EventType.MODIFIED, edited)
        return True


class SharedKind:
    """One of the kinds that controllers and clients write, as a `KindOwnership`."""

    is_shared = True
    expects_others = False

    def __init__(self, shared: SharedKinds, stage: ReplayStage, resource: Resource) -> None:
        """Follow our controllers' writes on `stage`."""
        informer = stage.informer(resource)
        informer.add_handler(lambda change: self._note_change(change.object.key))
        self.resource = resource
        self.lister = informer.lister
        self.written: set[Key] = set()
        """The keys of all objects that a recorded controller or one of our controllers has ever written."""
        self._shared = shared
        self._tracker: WriteTracker | None = None
        self._recorded: dict[Key, Object] = {}
        self._changed: set[Key] = set()
        self._old: Object | None = None  # the state before the current change

    def note(self, key: Key) -> None:
        """Record that a controller wrote an object."""
        self.written.add(key)
        self._changed.add(key)

    def recorded(self, namespace: str) -> list[Object]:
        """Return the recorded objects in a namespace."""
        return [obj for obj in self._recorded.values() if obj.namespace == namespace]

    def staying(self, namespace: str) -> Iterator[str]:
        """Yield the uids of the recorded objects in a namespace that are not terminating."""
        yield from (obj.uid for obj in self.recorded(namespace) if not obj.is_terminating)

    def _note_change(self, key: Key) -> None:
        if key in self.written:
            self._changed.add(key)

    @property
    def subjects(self) -> Collection[Key]:
        """The objects that controllers have written and that exist in the recording or in our log."""
        return [key for key in self.written if key in self._recorded or self.lister.get(key) is not None]

    @property
    def changed(self) -> Iterable[Key]:
        """The objects that have changed since the last checkpoint."""
        return self._changed

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the recorded object and our object, without times and counts of writes; unordered lists are sorted."""
        recorded, ours = self._recorded.get(subject), self.lister.get(subject)
        return recorded and likened(recorded), ours and likened(ours)

    def observe(self, change: Change) -> None:
        """Record the previous and the new state of an object."""
        key = change.object.key
        if change.type is EventType.DELETED:
            self._old = self._recorded.pop(key, None)
        else:
            self._old, self._recorded[key] = self._recorded.get(key), change.object
        self._note_change(key)

    def expects(self, change: Change) -> bool:
        """Return False, because changes of other kinds are inputs."""
        return False

    def take(self, change: Change) -> bool:
        """Process a change of this kind."""
        return self._shared.take(self, change, self._old)

    def take_past(self, change: Change) -> bool:
        """Record an object of the past; if a controller may have written it, treat it as written by a controller."""
        obj = change.object
        if self.resource not in _OTHERS_TOO or any(each.controller for each in obj.metadata.owner_references or ()):
            self.note(obj.key)
        return False

    def prepare(self) -> None:
        """Let our controllers act until they are quiescent."""
        self._shared.at_checkpoint()

    def passed(self, revision: Revision) -> None:
        """Reset the recorded state after a checkpoint."""
        self._changed.clear()

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """From now on, report each write; the kind's controllers act at the recorded times in any case."""
        if self.resource == QUOTAS:
            return ()  # admission writes the usage of quotas in the same append as the object that counts
        self._tracker = tracker
        tracker.follow(self.resource, whole(likened))
        return ()

    def act_on(self, subject: Key) -> None:
        """Do nothing, because the kind's controllers act at the recorded times in any case."""

    def tracked(self, change: Change) -> None:
        """Report a write of a recorded controller."""
        if self._tracker is not None:
            obj = change.object
            state = None if change.type is EventType.DELETED else likened(obj)
            self._tracker.recorded((self.resource, obj.key), WriteState(obj.revision, change.line, state, is_late=True))

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return nothing, because all objects can be compared."""
        return ()


def _node(pod: Object) -> str:
    return pod.view(Pod).spec.node_name


def _tells(change: Change) -> bool:
    """Return whether the recording contains the author of a change."""
    return bool(change.made.actor) and change.made.actor != RECORDING.actor


def _is_released(before: Object, after: Object) -> bool:
    """Return whether a change removed the last finalizer of a terminating object, which deletes the object.

    In the recording, one of our controllers may have removed its finalizer after the client.
    """
    is_last = bool(before.metadata.finalizers) and not after.metadata.finalizers
    return is_last and after.is_terminating and not after.metadata.deletion_grace_period_seconds


def _edited(old: Object, new: Object, ours: Object) -> Object:
    return Object.from_dict(carried_over(old.to_dict(), new.to_dict(), ours.to_dict()))
