"""Who depends on whom: the ownerReferences of every kind, folded from the informers' changes.

Guarantees:
- Folding an event costs as much as it has references; an object without any leaves no trace.
- Owners need no nodes. A reference names its owner's place, and the store knows who is there now; so an owner that
  was never seen and one that is gone are the same, and neither has to be asked for again (Kubernetes' virtual nodes).
- An owner that is not in its store is gone for good. Its uid was given before any object could refer to it, and the
  stores follow the log in order, so a reader that sees the reference would see the owner. That does not hold while a
  sync replaces one store after the other: see `Informers.epoch`.
- Of an owner that is in another namespace than its dependent it is known that it is there: of every object with a
  namespace the graph keeps which that is.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
        # The namespace of each object that has one, by its uid; and the dependents, with the uids of owners that are
        # in another one, that `misplaced` has yielded. Guarded by the lock.
        self._namespaces: dict[str, str] = {}
        self._told: set[tuple[Item, str]] = set()

    def fold(self, change: Change) -> None:
        """Take in what a change did to an object's references."""
        if is_irrelevant(change):
            return
        self._place(change)
        before, after = _blocks(change.old), _blocks(change.new)
        if before == after:
            return
        item = Item.of(change.object)
        with self._lock:
            for uid in before:
                self._unlink(uid, item)
            for uid, blocks in after.items():
                self._link(uid, item, blocks)

    def _place(self, change: Change) -> None:
        """Take in who is in which namespace."""
        old, new = change.old, change.new
        if old is not None and new is not None and old.uid == new.uid:
            return
        with self._lock:
            if old is not None:
                self._namespaces.pop(old.uid, None)
            if new is not None and new.namespace:
                self._namespaces[new.uid] = new.namespace

    def _link(self, uid: str, item: Item, blocks: bool) -> None:
        dependents = self._dependents.setdefault(uid, _Dependents())
        dependents.items[item] = blocks
        dependents.blocking += blocks

    def _unlink(self, uid: str, item: Item) -> None:
        dependents = self._dependents[uid]
        dependents.blocking -= dependents.items.pop(item)
        self._told.discard((item, uid))
        if not dependents.items:
            del self._dependents[uid]

    def misplaced(self, change: Change) -> Iterator[tuple[Object, OwnerReference]]:
        """Yield dependents with references to owners of another namespace that a change has brought, each once.

        An owner in a namespace may own what is in the same one and nothing else. Of an object's references no more than
        the first such is yielded (`addDependentToOwners`, `processGraphChanges`).
        """
        old, new = change.old, change.new
        if new is None:
            return
        is_same = old is not None and old.uid == new.uid
        if owners := references(new):
            known = {each.uid for each in references(old)} if old is not None and is_same else set()
            yield from self._astray(new, [each for each in owners if each.uid not in known])
        if new.namespace and not is_same and new.uid in self._dependents:  # asked without the lock by who folds
            for item in self.dependents(new.uid):
                dependent = self.get(item)
                if dependent is not None:
                    yield from self._astray(dependent, [each for each in references(dependent) if each.uid == new.uid])

    def _astray(self, obj: Object, owners: Iterable[OwnerReference]) -> Iterator[tuple[Object, OwnerReference]]:
        for owner in owners:
            with self._lock:
                place = Item.of(obj), owner.uid
                if self._namespaces.get(owner.uid, obj.namespace) == obj.namespace or place in self._told:
                    continue
                self._told.add(place)
            yield obj, owner
            return

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
