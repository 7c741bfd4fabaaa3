"""What claims and volumes are protected with: a finalizer that each has until it may go.

Guarantees, Kubernetes' (`pkg/util/slice`, `pkg/controller/volume/protectionutil`): what is not being deleted is given
the finalizer where it lacks it; what is being deleted loses it when nothing uses it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Lister


def is_concerned(obj: Object, finalizer: str) -> bool:
    """Say whether the finalizer may have to come or go."""
    return obj.is_terminating == (finalizer in (obj.metadata.finalizers or ()))


class Protector:
    """A reconciler of one kind."""

    def __init__(self, objects: Lister, finalizer: str, is_used: Callable[[Object], bool]) -> None:
        """`is_used` says whether an object that is being deleted has to stay for now."""
        self._objects = objects
        self._finalizer = finalizer
        self._is_used = is_used

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Add the finalizer or take it away; raises what the API refuses."""
        obj = self._objects.get(key)
        if obj is None or not is_concerned(obj, self._finalizer) or (obj.is_terminating and self._is_used(obj)):
            return
        finalizers = [each for each in obj.metadata.finalizers or () if each != self._finalizer]
        if not obj.is_terminating:
            finalizers.append(self._finalizer)
        body = obj.to_dict()
        try:
            client.update(Object.from_dict({**body, "metadata": {**body["metadata"], "finalizers": finalizers}}))
        except NotFound:  # with its last finalizer it goes
            return

    def concerned(self, change: Change) -> Iterable[Key]:
        """Return the key of an object that has to be looked at."""
        obj = change.new
        return (obj.key,) if obj is not None and is_concerned(obj, self._finalizer) else ()
