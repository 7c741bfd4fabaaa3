"""Who depends on whom: the ownerReferences of every kind, folded from the informers' changes.

Guarantees:
- Folding an event costs as much as it has references; an object without any leaves no trace.
- Owners need no nodes. A reference names its owner's place, and the store knows who is there now; so an owner that
  was never seen and one that is gone are the same, and neither has to be asked for again (Kubernetes' virtual nodes).
- An owner that is not in its store is gone for good. Its uid was given before any object could refer to it, and the
  stores follow the log in order, so a reader that sees the reference would see the owner. That does not hold while a
  sync replaces one store after the other: see `Informers.epoch`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.informer import Change, Lister


class Item(NamedTuple):
    """An object's place: its resource, and its key there."""

    resource: Resource
    place: Key

    @classmethod
    def of(cls, obj: Object) -> Item:
        """Return where `obj` is."""
        return cls(obj.resource, obj.key)

    @classmethod
    def parse(cls, key: Key) -> Item:
        """Read a controller's key, the inverse of `key`."""
        resource, _, name = key.name.partition("/")
        return cls(Resource.parse(resource), Key(key.namespace, name))

    @property
    def key(self) -> Key:
        """The place as a controller's key, named as kubectl names it: `pods/web` or `deployments.apps/web`."""
        return Key(self.place.namespace, f"{self.resource}/{self.place.name}")


class Scope(NamedTuple):
    """Where objects of a kind are: the resource they are stored as, and whether that has namespaces."""

    resource: Resource
    namespaced: bool


class _Dependents:
    """An owner's dependents, each with whether it blocks; `blocking` says how many do."""

    __slots__ = ("blocking", "items")

    def __init__(self) -> None:
        self.items: dict[Item, bool] = {}
        self.blocking = 0


class Graph:
    """One thread folds; any thread asks."""

    def __init__(self, listers: Mapping[Resource, Lister], scopes: Mapping[tuple[str, str], Scope]) -> None:
        """`listers` are of every kind that is collected, `scopes` the same kinds by (apiVersion, kind)."""
        self._listers = listers
        self._scopes = scopes
        self._lock = threading.Lock()
        # By the owner's uid. Guarded by the lock; none is empty.
        self._dependents: dict[str, _Dependents] = {}

    def fold(self, change: Change) -> None:
        """Take in what a change did to an object's references."""
        if is_irrelevant(change):
            return
        before, after = _blocks(change.old), _blocks(change.new)
        if before == after:
            return
        item = Item.of(change.object)
        with self._lock:
            for uid in before:
                self._unlink(uid, item)
            for uid, blocks in after.items():
                self._link(uid, item, blocks)

    def _link(self, uid: str, item: Item, blocks: bool) -> None:
        dependents = self._dependents.setdefault(uid, _Dependents())
        dependents.items[item] = blocks
        dependents.blocking += blocks

    def _unlink(self, uid: str, item: Item) -> None:
        dependents = self._dependents[uid]
        dependents.blocking -= dependents.items.pop(item)
        if not dependents.items:
            del self._dependents[uid]

    def get(self, item: Item) -> Object | None:
        """Return what is at a place now."""
        lister = self._listers.get(item.resource)
        return lister.get(item.place) if lister is not None else None

    def place_of(self, reference: OwnerReference, namespace: str) -> Item | None:
        """Return where the owner of an object in `namespace` ("": cluster-scoped) would be.

        None when that cannot be said: its kind is not one of ours, or it is namespaced and the dependent is not.
        """
        scope = self._scopes.get((reference.api_version, reference.kind))
        if scope is None or (scope.namespaced and not namespace):
            return None
        return Item(scope.resource, Key(namespace if scope.namespaced else "", reference.name))

    def dependents(self, uid: str) -> Sequence[Item]:
        """Return where those are that refer to `uid`, whatever else their references say."""
        with self._lock:
            dependents = self._dependents.get(uid)
            return tuple(dependents.items) if dependents is not None else ()

    def referring(self, kinds: Collection[tuple[str, str]]) -> Sequence[Item]:
        """Return where those are that refer to an owner of one of these kinds, by (apiVersion, kind)."""
        with self._lock:
            items = {item for dependents in self._dependents.values() for item in dependents.items}
        return [item for item in items if (obj := self.get(item)) is not None and _refers(obj, kinds)]

    def is_blocked(self, uid: str) -> bool:
        """Whether one of them has `blockOwnerDeletion`."""
        return self.blocking(uid) > 0

    def blocking(self, uid: str) -> int:
        """Return how many of them have it."""
        with self._lock:
            dependents = self._dependents.get(uid)
            return dependents.blocking if dependents is not None else 0

    def __len__(self) -> int:
        """How many owners, there or not, are referred to."""
        return len(self._dependents)


def _refers(obj: Object, kinds: Collection[tuple[str, str]]) -> bool:
    return any((each.api_version, each.kind) in kinds for each in references(obj))


def references(obj: Object) -> Sequence[OwnerReference]:
    """Return the references of an object; empty rather than None."""
    return obj.metadata.owner_references or ()


def is_irrelevant(change: Change) -> bool:
    """Whether a change left alone all that is judged: most do, and are to cost next to nothing."""
    if change.old is None or change.new is None:
        return False
    old, new = change.old.metadata, change.new.metadata
    return (
        old.owner_references == new.owner_references
        and old.finalizers == new.finalizers
        and old.deletion_timestamp == new.deletion_timestamp
        and old.uid == new.uid
    )


_NONE: Mapping[str, bool] = {}


def _blocks(obj: Object | None) -> Mapping[str, bool]:
    """Return the uids an object refers to, each with whether it blocks that owner's deletion."""
    owners: Iterable[OwnerReference] = references(obj) if obj is not None else ()
    if not owners:
        return _NONE
    blocks: dict[str, bool] = {}
    for owner in owners:
        blocks[owner.uid] = blocks.get(owner.uid, False) or bool(owner.block_owner_deletion)
    return blocks
