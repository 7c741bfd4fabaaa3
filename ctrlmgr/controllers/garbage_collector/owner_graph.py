"""The graph of owner references of all kinds, updated from the informers' changes.

Guarantees:

- The cost of a change is proportional to the number of the object's references; an object without references uses no
  memory.
- The graph has no nodes for owners. An owner reference contains the place of the owner, and the store contains the
  current object at that place. An owner that never existed is handled like a deleted owner. Therefore the graph needs
  no virtual nodes, which Kubernetes' graph has.
- If an owner is not in its store, the owner was deleted, because a store cannot receive an owner later than its
  dependents. The owner's uid was assigned before any object could refer to the owner, and the stores follow the log in
  order. Therefore a reader that sees an owner reference also sees the owner if the owner exists. While a sync replaces
  the stores, the graph can be incomplete (see `Informers.epoch`).
- The graph keeps the namespace of every namespaced object, in order to detect references to owners in another
  namespace.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.informer import Change, Lister


class Item(NamedTuple):
    """The place of an object: its resource, and its key in that resource."""

    resource: Resource
    place: Key

    @classmethod
    def of(cls, obj: Object) -> Item:
        """Return the place where objects of the kind of `obj` are stored."""
        return cls(obj.resource, obj.key)

    @classmethod
    def parse(cls, key: Key) -> Item:
        """Parse a controller's key, which has the format of the property `key`."""
        resource, _, name = key.name.partition("/")
        return cls(Resource.parse(resource), Key(key.namespace, name))

    @property
    def key(self) -> Key:
        """The place as the key of a controller, in kubectl's form: `pods/web` or `deployments.apps/web`."""
        return Key(self.place.namespace, f"{self.resource}/{self.place.name}")


class Scope(NamedTuple):
    """The place where objects of a kind are stored: the resource, and whether the resource is namespaced."""

    resource: Resource
    namespaced: bool


class _Dependents:
    """The dependents of an owner, and, for each dependent, whether it blocks the owner's deletion.

    The field `blocking` is the number of dependents that block the deletion.
    """

    __slots__ = ("blocking", "items")

    def __init__(self) -> None:
        self.items: dict[Item, bool] = {}
        self.blocking = 0


class Graph:
    """The graph of the owner references of all objects; one thread updates the graph, and any thread may read it."""

    def __init__(self, listers: Mapping[Resource, Lister], scopes: Mapping[tuple[str, str], Scope]) -> None:
        """Create a graph that reads objects from `listers`, one lister for each collected kind.

        The argument `scopes` contains the same kinds by (apiVersion, kind).
        """
        self._listers = listers
        self._scopes = scopes
        self._lock = threading.Lock()
        # The keys of this dictionary are uids of owners, and no value is empty. The lock guards the dictionary.
        self._dependents: dict[str, _Dependents] = {}
        # The lock guards two fields: the namespace of each namespaced object, keyed by the object's uid, and the pairs
        # of dependent and owner uid that `misplaced` has already yielded.
        self._namespaces: dict[str, str] = {}
        self._reported: set[tuple[Item, str]] = set()

    def fold(self, change: Change) -> None:
        """Update the graph with a change of an object."""
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
        """Update the recorded namespace of an object after a change."""
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
        self._reported.discard((item, uid))
        if not dependents.items:
            del self._dependents[uid]

    def misplaced(self, change: Change) -> Iterator[tuple[Object, OwnerReference]]:
        """Yield the dependents that, after a change, have a reference to an owner in another namespace.

        A namespaced owner may only own objects in its namespace. Each dependent is yielded once, with its first
        reference to an owner in another namespace (`addDependentToOwners`, `processGraphChanges`).
        """
        old, new = change.old, change.new
        if new is None:
            return
        is_same = old is not None and old.uid == new.uid
        if owners := references(new):
            known = {each.uid for each in references(old)} if old is not None and is_same else set()
            yield from self._astray(new, [each for each in owners if each.uid not in known])
        # The lock is not needed here, because only this thread updates the graph.
        if new.namespace and not is_same and new.uid in self._dependents:
            for item in self.dependents(new.uid):
                dependent = self.get(item)
                if dependent is not None:
                    yield from self._astray(dependent, [each for each in references(dependent) if each.uid == new.uid])

    def _astray(self, obj: Object, owners: Iterable[OwnerReference]) -> Iterator[tuple[Object, OwnerReference]]:
        for owner in owners:
            with self._lock:
                place = Item.of(obj), owner.uid
                if self._namespaces.get(owner.uid, obj.namespace) == obj.namespace or place in self._reported:
                    continue
                self._reported.add(place)
            yield obj, owner
            return

    def get(self, item: Item) -> Object | None:
        """Return the current object at a place."""
        lister = self._listers.get(item.resource)
        return lister.get(item.place) if lister is not None else None

    def place_of(self, reference: OwnerReference, namespace: str) -> Item | None:
        """Return the place of the owner of an object in `namespace`, which is empty if the object is cluster-scoped.

        Return None if the place is unknown: the owner's kind is not collected, or the owner's kind is namespaced and
        the dependent is cluster-scoped.
        """
        scope = self._scopes.get((reference.api_version, reference.kind))
        if scope is None or (scope.namespaced and not namespace):
            return None
        return Item(scope.resource, Key(namespace if scope.namespaced else "", reference.name))

    def dependents(self, uid: str) -> Sequence[Item]:
        """Return the places of the objects that have a reference to the owner with this uid."""
        with self._lock:
            dependents = self._dependents.get(uid)
            return tuple(dependents.items) if dependents is not None else ()

    def edges(self) -> dict[str, tuple[Item, ...]]:
        """Return the places of the dependents of every owner, by the owner's uid."""
        with self._lock:
            return {uid: tuple(dependents.items) for uid, dependents in self._dependents.items()}

    def referring(self, kinds: Collection[tuple[str, str]]) -> Sequence[Item]:
        """Return the places of the objects that refer to an owner of one of these kinds.

        A kind is a pair (apiVersion, kind).
        """
        with self._lock:
            items = {item for dependents in self._dependents.values() for item in dependents.items}
        return [item for item in items if (obj := self.get(item)) is not None and _refers(obj, kinds)]

    def is_blocked(self, uid: str) -> bool:
        """Return whether any dependent of the owner `uid` has set `blockOwnerDeletion`."""
        return self.blocking(uid) > 0

    def blocking(self, uid: str) -> int:
        """Return the number of dependents of the owner `uid` that have set `blockOwnerDeletion`."""
        with self._lock:
            dependents = self._dependents.get(uid)
            return dependents.blocking if dependents is not None else 0

    def __len__(self) -> int:
        """Return the number of owners in references, including owners that do not exist."""
        return len(self._dependents)


def _refers(obj: Object, kinds: Collection[tuple[str, str]]) -> bool:
    return any((each.api_version, each.kind) in kinds for each in references(obj))


def references(obj: Object) -> Sequence[OwnerReference]:
    """Return the owner references of an object; if there are none, return an empty list."""
    return obj.metadata.owner_references or ()


def is_irrelevant(change: Change) -> bool:
    """Return whether a change does not affect the graph.

    The check is quick, and most changes do not affect the graph.
    """
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
    """Return the uids of an object's owners, and whether the object blocks the deletion of each owner."""
    owners: Iterable[OwnerReference] = references(obj) if obj is not None else ()
    if not owners:
        return _NONE
    blocks: dict[str, bool] = {}
    for owner in owners:
        blocks[owner.uid] = blocks.get(owner.uid, False) or bool(owner.block_owner_deletion)
    return blocks
