"""What a recording says our controllers must come to, and which of its changes are inputs instead.

Of Endpoints, what the endpoints controller of the real cluster wrote is the expectation. What any other client wrote (a
client adding an annotation, the API server keeping the `kubernetes` Endpoints, the namespace controller emptying a
namespace) is an input. Guarantee: the split depends on the recording
alone, never on what our controllers did.
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
    """Whose work a kind is.

    `controller` is ours, `manager` the field manager under which the recorded one writes, `parent` the kind whose
    object of the same name an object stands for and goes with, `causes` what makes the controller act.
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
"""Every kind that replay knows to be a controller's work."""


class Expectation:
    """The recorded state of one owned kind, and the sorting of its changes into expectations and inputs."""

    def __init__(self, ownership: Ownership) -> None:
        """Start with nothing recorded."""
        self.ownership = ownership
        self.objects: dict[Key, Object] = {}
        self.changed: set[Key] = set()  # since the last `checkpoint`
        self.expected = 0
        """How many of the recorded changes were the recorded controller's."""
        self._managed: dict[Key, Managed] = {}  # of each of `objects`
        self._created: dict[Key, Revision] = {}
        self._parent_gone: dict[Key, Revision] = {}  # parents that were deleted and are not back
        self._last_cause: dict[str, Revision] = {}  # by namespace
        self._checkpoint: Revision = 0

    def observe(self, change: Change) -> None:
        """Take note of a change of another kind: it may explain what the controller does next."""
        obj, ownership = change.object, self.ownership
        if obj.resource in ownership.causes:
            self._last_cause[obj.namespace] = obj.revision
        if obj.resource == ownership.parent:
            if change.type is EventType.DELETED:
                self._parent_gone[obj.key] = obj.revision
            else:
                self._parent_gone.pop(obj.key, None)

    def checkpoint(self, revision: Revision) -> None:
        """Note that the recorded controllers had nothing left to do at `revision`."""
        self._checkpoint = revision
        self.changed.clear()

    def take(self, change: Change) -> bool:
        """Record a change of the owned kind; True if it is an input, False if the recorded controller made it."""
        is_input = self._take(change)
        self.expected += not is_input
        return is_input

    def take_past(self, change: Change) -> None:
        """Record a change that belongs to the past, whichever client made it."""
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
            # An object that is younger than its parent's deletion did not go because of it.
            return self._parent_gone.get(key, 0) <= self._created.pop(key, 0)
        self.objects[key] = obj
        new = self._managed[key] = Managed(obj)
        manager, certain = writer_of(old, new)
        if old is None:
            self._created[key] = obj.revision
            # Several managers at once: it was there when the recording began, so its history is not in it.
            return not (certain and manager == self.ownership.manager)
        return not self._is_controllers(obj, manager, certain=certain)

    def _is_controllers(self, new: Object, manager: str | None, *, certain: bool) -> bool:
        if certain:
            return manager == self.ownership.manager
        # Only the removal of fields leaves no trace of who did it. After a checkpoint the controller removes
        # something of its own only if there was a cause.
        caused = self._last_cause.get(new.namespace, 0) > self._checkpoint
        return caused and manager == self.ownership.manager


def ownerships_of(controllers: Iterable[str], ownerships: Iterable[Ownership] = OWNERSHIPS) -> list[Ownership]:
    """Return what is owned when our controllers of these names run."""
    return [ownership for ownership in ownerships if ownership.controller in controllers]
