"""Merges similar nodes of a graph of causes and effects.

For example, the changes of nine pods that became unready are drawn as one node, and their causes as another node.

Two nodes are similar if they have equal fields (except for the object and the time) and similar neighbours. The classes
of similar nodes are the coarsest partition of the nodes with that property. A node is never similar to one of its
causes, because every edge leads forward in time. Therefore every edge of the merged graph also leads forward in time.

Guarantees: the node in the middle of the graph, invisible events, and nodes with hidden neighbours are never merged. No
node is lost: each node is either drawn, or listed in the field `alike` of a node that represents it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Node: TypeAlias = dict[str, Any]
Edge: TypeAlias = tuple[str, str]

_ALONE = ("forbidden", "compacted", "hidden")
_EVENT = ("resource", "namespace", "type", "actor", "said")
_RUN = ("controller", "attempt", "outcome", "message", "inferred", "reason")


def grouped(nodes: Sequence[Node], edges: Iterable[Edge], root: str) -> tuple[list[Node], list[Edge]]:
    """Return the nodes and edges of the merged graph.

    The first of several similar nodes represents all of them, and its field `alike` lists the others.
    """
    edges = list(edges)
    classes = _divided(nodes, edges, root)
    first: dict[int, Node] = {}
    alike: dict[int, list[Node]] = {}
    for node in nodes:
        first.setdefault(classes[node["id"]], node)
        alike.setdefault(classes[node["id"]], []).append(node)
    drawn = [{**node, "alike": _named(alike[number])} for number, node in first.items()]
    ends = {name: first[number]["id"] for name, number in classes.items()}
    return drawn, sorted({(ends[start], ends[end]) for start, end in edges})


def _named(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the fields in which similar nodes differ; empty if there is only one node."""
    if len(nodes) == 1:
        return []
    return [{name: node[name] for name in ("id", "revision", "name", "key") if name in node} for node in nodes]


def _divided(nodes: Sequence[Node], edges: Sequence[Edge], root: str) -> Mapping[str, int]:
    """Return the class of similar nodes to which each node belongs.

    The function first divides nodes into classes by their fields, and then repeatedly divides the classes by the nodes'
    neighbours.
    """
    beside: dict[str, tuple[list[str], list[str]]] = {node["id"]: ([], []) for node in nodes}
    for start, end in edges:
        beside[start][1].append(end)
        beside[end][0].append(start)
    classes = _numbered({node["id"]: _sentence(node, root) for node in nodes})
    while True:
        finer = _numbered(
            {
                name: (classes[name], *(frozenset(classes[each] for each in side) for side in sides))
                for name, sides in beside.items()
            }
        )
        if len(set(finer.values())) == len(set(classes.values())):
            return classes
        classes = finer


def _numbered(keys: Mapping[str, object]) -> dict[str, int]:
    numbers: dict[object, int] = {}
    return {name: numbers.setdefault(key, len(numbers)) for name, key in keys.items()}


def _sentence(node: Node, root: str) -> object:
    """Return the fields of a node that are equal in all similar nodes."""
    if node["id"] == root or any(node.get(name) for name in _ALONE):
        return node["id"]
    fields = _EVENT if "revision" in node else _RUN
    return tuple(str(node.get(name)) for name in fields)
