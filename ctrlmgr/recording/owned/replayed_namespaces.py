"""Namespaces in a replay: compares the deletion of namespaces, and the remaining content of terminating namespaces.

Clients' writes to a namespace (creation, labels, deletion requests, finalizers) are inputs. The writes of the namespace
controller are expected: the conditions, the removal of the finalizer `kubernetes`, and the namespace's deletion. The
recorded namespace controller waits for five seconds after the deletion request. After that, deletions of the
namespace's content, and of the addresses that its Services own, are also expected. Earlier deletions are attributed to
clients. Deletions of objects that were already terminating are always attributed to clients, because a client removed
their finalizers or acted as the kubelet.

The whole namespace is compared, except for the timestamps of its conditions. For a terminating namespace, the set of
remaining objects is also compared: objects of the recorded kinds except EndpointSlices, whose names are random.

Objects of unrecorded kinds, which only the recorded conditions mention, may delay the deletion of a namespace. If so, a
stand-in (an object of the mentioned kind with the mentioned finalizer) is added to our log, so that the namespace
continues to exist. The stand-in is removed when the namespace's conditions no longer mention it. After a stand-in was
added, the conditions about remaining content are not compared, because they depend on the stand-ins. The omitted
comparisons of conditions are counted; all other fields of the namespace are compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, NAMESPACES, Key, Resource, Revision
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.namespace import Options
from ctrlmgr.controllers.namespace.controller import CONTROLLER_NAME
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.eventlog import EventType
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.informer import Informer, Lister
from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.object_comparison import comparable
from ctrlmgr.recording.replay_stage import ReplayStage
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_pairing import WriteTracker

_LEFT = re.compile(r"(\S+) has (\d+) resource instances")
_HELD = re.compile(r"(\S+) in (\d+) resource instances")
_CONTENT, _FINALIZERS = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
_UNJUDGED = "what is left in it is of kinds that the recording does not show"
_ATTEMPTS = 5
"""The maximum number of times that our controller runs to finish the deletion of a namespace, if the recording creates
the namespace again.
"""


class OwnedNamespaces:
    """The recorded namespaces and our namespaces, with their content."""

    resource = NAMESPACES
    is_shared = False
    expects_others = True

    def __init__(self, stage: ReplayStage, kinds: Kinds) -> None:
        """Follow our controller's writes on `stage`; the instance must be created before the stage starts."""
        informer = stage.informer(NAMESPACES)
        informer.add_handler(self._on_change)
        self._stage = stage
        self._ours = informer.lister
        self._content: dict[Resource, Lister] = {
            kind.storage: stage.informer(kind.storage).lister
            for kind in kinds
            if kind.namespaced and kind.storage == kind.resource and "delete" in kind.verbs
        }
        self._addresses = stage.informer(IP_ADDRESSES).lister
        self._api_versions = {kind.storage: (kind.gvk.kind, kind.gvk.api_version) for kind in kinds}
        stage.follow_definitions(self)
        self._recorded: dict[Key, Object] = {}
        self._ending: dict[str, int] = {}  # the times since which recorded namespaces are terminating, in microseconds
        self._there: dict[str, set[tuple[Resource, str]]] = {}  # the recorded content of each namespace
        self._shown: set[Resource] = set()
        self._stand_ins: dict[str, list[Object]] = {}
        self._guessed: set[str] = set()  # namespaces that have had stand-ins
        self._uncompared: Counter[str] = Counter()
        self.held: dict[str, Sequence[Object]] = {}
        """For each namespace name, the first objects that stand in for objects missing from the recording."""
        self.known_held: Mapping[str, Sequence[Object]] = {}
        """The stand-ins that an earlier replay of this recording added first to each namespace."""
        self._is_prompt = False  # whether our controller acts when the recorded controller did, and not only at the end
        self._changed: set[Key] = set()

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Add the custom objects of a CustomResourceDefinition to the content of namespaces, if they are namespaced."""
        if definition.namespaced:
            self._content[resource] = instances.lister
            version = f"{definition.group}/{definition.storage.name}"
            self._api_versions[resource] = (definition.accepted.kind, version)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Do nothing, because the custom objects of a deleted CustomResourceDefinition are deleted too."""

    def _on_change(self, change: StoreChange) -> None:
        self._changed.add(change.object.key)

    @property
    def subjects(self) -> Collection[Key]:
        """The namespaces that exist on either side."""
        return self._recorded.keys() | {obj.key for obj in self._ours.list()}

    @property
    def changed(self) -> Iterable[Key]:
        """The namespaces that have changed or are terminating."""
        return self._changed | {Key("", name) for name in self._ending}

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return both namespaces, with their content if they are terminating or deleted."""
        recorded, ours = self._recorded.get(subject), self._ours.get(subject)
        theirs, mine = _comparable(recorded), _comparable(ours)
        if subject.name in self._guessed:
            self._uncompared[subject.name] += 1
            theirs, mine = _without_left(theirs), _without_left(mine)
        if recorded is None or recorded.is_terminating:
            theirs |= _content(self._recorded_content(subject.name))
            mine |= _content(self._our_content(subject.name))
        return theirs or None, mine or None

    def observe(self, change: Change) -> None:
        """Record a change of the content of a namespace."""
        obj, resource = change.object, change.object.resource
        self._shown.add(resource)
        if resource == ENDPOINT_SLICES and change.type is EventType.DELETED and self._is_emptying(change):
            self._act_at_once(obj.namespace)
        if change.type is EventType.MODIFIED or resource == ENDPOINT_SLICES or resource not in self._content:
            return  # a modified object existed before
        if namespace := obj.namespace:
            there = self._there.setdefault(namespace, set())
            (there.discard if change.type is EventType.DELETED else there.add)((resource, obj.name))

    def expects(self, change: Change) -> bool:
        """Return whether a change of content in a terminating namespace is expected from our controller."""
        if not self._ending:
            return False
        obj = change.object
        lister = self._addresses if obj.resource == IP_ADDRESSES else self._content.get(obj.resource)
        since = self._ending.get(_holder(obj))
        if since is None or lister is None or change.type is EventType.ADDED:
            return False
        self._stage.follow()
        ours = lister.get(obj.key)
        if ours is None:
            return True  # our controller has deleted the object already
        if not self._is_emptying(change):
            return False
        gone = change.type is EventType.DELETED
        is_expected = not obj.is_terminating if gone else obj.is_terminating and not ours.is_terminating
        if is_expected:
            self._act_at_once(_holder(obj))
        return is_expected

    def _is_emptying(self, change: Change) -> bool:
        """Return whether the recorded controller may have started to delete the content of the namespace."""
        since = self._ending.get(_holder(change.object))
        return since is not None and change.recorded_at - since >= Options.namespace_deletion_grace * 1_000_000

    def _act_at_once(self, name: str) -> None:
        """Let our controller act on a namespace at the time when the recorded controller acted."""
        if self._is_prompt:
            self._stage.act(CONTROLLER_NAME, Key("", name), unasked=True)

    def take(self, change: Change) -> bool:
        """Append a client's change of a namespace; our controller makes all other changes."""
        obj = change.object
        self._changed.add(obj.key)
        old = self._recorded.pop(obj.key, None)
        if change.type is EventType.DELETED:
            self._end(obj, held=bool(old and old.metadata.finalizers))
            return True
        self._recorded[obj.key] = obj
        if old is None:
            self._begin(obj)
        elif _is_controllers(old, obj):
            self._stand_in(obj)
        else:
            self._edit(obj)
        if obj.is_terminating and obj.name not in self._ending:
            self._ending[obj.name] = change.recorded_at
            for each in self.known_held.get(obj.name, ()):
                self._stage.append(EventType.ADDED, each)
                self._stand_ins.setdefault(obj.name, []).append(each)
            self._stage.act(CONTROLLER_NAME, obj.key)  # this starts the namespace's grace period
        return True

    def take_past(self, change: Change) -> bool:
        """Record a Namespace that existed before the recording began.

        A terminating namespace counts as terminating since its deletion request.
        """
        obj = change.object
        self._changed.add(obj.key)
        self._ending.pop(obj.name, None)
        if change.type is EventType.DELETED:
            self._recorded.pop(obj.key, None)
            return False
        self._recorded[obj.key] = obj
        if obj.is_terminating:
            self._ending[obj.name] = parse_time(obj.metadata.deletion_timestamp or "")
        return False

    def prepare(self) -> None:
        """Do nothing, because checkpoints need no preparation."""

    def passed(self, revision: Revision) -> None:
        """Reset the recorded state after a checkpoint."""
        self._changed.clear()

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """From now on, let our controller act when the recorded controller acted.

        Single writes to namespaces are not reported (see `_left_in`).
        """
        self._is_prompt = True
        return ()

    def act_on(self, subject: Key) -> None:
        """Do nothing, because single writes to namespaces are not tracked."""

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return the number of checkpoints at which the remaining content of each namespace could not be compared."""
        for name, count in sorted(self._uncompared.items()):
            yield UncomparedCounts(str(NAMESPACES), "", name, _UNJUDGED, count)

    def _begin(self, obj: Object) -> None:
        """Append a Namespace to the log of the replay.

        If a namespace with the same name is terminating in our log, finish its deletion first.
        """
        self._urge(obj.key, lambda ours: ours is None)
        ours = self._ours.get(obj.key)
        self._stage.append(EventType.ADDED if ours is None else EventType.MODIFIED, obj)

    def _urge(self, key: Key, is_done: Callable[[Object | None], bool]) -> None:
        """Run our controller on a namespace repeatedly until the deletion of the namespace is complete."""
        self._stage.follow()
        for _ in range(_ATTEMPTS):
            if is_done(self._ours.get(key)):
                break
            self._stage.act(CONTROLLER_NAME, key, unasked=True)
            self._stage.follow()

    def _edit(self, obj: Object) -> None:
        """Append a client's change of a namespace, but keep the fields that our controller has written."""
        self._stage.follow()
        ours = self._ours.get(obj.key)
        if ours is None:
            return  # our controller finished too early, which the comparison reports
        fields, written = obj.to_dict(), ours.to_dict()
        status = {key: value for key, value in fields.get("status", {}).items() if key != "conditions"}
        if conditions := written.get("status", {}).get("conditions"):
            status["conditions"] = conditions
        fields |= {"status": status, "spec": written.get("spec", {})}
        edited = Object.from_dict(fields)
        self._stage.append(EventType.MODIFIED, edited.with_metadata(uid=ours.uid))

    def _end(self, obj: Object, *, held: bool) -> None:
        """Record that a namespace was deleted, by its controller or because a client removed its last finalizer."""
        self._ending.pop(obj.name, None)
        self._remove_stand_ins(obj.name)
        if not held:
            return
        self._urge(obj.key, _is_emptied)
        ours = self._ours.get(obj.key)
        if ours is not None:
            self._stage.append(EventType.DELETED, ours)

    def _stand_in(self, namespace: Object) -> None:
        """Add stand-ins of unrecorded kinds, as many as a namespace's conditions report."""
        left, held = _left_in(namespace)
        unseen = {resource: count for resource, count in left.items() if resource not in self._shown}
        self._remove_stand_ins(namespace.name)
        finalizers = sorted(held)
        for resource, count in unseen.items():
            for number in range(count):
                kind, version = self._api_versions.get(resource, ("", ""))
                metadata = {"name": f"stand-in-{number}", "namespace": namespace.name, "finalizers": finalizers}
                obj = Object.from_dict({"kind": kind, "apiVersion": version, "metadata": metadata})
                self._stage.append(EventType.ADDED, obj)
                self._stand_ins.setdefault(namespace.name, []).append(obj)
                self._guessed.add(namespace.name)
        self.held.setdefault(namespace.name, tuple(self._stand_ins.get(namespace.name, ())))

    def _remove_stand_ins(self, namespace: str) -> None:
        self._stage.follow()
        for obj in self._stand_ins.pop(namespace, ()):
            ours = self._content[obj.resource].get(obj.key)
            if ours is not None:
                self._stage.append(EventType.DELETED, ours)

    def _recorded_content(self, namespace: str) -> list[str]:
        return sorted(f"{resource} {name}" for resource, name in self._there.get(namespace, ()))

    def _our_content(self, namespace: str) -> list[str]:
        resources = self._shown - {ENDPOINT_SLICES}
        return sorted(
            f"{resource} {obj.name}"
            for resource, lister in self._content.items()
            if resource in resources
            for obj in lister.list(namespace)
        )


def _is_controllers(old: Object, new: Object) -> bool:
    """Return whether the namespace controller made a change.

    No other client writes conditions or removes its finalizer.
    """
    before, after = old.to_dict(), new.to_dict()
    return (
        _conditions(before) != _conditions(after)
        or (before.get("spec") or {}).get("finalizers") != (after.get("spec") or {}).get("finalizers")
    ) and new.is_terminating


def _holder(obj: Object) -> str:
    """Return the namespace to which an object belongs; for an IPAddress, the namespace of its Service."""
    parent = obj.view(Claim).parent if obj.resource == IP_ADDRESSES else None
    return obj.namespace if parent is None else parent.namespace


def _is_emptied(namespace: Object | None) -> bool:
    """Return whether the namespace controller has finished with a namespace."""
    return namespace is None or not (namespace.to_dict().get("spec") or {}).get("finalizers")


def _conditions(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (fields.get("status") or {}).get("conditions") or []


def _content(left: list[str]) -> dict[str, Any]:
    return {"content": left} if left else {}


def _comparable(namespace: Object | None) -> dict[str, Any]:
    if namespace is None:
        return {}
    fields = comparable(namespace)
    for condition in _conditions(fields):
        condition.pop("lastTransitionTime", None)
    return fields


def _without_left(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the comparable fields of a namespace without the conditions about remaining content."""
    status = namespace.get("status") or {}
    conditions = [each for each in _conditions(namespace) if each["type"] not in (_CONTENT, _FINALIZERS)]
    return {**namespace, "status": {**status, "conditions": conditions}} if namespace else namespace


def _left_in(namespace: Object) -> tuple[dict[Resource, int], set[str]]:
    """Return the remaining content according to a namespace's conditions, by resource, and the remaining finalizers."""
    messages = {each["type"]: each["message"] for each in _conditions(namespace.to_dict())}
    left = {}
    for name, count in _LEFT.findall(messages.get(_CONTENT, "")):
        plural, _, group = name.partition(".")
        left[Resource(group, plural)] = int(count)
    return left, {finalizer for finalizer, _ in _HELD.findall(messages.get(_FINALIZERS, ""))}
