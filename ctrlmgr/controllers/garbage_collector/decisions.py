"""What the garbage collector does about one object, decided from the object and the graph alone.

The rules are those of Kubernetes' `pkg/controller/garbagecollector` (`attemptToDeleteItem`,
`processDeletingDependentsItem`, `attemptToOrphanWorker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.controllers.garbage_collector.graph import Graph, Item, references
from ctrlmgr.engine.deletion import FOREGROUND, ORPHAN


class Delete(NamedTuple):
    """Delete it: every owner is gone, or waits for it to go."""

    propagation: str
    unblock: bool = False
    """Whether it must first stop blocking its owners: one of its dependents waits as well, perhaps for it."""


class Detach(NamedTuple):
    """Keep it, with no more than these references: the other owners are gone, or wait for it."""

    references: Sequence[OwnerReference]


class Orphan(NamedTuple):
    """Take the references to it away from its dependents, then the finalizer that asks for that."""

    dependents: Sequence[Object]


class Release(NamedTuple):
    """Take away the finalizer that waited for its dependents."""

    finalizer: str


Decision: TypeAlias = Delete | Detach | Orphan | Release | None
"""None: nothing, or nothing yet."""


class _OwnerState(Enum):
    """How an owner is seen from its dependent."""

    SOLID = auto()
    WAITING = auto()
    ABSENT = auto()
    UNKNOWN = auto()


def decide(obj: Object, graph: Graph) -> Decision:
    """Return what is to be done about `obj` as it is now."""
    if obj.is_terminating:
        return _decide_terminating(obj, graph)
    owners = references(obj)
    if not owners:
        return None
    states = [_owner_state(owner, obj, graph) for owner in owners]
    if _OwnerState.UNKNOWN in states:
        return None
    solid = [owner for owner, state in zip(owners, states, strict=True) if state is _OwnerState.SOLID]
    if solid:
        return Detach(solid) if len(solid) < len(owners) else None
    if _OwnerState.WAITING in states and (dependents := graph.dependents(obj.uid)):
        return Delete("Foreground", unblock=any(_waits(graph, item) for item in dependents))
    return Delete(_propagation(obj))


def is_waiting(obj: Object) -> bool:
    """Whether an object is deleted in the foreground: it goes when its dependents have gone."""
    return obj.is_terminating and FOREGROUND in (obj.metadata.finalizers or ())


def _decide_terminating(obj: Object, graph: Graph) -> Decision:
    finalizers = obj.metadata.finalizers or ()
    if ORPHAN in finalizers:
        found = (graph.get(item) for item in graph.dependents(obj.uid))
        return Orphan([dependent for dependent in found if dependent is not None])
    if FOREGROUND in finalizers and not graph.is_blocked(obj.uid):
        return Release(FOREGROUND)
    return None


def _owner_state(owner: OwnerReference, obj: Object, graph: Graph) -> _OwnerState:
    """Judge an owner by its place and uid.

    A namespaced owner is sought in the dependent's own namespace, so one in another counts as absent. That of a
    cluster-scoped dependent is UNKNOWN and protects it for ever, as does a kind that is not served.
    """
    place = graph.place_of(owner, obj.namespace)
    if place is None:
        return _OwnerState.UNKNOWN
    found = graph.get(place)
    if found is None or found.uid != owner.uid:
        return _OwnerState.ABSENT
    return _OwnerState.WAITING if is_waiting(found) else _OwnerState.SOLID


def _waits(graph: Graph, item: Item) -> bool:
    found = graph.get(item)
    return found is not None and is_waiting(found)


def _propagation(obj: Object) -> str:
    """Return what its own finalizers ask for, should a client have put them there beforehand."""
    finalizers = obj.metadata.finalizers or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
