r"""Sets of field paths, as a trie in the form that FieldsV1 has on the wire, and their algebra.

    {"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}}}

A node is in the set if it is empty (then nothing below it is) or holds `.`. At the root, empty is the empty set: no
set holds "the whole object". Paths are independent of each other: what is below a path in the set need not be in it.

Guarantees: no function changes what it is given, results share what did not change, and a result in which nothing
changed is the very argument. Source: structured-merge-diff `fieldpath/set.go` and `serialize.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ctrlmgr.engine.managedfields import path_element

FieldSet: TypeAlias = "dict[str, FieldSet]"
"""Path elements (see `path_element`), each with what is below it."""
Path: TypeAlias = tuple[str, ...]

SELF = "."
"""The mark of a node that is in the set itself, as well as what is below it."""
EVERY = "*"
"""In a pattern: any element."""


def is_member(node: FieldSet) -> bool:
    """Whether the path of a node is in the set."""
    return not node or SELF in node


def as_member(node: FieldSet) -> FieldSet:
    """Return a node with its own path in the set."""
    return node if not node or SELF in node else {SELF: {}, **node}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in either set; in order if both are."""
    if not other or one is other:
        return one
    return _joined(one, other) if one else other


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    result = one
    for element, node in other.items():
        mine = one.get(element)
        both = node if mine is None else _union_below(mine, node)
        if both is not mine:
            if result is one:
                result = dict(one)
            result[element] = both
    return result if len(result) == len(one) else {element: result[element] for element in sort_elements(result)}


def _union_below(one: FieldSet, other: FieldSet) -> FieldSet:
    if one and other:
        return _joined(one, other)
    return as_member(one if one or not other else other)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in both sets."""
    result = {}
    for element, node in one.items():
        theirs = other.get(element)
        if theirs is not None and (common := _intersection_below(node, theirs)) is not None:
            result[element] = common
    return result


def _intersection_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if one and other:
        return _node(intersection(one, other))
    return {} if is_member(one) and is_member(other) else None


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in `one` and not in `other`; what is below a path of `other` stays."""
    result: FieldSet = {}
    changed = False
    for element, node in one.items():
        theirs = other.get(element)
        rest = node if theirs is None else _difference_below(node, theirs)
        if rest is not None:
            result[element] = rest
        changed = changed or rest is not node
    return result if changed else one


def _difference_below(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if not one:
        return None if is_member(other) else one
    rest = difference(one, other or {SELF: {}})
    return one if rest is one else _node(rest)


def difference_with_children(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return what is in `one`, and neither in `other` nor below a path of `other` (smd's RecursiveDifference)."""
    result: FieldSet = {}
    changed = False
    for element, node in one.items():
        theirs = other.get(element)
        rest = node if theirs is None or element == SELF else _outside(node, theirs)
        if rest is not None:
            result[element] = rest
        changed = changed or rest is not node
    return result if changed else one


def _outside(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if is_member(other):
        return None
    rest = difference_with_children(one, other)
    return one if rest is one else _node(rest)


def matching(fields: FieldSet, pattern: FieldSet) -> FieldSet:
    """Return what a pattern admits: paths that begin with one of its, or lead to one (smd's FilterIncludeMatches)."""
    result: FieldSet = {}
    for element, node in fields.items():
        below = pattern.get(EVERY, pattern.get(element))
        if element == SELF or below is None:
            continue
        admitted = matching(node, below) if below else node
        if below and SELF in node:
            admitted = {SELF: {}, **admitted} if admitted else {}
        if admitted or is_member(node):
            result[element] = admitted
    return result


def _node(fields: FieldSet) -> FieldSet | None:
    """Return the node that has `fields` below it: none for nothing, a leaf for nothing but itself."""
    if len(fields) == 1 and SELF in fields:
        return {}
    return fields or None


def contains(fields: FieldSet, path: Sequence[str]) -> bool:
    """Whether a path is in the set."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and is_member(node or {})


def paths(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Yield every path of the set as Kubernetes does: those that end in a node first, then what is below it."""
    elements = sort_elements(fields)
    for element in elements:
        if element != SELF and is_member(fields[element]):
            yield (*above, element)
    for element in elements:
        yield from paths(fields[element], (*above, element))


def of_paths(*paths: Sequence[str]) -> FieldSet:
    """Return the set of some paths, given as elements without the `f:` of fields."""
    result: FieldSet = {}
    for path in paths:
        node: FieldSet = {}
        for element in reversed(path):
            node = {element if element[1:2] == ":" or element == EVERY else path_element.field(element): node}
        result = union(result, node)
    return result


def text(path: Sequence[str]) -> str:
    """Return a path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(path_element.text, path))


def in_order(fields: FieldSet) -> FieldSet:
    """Return the set with its elements in the order in which Kubernetes writes them."""
    result: FieldSet = {}
    for element in sort_elements(fields):
        node = fields[element]
        result[element] = in_order(node) if node else node
    return result


def sort_elements(fields: Iterable[str]) -> list[str]:
    """Return elements in Kubernetes' order; `SELF` comes first."""
    elements = sorted(fields)
    if len(elements) > 1 and elements[-1] > "g":  # not only fields, for which the order of strings is the right one
        start = 1 if elements[0] == SELF else 0
        below = elements[start:]
        if len(below) > 1 and not path_element.are_in_order(below):
            elements[start:] = sorted(below, key=path_element.order)
    return elements


def decode(fields: Any) -> FieldSet:
    """Return FieldsV1 from elsewhere as a set: elements spelt canonically, unknown kinds of them left out.

    Raises ValueError for what is no FieldsV1.
    """
    return _decode(fields)[0]


def _decode(fields: Any) -> tuple[FieldSet, bool]:
    """Return what is below a node, and whether the node itself is in the set."""
    if not isinstance(fields, dict | None):
        raise ValueError("not an object")
    below: FieldSet = {}
    member = False
    for element, node in (fields or {}).items():
        if element == SELF:
            member = True
        elif (spelling := path_element.canonical(element)) is not None:
            children, is_in = _decode(node)
            decoded = {SELF: {}, **children} if children and is_in else children
            below[spelling] = _union_below(below[spelling], decoded) if spelling in below else decoded
    return below, member or not below
