r"""Sets of field paths, as a trie in the form of FieldsV1, and the operations on these sets.

    {"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:name": {}}}}}

A node of the trie is in the set if it is empty or contains `.`; an empty node has no descendants in the set. At the
root, an empty dict is the empty set, because no set contains "the whole object". The paths of a set are independent: if
a path is in the set, the paths below it are not necessarily in the set.

Guarantees: no function changes its arguments. Returned sets share unchanged parts with the arguments, and if nothing
changes, the argument itself is returned. Source: structured-merge-diff `fieldpath/set.go` and `serialize.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ctrlmgr.engine.managedfields import path_element

FieldSet: TypeAlias = "dict[str, FieldSet]"
"""A node of the trie: path elements (see `path_element`), each with the node below it."""
Path: TypeAlias = tuple[str, ...]

SELF = "."
"""The element that marks a node that is in the set and also has nodes below it."""
EVERY = "*"
"""The element that stands for any element in a pattern."""


def is_member(node: FieldSet) -> bool:
    """Return whether the path of a node belongs to the set."""
    return not node or SELF in node


def as_member(node: FieldSet) -> FieldSet:
    """Return a node with its own path added to the set."""
    return node if not node or SELF in node else {SELF: {}, **node}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the union of two sets; the result is sorted if both sets are sorted."""
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
    """Return the paths that are in both of two sets."""
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
    """Return the paths in `one` that are not in `other`; paths below a path of `other` are kept."""
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
    """Return the paths in `one` that are neither in `other` nor below a path of `other` (smd's RecursiveDifference)."""
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
    """Return the paths of the set at, above or below a path of `pattern` (smd's FilterIncludeMatches)."""
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
    """Return the node with `fields` below it; None if the node is empty, a leaf if it contains only `SELF`."""
    if len(fields) == 1 and SELF in fields:
        return {}
    return fields or None


def contains(fields: FieldSet, path: Sequence[str]) -> bool:
    """Return whether a path is in the set."""
    node: FieldSet | None = fields
    for element in path:
        node = node.get(element) if node else None
        if node is None:
            return False
    return bool(path) and is_member(node or {})


def paths(fields: FieldSet, above: Path = ()) -> Iterator[Path]:
    """Yield every path of the set in Kubernetes' order: at each node, leaves precede the paths below the node."""
    elements = sort_elements(fields)
    for element in elements:
        if element != SELF and is_member(fields[element]):
            yield (*above, element)
    for element in elements:
        yield from paths(fields[element], (*above, element))


def of_paths(*paths: Sequence[str]) -> FieldSet:
    """Return the set of some paths, each a sequence of elements; the `f:` of fields may be left out."""
    result: FieldSet = {}
    for path in paths:
        node: FieldSet = {}
        for element in reversed(path):
            node = {element if element[1:2] == ":" or element == EVERY else path_element.field(element): node}
        result = union(result, node)
    return result


def text(path: Sequence[str]) -> str:
    """Return a path in the form that error messages contain: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(path_element.text, path))


def in_order(fields: FieldSet) -> FieldSet:
    """Return the set with its elements sorted in the order in which Kubernetes writes them."""
    result: FieldSet = {}
    for element in sort_elements(fields):
        node = fields[element]
        result[element] = in_order(node) if node else node
    return result


def sort_elements(fields: Iterable[str]) -> list[str]:
    """Return elements in Kubernetes' order; `SELF` is first."""
    elements = sorted(fields)
    # elements that are not fields, for which the order of strings is wrong
    if len(elements) > 1 and elements[-1] > "g":
        start = 1 if elements[0] == SELF else 0
        below = elements[start:]
        if len(below) > 1 and not path_element.are_in_order(below):
            elements[start:] = sorted(below, key=path_element.order)
    return elements


def decode(fields: Any) -> FieldSet:
    """Return the set that a client's FieldsV1 describes.

    Elements of FieldsV1 are converted to their canonical form, and unknown kinds of elements are dropped. Raises
    ValueError if `fields` is not valid FieldsV1.
    """
    return _decode(fields)[0]


def _decode(fields: Any) -> tuple[FieldSet, bool]:
    """Return the set below a node, and whether the node itself is in the set."""
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
