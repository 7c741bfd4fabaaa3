"""Separates the recorded changes of an owned kind into expected writes (of its controller) and inputs (of clients).

For example, the writes to Endpoints by the recorded cluster's endpoints controller are expected. Writes of other
clients are inputs, such as a user's annotation, or a deletion by the namespace controller. Guarantee: the separation
depends only on the recording, not on the writes of ctrlmgr's controllers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.controllers import registry
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.attribution import Managed, writer_of
from ctrlmgr.recording.format import Change


class Ownership(NamedTuple):
    """Says that a controller owns a kind in a replay.

    `controller` is the name of our controller, and `manager` is the field manager of the recorded controller's writes.
    `parent` is the kind of the object that has the same name and lifetime as the owned object. Changes of the kinds in
    `causes` trigger the controller of the owned kind.
    """

    controller: str
    resource: Resource
    manager: str
    parent: Resource
    causes: tuple[Resource, ...]


OWNERSHIPS = tuple(
    Ownership(each.name, kind.resource, kind.manager, kind.parent, kind.causes)
    for each in registry.ALL
    for kind in each.replayed_kinds
)
"""Every kind that a replay can treat as owned by a controller."""


class Expectation:
    """The recorded state of one owned kind; separates its changes into writes of its controller and inputs."""

    def __init__(self, ownership: Ownership) -> None:
        """Create an empty instance."""
        self.ownership = ownership
        self.objects: dict[Key, Object] = {}
        self.changed: set[Key] = set()  # keys that have changed since the last `checkpoint`
        self.expected = 0
        """The number of changes that the recorded controller made."""
        self._managed: dict[Key, Managed] = {}  # the managedFields of each of `objects`
        self._created: dict[Key, Revision] = {}
        self._parent_gone: dict[Key, Revision] = {}  # revisions of the deletions of parents that were not created again
        self._last_cause: dict[str, Revision] = {}  # by namespace
        self._checkpoint: Revision = 0

    def observe(self, change: Change) -> None:
        """Record a change of another kind, because it may cause the next write of the owned kind's controller."""
        obj, ownership = change.object, self.ownership
        if obj.resource in ownership.causes:
            self._last_cause[obj.namespace] = obj.revision
        if obj.resource == ownership.parent:
            if change.type is EventType.DELETED:
                self._parent_gone[obj.key] = obj.revision
            else:
                self._parent_gone.pop(obj.key, None)

    def checkpoint(self, revision: Revision) -> None:
        """Record that the recorded controllers had finished their work at `revision`."""
        self._checkpoint = revision
        self.changed.clear()

    def take(self, change: Change) -> bool:
        """Record a change of the owned kind; return True for an input, False for a write of the recorded controller."""
        is_input = self._take(change)
        self.expected += not is_input
        return is_input

    def take_past(self, change: Change) -> None:
        """Record a change that any client may have made before the recording started."""
        obj = change.object
        self.changed.add(obj.key)
        if change.type is EventType.DELETED:
            for known in (self.objects, self._managed, self._created):
                known.pop(obj.key, None)
            return
        self.objects[obj.key] = obj
        self._managed[obj.key] = Managed(obj)
        self._created.setdefault(obj.key, obj.revision)

    def _take(self, change: Change) -> bool:
        obj = change.object
        key = obj.key
        self.changed.add(key)
        old = self._managed.pop(key, None)
        if change.type is EventType.DELETED:
            self.objects.pop(key, None)
            # If the object was created after its parent was deleted, the parent's deletion did not cause the object's
            # deletion.
            return self._parent_gone.get(key, 0) <= self._created.pop(key, 0)
        self.objects[key] = obj
        new = self._managed[key] = Managed(obj)
        manager, certain = writer_of(old, new)
        if old is None:
            self._created[key] = obj.revision
            # An object with several managers existed when the recording began, so its history is unknown.
            return not (certain and manager == self.ownership.manager)
        return not self._is_controllers(obj, manager, certain=certain)

    def _is_controllers(self, new: Object, manager: str | None, *, certain: bool) -> bool:
        if certain:
            return manager == self.ownership.manager
        # If a change only removes fields, managedFields do not name its author. After a checkpoint, the controller
        # removes its own fields only if another change caused the removal.
        caused = self._last_cause.get(new.namespace, 0) > self._checkpoint
        return caused and manager == self.ownership.manager


def ownerships_of(controllers: Iterable[str], ownerships: Iterable[Ownership] = OWNERSHIPS) -> list[Ownership]:
    """Return the ownerships of our controllers with these names."""
    return [ownership for ownership in ownerships if ownership.controller in controllers]
