"""Manages ownership: a controller keeps its objects, adopts selected orphans, and releases unselected objects.

Guarantees, as in Kubernetes (`pkg/controller/controller_ref_manager.go`):
- An object has at most one controller, and only its controller releases it.
- Neither the owner nor the adopted object may be terminating. Before the first adoption, the owner is read from the log
  and not from the cache. The adoption fails if the owner no longer exists, has another uid, or is terminating.
- The patches for adoption and release contain the object's uid, so another object with the same name is neither adopted
  nor released.
- If the object to adopt or release no longer exists, no error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.workloads.controlled_pods import controller_of
from ctrlmgr.errors import Conflict, Invalid, NotFound
from ctrlmgr.eventlog import EventLog

log = structlog.get_logger(__name__)

Matches = Callable[[Object], bool]


class Claims(NamedTuple):
    """The objects of a controller in three groups: objects to keep, objects to adopt, and objects to release."""

    kept: Sequence[Object] = ()
    adopted: Sequence[Object] = ()
    released: Sequence[Object] = ()


class Owner(NamedTuple):
    """An object that controls other objects, with the apiVersion and kind for owner references."""

    object: Object
    api_version: str
    kind: str

    def reference(self) -> dict[str, Any]:
        """Return the owner reference that dependents of this object get."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.object.name,
            "uid": self.object.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


def decide_claims(owner: Object, objects: Iterable[Object], matches: Matches) -> Claims:
    """Return three groups of the objects in `objects`: those that `owner` keeps, adopts, and releases."""
    kept, adopted, released = [], [], []
    for obj in objects:
        reference = controller_of(obj)
        if reference is None:
            if not owner.is_terminating and not obj.is_terminating and matches(obj):
                adopted.append(obj)
        elif reference.uid == owner.uid:
            if matches(obj):
                kept.append(obj)
            elif not owner.is_terminating:
                released.append(obj)
    return Claims(kept, adopted, released)


class ControllerRefManager:
    """Performs the adoptions and releases that `decide_claims` returns."""

    def __init__(self, event_log: EventLog, finalizer: str | None = None) -> None:
        """Create an instance that reads the owner from `event_log` before an adoption.

        A cache cannot replace `event_log`, because it may lack the owner's deletion.

        If `finalizer` is given, adopted objects get the finalizer, and released objects lose the finalizer.
        """
        self._log = event_log
        self._finalizer = finalizer

    def claim(self, owner: Owner, objects: Iterable[Object], matches: Matches, client: EngineClient) -> list[Object]:
        """Return the objects in `objects` that belong to the owner, including the objects that are adopted now.

        Raises `Conflict` if the owner must not adopt objects any more, and the errors of `client` if a patch fails.
        """
        claims = decide_claims(owner.object, objects, matches)
        for obj in claims.released:
            self._release(owner, obj, client)
        if not claims.adopted:
            return [*claims.kept]
        self._check_may_adopt(owner.object)
        adopted = [self._adopt(owner, obj, client) for obj in claims.adopted]
        return sorted([*claims.kept, *(obj for obj in adopted if obj is not None)], key=lambda each: each.name)

    def _check_may_adopt(self, owner: Object) -> None:
        current = self._log.get(owner.resource, owner.key)
        if current is None or current.uid != owner.uid:
            raise Conflict(f"can't adopt: original {owner.resource} {owner.key} is gone")
        if current.is_terminating:
            deleted = current.metadata.deletion_timestamp
            raise Conflict(f"can't adopt: {owner.key} has just been deleted at {deleted}")

    def _adopt(self, owner: Owner, obj: Object, client: EngineClient) -> Object | None:
        metadata: dict[str, Any] = {"ownerReferences": [owner.reference()], "uid": obj.uid}
        if self._finalizer is not None:
            metadata["finalizers"] = [self._finalizer]
        try:
            return client.patch(obj, {"metadata": metadata})
        except NotFound:
            return None

    def _release(self, owner: Owner, obj: Object, client: EngineClient) -> None:
        reference = {"$patch": "delete", "uid": owner.object.uid}
        metadata: dict[str, Any] = {"ownerReferences": [reference], "uid": obj.uid}
        if self._finalizer is not None:
            metadata["$deleteFromPrimitiveList/finalizers"] = [self._finalizer]
        try:
            client.patch(obj, {"metadata": metadata})
        except (NotFound, Invalid) as error:  # The object was deleted, released already, or replaced.
            log.debug("object to release not found", object=str(obj.key), error=str(error))
