"""Removes the fields that a schema does not declare, and returns their paths.

Guarantees: pruning a pruned value changes nothing. Metadata, kind and apiVersion are kept at the root and in embedded
objects. Source: apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.extensions.structural import META, Structural


def prune(value: Any, schema: Structural, *, is_root: bool = True) -> list[str]:
    """Prune a value in place; return the sorted paths of the removed fields: `spec.list[0].field`."""
    gone: list[str] = []
    _prune(value, schema.as_object if is_root else schema, "", gone)
    return sorted(gone)


def _prune(value: Any, schema: Structural | None, path: str, gone: list[str], preserving: bool = False) -> None:
    """Prune a value; `preserving` is true if an outer list keeps the undeclared fields of its items."""
    if schema is None and preserving:
        return
    keeps = preserving or (schema is not None and schema.preserves)
    if type(value) is dict:
        _prune_object(value, schema, path, gone, keeps)
    elif type(value) is list:
        items = None if schema is None else schema.items
        for index, each in enumerate(value):
            if type(each) in (dict, list):
                _prune(each, items, f"{path}[{index}]", gone, keeps)


def _prune_object(value: dict[str, Any], schema: Structural | None, path: str, gone: list[str], keeps: bool) -> None:
    for key in list(value):
        if schema is not None and schema.embedded and key in META:
            continue
        below = None if schema is None else schema.properties.get(key)
        if below is not None or (schema is not None and schema.has_additional):
            _prune(value[key], below or (schema and schema.additional), _join(path, key), gone)
        elif not keeps:
            if schema is None or path or key not in META:
                gone.append(_join(path, key))
            del value[key]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
