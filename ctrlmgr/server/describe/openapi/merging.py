"""Merges OpenAPI v2 documents of extension servers into the server's own document.

Guarantees:
- If several documents contain a path, the path of the first document is kept. If a definition or parameter differs from
  an earlier one with the same name, the later one is renamed (`NAME_v2`, `NAME_v3`, …), with all references to it.
- Definitions that differ only in their group, version and kind are merged into one.
- The functions do not change their arguments.

Source: kube-openapi `pkg/aggregator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Node: TypeAlias = Mapping[str, Any]

_GVK: Final = "x-kubernetes-group-version-kind"
_PREFIX: Final = "#/{}/"
_NAMED: Final = ("definitions", "parameters")
_DATA: Final = ("default", "enum", "example", "examples")
"""The fields of a schema whose values are data, so that they contain no references."""
_MAPS: Final = ("properties", "patternProperties", "definitions", "responses", "paths")
"""The fields of a schema whose values map any names to schemas."""


def without_other_paths(document: Node, is_kept: Callable[[str], bool]) -> Node:
    """Return a document with some of its paths, without the definitions that only the removed paths need."""
    paths = {path: item for path, item in document["paths"].items() if is_kept(path)}
    definitions = document["definitions"]
    gone = _needed(document["paths"].values(), document) - _needed(paths.values(), document)
    kept = {name: each for name, each in definitions.items() if name not in gone}
    return {**document, "paths": paths, "definitions": kept}


def merged(own: Node, others: Iterable[Node]) -> dict[str, Any]:
    """Return a document with the paths, definitions and parameters of all documents; `own` is the first one."""
    whole = {**own, **{field: dict(own[field]) for field in ("paths", *_NAMED)}}
    for other in others:
        _merge(whole, other)
    return whole


def _merge(whole: dict[str, Any], other: Node) -> None:
    if other["paths"].keys() <= whole["paths"].keys():
        return
    if other["paths"].keys() & whole["paths"].keys():
        other = without_other_paths(other, lambda path: path not in whole["paths"])
    for field in _NAMED:
        other = _renamed(other, field, _conflicts(whole[field], other[field]))
    for name, node in other["definitions"].items():
        found = whole["definitions"].get(name)
        whole["definitions"][name] = node if found is None else _with_kinds(found, node)
    whole["parameters"] = {**other["parameters"], **whole["parameters"]}
    whole["paths"] |= other["paths"]


def _conflicts(own: Node, others: Node) -> Mapping[str, str]:
    """Return the new names of those nodes that differ from an own node with the same name."""
    new: dict[str, str] = {}
    for name, node in others.items():
        if name in own and not _equal(own[name], node):
            new[name] = _free_name(name, node, own, {*others, *new.values()})
    return new


def _free_name(name: str, node: Node, own: Node, used: set[str]) -> str:
    """Return a name that no other node has; an equal own node that was renamed before keeps its name."""
    number = 2
    while (new := f"{name}_v{number}") in own:
        if _equal(own[new], node):
            return new
        number += 1
    while (new := f"{name}_v{number}") in own or new in used:
        number += 1
    return new


def _equal(one: Node, other: Node) -> bool:
    """Return whether two nodes are equal, regardless of their groups, versions and kinds."""
    if one is other:
        return True
    return _without_kinds(one) == _without_kinds(other)


def _without_kinds(node: Node) -> Node:
    return {key: each for key, each in node.items() if key != _GVK} if _GVK in node else node


def _with_kinds(own: Node, other: Node) -> Node:
    """Return `own` with the group-version-kinds of both definitions, in sorted order if `other` adds any."""
    kinds = own.get(_GVK, [])
    if not (added := [each for each in other.get(_GVK, ()) if each not in kinds]):
        return own
    return {**own, _GVK: sorted([*kinds, *added], key=_kind_key)}


def _kind_key(kind: Mapping[str, str]) -> str:
    return f"{kind.get('group')}/{kind.get('version')}.{kind.get('kind')}"


def _renamed(document: Node, field: str, names: Mapping[str, str]) -> Node:
    """Return a document whose definitions or parameters have new names, with all references to them."""
    if not names:
        return document
    prefix = _PREFIX.format(field)
    references = {prefix + old: prefix + new for old, new in names.items()}
    changed = {
        part: {key: _rewritten(node, references) for key, node in document[part].items()} for part in ("paths", *_NAMED)
    }
    return {**document, **changed, field: {names.get(name, name): node for name, node in changed[field].items()}}


def _rewritten(node: Any, references: Mapping[str, str]) -> Any:
    """Return a node of a document with other references."""
    if isinstance(node, list):
        return [_rewritten(each, references) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _rewritten_field(key, each, references) for key, each in node.items()}


def _rewritten_field(key: str, value: Any, references: Mapping[str, str]) -> Any:
    if key == "$ref" and isinstance(value, str):
        return references.get(value, value)
    if _is_data(key):
        return value
    if key in _MAPS and isinstance(value, dict):
        return {name: _rewritten(each, references) for name, each in value.items()}
    return _rewritten(value, references)


def _needed(nodes: Iterable[Any], document: Node) -> set[str]:
    """Return the names of the definitions to which nodes refer, directly or through other definitions."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = list(nodes)
    while waiting:
        for reference in set(_references(waiting.pop())) - seen:
            seen.add(reference)
            field, _, name = reference.removeprefix("#/").partition("/")
            if field in _NAMED and name in document[field]:
                waiting.append(document[field][name])
                found |= {name} if field == "definitions" else set()
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _references(each)
    elif isinstance(node, dict):
        for key, each in node.items():
            if key == "$ref" and isinstance(each, str):
                yield each
            elif not _is_data(key):
                yield from _references([*each.values()] if key in _MAPS and isinstance(each, dict) else each)


def _is_data(key: str) -> bool:
    return key in _DATA or key.startswith("x-")
