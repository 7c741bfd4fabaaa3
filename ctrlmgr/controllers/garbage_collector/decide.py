"""Decides which write the garbage collector makes for one object, from the object and the graph alone.

The rules are those of Kubernetes' `pkg/controller/garbagecollector` (`attemptToDeleteItem`,
`processDeletingDependentsItem`, `attemptToOrphanWorker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.controllers.garbage_collector.owner_graph import Graph, Item, references
from ctrlmgr.engine.deletion import FOREGROUND, ORPHAN


class Delete(NamedTuple):
    """The decision to delete the object, because each of its owners is deleted or waits for the object's deletion."""

    propagation: str
    unblock: bool = False
    """Whether `blockOwnerDeletion` must be set to False before the deletion. The change prevents a deadlock if a
    dependent of the object also waits for deletions, perhaps for the deletion of the object.
    """


class Detach(NamedTuple):
    """The decision to keep the object with only these owner references.

    The owners in the removed references are deleted, or wait for the object's deletion.
    """

    references: Sequence[OwnerReference]


class Orphan(NamedTuple):
    """The decision to remove the owner references of an object's dependents.

    Their references to the object are removed first, and then the orphan finalizer of the object.
    """

    dependents: Sequence[Object]


class Release(NamedTuple):
    """The decision to remove the finalizer with which the object waited for the deletion of its dependents."""

    finalizer: str


Decision: TypeAlias = Delete | Detach | Orphan | Release | None
"""The garbage collector's decision about one object. A decision of None means that no write is needed now."""


class _OwnerState(Enum):
    """The state of an owner, from the point of view of one dependent."""

    SOLID = auto()
    WAITING = auto()
    ABSENT = auto()
    UNKNOWN = auto()


def decide(obj: Object, graph: Graph) -> Decision:
    """Return the decision for `obj` in its current state."""
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
    """Return whether an object is in foreground deletion, in which it waits for the deletion of its dependents."""
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
    """Return the state of an owner with the given place and uid.

    A namespaced owner is looked up in the dependent's namespace, so the state of an owner in another namespace is
    ABSENT. The state is UNKNOWN for a namespaced owner of a cluster-scoped dependent, and for an owner of a kind that
    is not served. An owner whose state is UNKNOWN prevents the deletion of the dependent forever.
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
    """Return the propagation policy of the object's deletion, which is given by the object's own finalizers."""
    finalizers = obj.metadata.finalizers or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
