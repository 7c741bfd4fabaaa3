"""Protects claims and volumes with a finalizer from deletion while they are in use.

Guarantees, as in Kubernetes (`pkg/util/slice`, `pkg/controller/volume/protectionutil`): if an object is not being
deleted and lacks the finalizer, the finalizer is added. If an object is being deleted and is no longer used, its
finalizer is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Lister


def is_concerned(obj: Object, finalizer: str) -> bool:
    """Return whether an object's finalizer may have to be added or removed."""
    return obj.is_terminating == (finalizer in (obj.metadata.finalizers or ()))


class Protector:
    """Reconciles the protection finalizer of the objects of one kind."""

    def __init__(self, objects: Lister, finalizer: str, is_used: Callable[[Object], bool]) -> None:
        """Create a reconciler that calls `is_used` to check whether an object that is being deleted is still in use."""
        self._objects = objects
        self._finalizer = finalizer
        self._is_used = is_used

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Add or remove the protection finalizer; raises the errors of the API if the write fails."""
        obj = self._objects.get(key)
        if obj is None or not is_concerned(obj, self._finalizer) or (obj.is_terminating and self._is_used(obj)):
            return
        finalizers = [each for each in obj.metadata.finalizers or () if each != self._finalizer]
        if not obj.is_terminating:
            finalizers.append(self._finalizer)
        body = obj.to_dict()
        try:
            client.update(Object.from_dict({**body, "metadata": {**body["metadata"], "finalizers": finalizers}}))
        except NotFound:  # If this was the last finalizer, its removal deletes the object.
            return

    def concerned(self, change: Change) -> Iterable[Key]:
        """Return the key of an object whose protection finalizer may have to be added or removed."""
        obj = change.new
        return (obj.key,) if obj is not None and is_concerned(obj, self._finalizer) else ()
