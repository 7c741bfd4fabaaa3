"""Namespaces in a replay: whether they end as the recorded ones did, and what is left in those that are ending.

What clients do to a namespace (create it, label it, ask for its deletion, release its finalizers) is input; what the
namespace controller does is expected: the conditions, the end of the finalizer `kubernetes`, the end of the namespace,
and from five seconds after it was deleted the deletion of what is in it, and of the addresses claimed for services in
it. Before that the recorded controller leaves a namespace alone, so deletions are clients'. So are, at any time, the
deletions of what was terminating already: a client has released its finalizers, or played the kubelet.

Compared are the whole namespace, but for the times of its conditions, and which objects are left in one that is
terminating: of the kinds that the recording shows, without EndpointSlices, whose names are random.

What cannot be told from a recording: a namespace may be held by objects of kinds that the recording does not show, of
which only the recorded conditions speak. Where they do, an object of such a kind with such a finalizer is put into our
log as a stand-in, so that the namespace stays, and taken away when they speak of it no more. What the conditions say of
what is left is not compared from then on: it would be compared with itself. That is counted; the rest is compared.
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
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.eventlog import EventType
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.informer import Informer, Lister
from ctrlmgr.kinds.allocators.claims import Claim
from ctrlmgr.kinds.allocators.ranges import IP_ADDRESSES
from ctrlmgr.recording.divergence import comparable
from ctrlmgr.recording.every_write import WriteTracker
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.report import Unjudged
from ctrlmgr.recording.stage import Stage

_LEFT = re.compile(r"(\S+) has (\d+) resource instances")
_HELD = re.compile(r"(\S+) in (\d+) resource instances")
_CONTENT, _FINALIZERS = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
_UNJUDGED = "what is left in it is of kinds that the recording does not show"
_ATTEMPTS = 5
"""How often our controller is asked to be done with a namespace that the recording makes anew."""


class OwnedNamespaces:
    """What is recorded of namespaces and of what is in them, and what our log has."""

    resource = NAMESPACES
    is_shared = False
    expects_others = True

    def __init__(self, stage: Stage, kinds: Kinds) -> None:
        """Follow what our controller writes on `stage`; ask before it starts."""
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
        self._ending: dict[str, int] = {}  # when recorded namespaces were seen to be terminating, microseconds
        self._there: dict[str, set[tuple[Resource, str]]] = {}  # what is recorded to be in each namespace
        self._shown: set[Resource] = set()
        self._stand_ins: dict[str, list[Object]] = {}
        self._guessed: set[str] = set()  # namespaces that have had stand-ins
        self._uncompared: Counter[str] = Counter()
        self.held: dict[str, Sequence[Object]] = {}
        """What stood in first for what a recording does not show and holds a namespace, by its name."""
        self.known_held: Mapping[str, Sequence[Object]] = {}
        """The same, if another replay of the recording has found it out already."""
        self._is_prompt = False  # whether our controller acts whenever the recorded one had, not at the end alone
        self._changed: set[Key] = set()

    def begin(self, definition: Definition, resource: Resource, instances: Informer) -> None:
        """Have the instances of a definition among what is in namespaces, if that is where they are."""
        if definition.namespaced:
            self._content[resource] = instances.lister
            version = f"{definition.group}/{definition.storage.name}"
            self._api_versions[resource] = (definition.accepted.kind, version)

    def end(self, definition: Definition, resource: Resource) -> None:
        """Do nothing: the instances of a definition that is gone are gone as well."""

    def _on_change(self, change: StoreChange) -> None:
        self._changed.add(change.object.key)

    @property
    def subjects(self) -> Collection[Key]:
        """Every namespace of either side."""
        return self._recorded.keys() | {obj.key for obj in self._ours.list()}

    @property
    def changed(self) -> Iterable[Key]:
        """What has changed, and what is ending."""
        return self._changed | {Key("", name) for name in self._ending}

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the namespace, and what is in it if it is terminating or has gone."""
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
        """Note what is in namespaces."""
        obj, resource = change.object, change.object.resource
        self._shown.add(resource)
        if resource == ENDPOINT_SLICES and change.type is EventType.DELETED and self._is_emptying(change):
            self._act_at_once(obj.namespace)
        if change.type is EventType.MODIFIED or resource == ENDPOINT_SLICES or resource not in self._content:
            return  # what is modified was there before
        if namespace := obj.namespace:
            there = self._there.setdefault(namespace, set())
            (there.discard if change.type is EventType.DELETED else there.add)((resource, obj.name))

    def expects(self, change: Change) -> bool:
        """Whether a change of what is in a terminating namespace is what our controller has to come to by itself."""
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
            return True  # it has come to it already
        if not self._is_emptying(change):
            return False
        gone = change.type is EventType.DELETED
        is_expected = not obj.is_terminating if gone else obj.is_terminating and not ours.is_terminating
        if is_expected:
            self._act_at_once(_holder(obj))
        return is_expected

    def _is_emptying(self, change: Change) -> bool:
        """Whether the recorded controller may have begun to empty the namespace of what changes."""
        since = self._ending.get(_holder(change.object))
        return since is not None and change.recorded_at - since >= Options.namespace_deletion_grace * 1_000_000

    def _act_at_once(self, name: str) -> None:
        """Let our controller go on with a namespace where the recorded one did."""
        if self._is_prompt:
            self._stage.act(CONTROLLER_NAME, Key("", name), unasked=True)

    def take(self, change: Change) -> bool:
        """Append what a client did to a namespace; leave the rest to our controller."""
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
            self._stage.act(CONTROLLER_NAME, obj.key)  # which begins to wait, as the recorded one does
        return True

    def take_past(self, change: Change) -> bool:
        """Note a namespace of the past; one that is going has been since it was deleted."""
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
        """Do nothing: what our controllers do at a checkpoint needs no preparation."""

    def passed(self, revision: Revision) -> None:
        """Forget what was before the checkpoint."""
        self._changed.clear()

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """Act from now on where the recorded controller did. No single write is told of: see `_left_in`."""
        self._is_prompt = True
        return ()

    def act_on(self, subject: Key) -> None:
        """Do nothing: nothing of it is tracked."""

    def unjudged(self) -> Iterable[Unjudged]:
        """Return at how many checkpoints nothing could be said of what was left in a namespace."""
        for name, count in sorted(self._uncompared.items()):
            yield Unjudged(str(NAMESPACES), "", name, _UNJUDGED, count)

    def _begin(self, obj: Object) -> None:
        """Append a namespace; one of its name that was terminating in our log has to go first."""
        self._urge(obj.key, lambda ours: ours is None)
        ours = self._ours.get(obj.key)
        self._stage.append(EventType.ADDED if ours is None else EventType.MODIFIED, obj)

    def _urge(self, key: Key, is_done: Callable[[Object | None], bool]) -> None:
        """Let our controller look at a namespace, again and again, until it is done; the recorded one was by now."""
        self._stage.follow()
        for _ in range(_ATTEMPTS):
            if is_done(self._ours.get(key)):
                break
            self._stage.act(CONTROLLER_NAME, key, unasked=True)
            self._stage.follow()

    def _edit(self, obj: Object) -> None:
        """Append a client's change, with what our controller, not the recorded one, has written."""
        self._stage.follow()
        ours = self._ours.get(obj.key)
        if ours is None:
            return  # our controller was done with it too early, which the comparison says
        fields, written = obj.to_dict(), ours.to_dict()
        status = {key: value for key, value in fields.get("status", {}).items() if key != "conditions"}
        if conditions := written.get("status", {}).get("conditions"):
            status["conditions"] = conditions
        fields |= {"status": status, "spec": written.get("spec", {})}
        edited = Object.from_dict(fields)
        self._stage.append(EventType.MODIFIED, edited.with_metadata(uid=ours.uid))

    def _end(self, obj: Object, *, held: bool) -> None:
        """Take note that a namespace has gone: by itself, or because a client let it go."""
        self._ending.pop(obj.name, None)
        self._remove_stand_ins(obj.name)
        if not held:
            return
        self._urge(obj.key, _is_emptied)
        ours = self._ours.get(obj.key)
        if ours is not None:
            self._stage.append(EventType.DELETED, ours)

    def _stand_in(self, namespace: Object) -> None:
        """See to it that kinds which the recording does not show have what the conditions say is left of them."""
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
    """Whether the namespace controller made `new` of `old`: it alone writes conditions and takes its finalizer away."""
    before, after = old.to_dict(), new.to_dict()
    return (
        _conditions(before) != _conditions(after)
        or (before.get("spec") or {}).get("finalizers") != (after.get("spec") or {}).get("finalizers")
    ) and new.is_terminating


def _holder(obj: Object) -> str:
    """Return the namespace with which an object goes: an address is its service's."""
    parent = obj.view(Claim).parent if obj.resource == IP_ADDRESSES else None
    return obj.namespace if parent is None else parent.namespace


def _is_emptied(namespace: Object | None) -> bool:
    """Whether the namespace controller has nothing left to do with it."""
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
    """Return what is compared of a namespace without what its conditions say of what is left in it."""
    status = namespace.get("status") or {}
    conditions = [each for each in _conditions(namespace) if each["type"] not in (_CONTENT, _FINALIZERS)]
    return {**namespace, "status": {**status, "conditions": conditions}} if namespace else namespace


def _left_in(namespace: Object) -> tuple[dict[Resource, int], set[str]]:
    """Return what the conditions of a namespace say is left, by resource, and the finalizers that hold it."""
    messages = {each["type"]: each["message"] for each in _conditions(namespace.to_dict())}
    left = {}
    for name, count in _LEFT.findall(messages.get(_CONTENT, "")):
        plural, _, group = name.partition(".")
        left[Resource(group, plural)] = int(count)
    return left, {finalizer for finalizer, _ in _HELD.findall(messages.get(_FINALIZERS, ""))}
