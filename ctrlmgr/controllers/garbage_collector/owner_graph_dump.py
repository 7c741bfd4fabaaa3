"""Writes the graph of owner references in the language DOT of Graphviz.

Guarantees:

- Only objects with an owner or a dependent are in the output, sorted by uid. The output is the same for the same graph.
- An owner that does not exist is a vertex with `missing="true"`. The graph has no virtual vertices as in Kubernetes,
  so `virtual` is always false.
- If uids are given, the output contains only the objects that existing objects connect with the given uids.

Source: Kubernetes `pkg/controller/garbagecollector/dump.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.controllers.events.recorder import reference_to
from ctrlmgr.controllers.garbage_collector.decide import is_waiting
from ctrlmgr.controllers.garbage_collector.owner_graph import Graph, Item, references
from ctrlmgr.golang.go_text import quote


class _Vertex(NamedTuple):
    """An object, or an owner that does not exist."""

    uid: str
    api_version: str
    kind: str
    namespace: str
    name: str
    missing: bool = False
    being_deleted: bool = False
    deleting_dependents: bool = False

    @classmethod
    def of(cls, obj: Object) -> _Vertex:
        reference = reference_to(obj)
        return cls(
            *(obj.uid, reference.api_version, reference.kind, obj.namespace, obj.name),
            being_deleted=obj.is_terminating,
            deleting_dependents=is_waiting(obj),
        )

    @classmethod
    def absent(cls, owner: OwnerReference) -> _Vertex:
        return cls(owner.uid, owner.api_version, owner.kind, "", owner.name, missing=True)

    def lines(self) -> Iterator[str]:
        """Yield the definition of the vertex."""
        group, _, version = self.api_version.rpartition("/")
        full_kind = f"{self.kind}.{version}.{group}" if group else f"{self.kind}.{version}"
        conditions = ",".join(self._conditions())
        label = f"uid={self.uid}\nnamespace={self.namespace}\n{full_kind}/{self.name}\n"
        attributes = {
            "label": f"{label}{conditions}\n" if conditions else label,
            "group": group,
            "version": version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "missing": _go_bool(self.missing),
            "beingDeleted": _go_bool(self.being_deleted),
            "deletingDependents": _go_bool(self.deleting_dependents),
            "virtual": _go_bool(False),
        }
        yield f"  {quote(self.uid)} [\n"
        yield from (f"    {name}={quote(value)}\n" for name, value in attributes.items())
        yield "  ];\n"

    def _conditions(self) -> Iterator[str]:
        if self.being_deleted:
            yield "beingDeleted"
        if self.deleting_dependents:
            yield "deletingDependents"
        if self.missing:
            yield "missingFromGraph"


def dump(graph: Graph, uids: Sequence[str] = ()) -> str:
    """Return the graph in DOT; if `uids` are given, only the parts of the graph that contain one of them."""
    objects = _objects(graph)
    if uids:
        objects = _connected(objects, uids)
    vertices = {uid: _Vertex.of(obj) for uid, obj in objects.items()}
    edges = set[tuple[str, str]]()
    for uid, obj in objects.items():
        for owner in references(obj):
            vertices.setdefault(owner.uid, _Vertex.absent(owner))
            edges.add((uid, owner.uid))
    return "".join(_written([vertices[uid] for uid in sorted(vertices)], sorted(edges)))


def _written(vertices: Iterable[_Vertex], edges: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "strict digraph full {\n"
    if vertices:
        yield "  // Node definitions.\n"
        for vertex in vertices:
            yield from vertex.lines()
    if edges:
        yield "  // Edge definitions.\n"
        yield from (f"  {quote(dependent)} -> {quote(owner)};\n" for dependent, owner in edges)
    yield "}\n"


def _objects(graph: Graph) -> dict[str, Object]:
    """Return the objects with an owner or a dependent, by uid."""
    objects: dict[str, Object] = {}
    for uid, items in graph.edges().items():
        dependents = [obj for item in items if (obj := graph.get(item)) is not None]
        objects |= {obj.uid: obj for obj in dependents}
        if (owner := _owner(graph, uid, dependents)) is not None:
            objects[uid] = owner
    return objects


def _owner(graph: Graph, uid: str, dependents: Iterable[Object]) -> Object | None:
    """Return the object with this uid to which a reference of a dependent leads."""
    for dependent in dependents:
        for reference in references(dependent):
            place: Item | None = graph.place_of(reference, dependent.namespace)
            owner = graph.get(place) if place is not None and reference.uid == uid else None
            if owner is not None and owner.uid == uid:
                return owner
    return None


def _connected(objects: Mapping[str, Object], uids: Iterable[str]) -> dict[str, Object]:
    """Return the objects that are connected with one of `uids`."""
    neighbours: dict[str, set[str]] = {uid: set() for uid in objects}
    for uid, obj in objects.items():
        for owner in references(obj):
            if owner.uid in objects:
                neighbours[uid].add(owner.uid)
                neighbours[owner.uid].add(uid)
    found: dict[str, Object] = {}
    remaining = [uid for uid in uids if uid in objects]
    while remaining:
        uid = remaining.pop()
        if uid not in found:
            found[uid] = objects[uid]
            remaining += neighbours[uid]
    return found


def _go_bool(value: bool) -> str:
    return "true" if value else "false"
