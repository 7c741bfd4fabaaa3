"""Checks lists that are sets or maps for duplicate items and duplicate keys.

Source: apiextensions-apiserver `pkg/apiserver/schema/listtype/validation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from ctrlmgr.api.field import ROOT, FieldError, Path, duplicate, invalid
from ctrlmgr.extensions.schema_validation.go_json_values import identity, shown_value
from ctrlmgr.extensions.structural import Structural

Check: TypeAlias = Callable[[Any], bool]


def compile_unique(schema: Structural) -> Check | None:
    """Return the function that checks for duplicates in all sets and maps within a value.

    The function returns None if the schema has no sets and maps.
    """
    fields = {name: check for name, each in schema.properties.items() if (check := compile_unique(each)) is not None}
    others = None if schema.additional is None else compile_unique(schema.additional)
    items = None if schema.items is None else compile_unique(schema.items)
    identities = _identities(schema)
    if not fields and others is None and items is None and identities is None:
        return None

    def is_unique(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            if others is not None and not all(map(others, value.values())):
                return False
            return all(check(value[name]) for name, check in fields.items() if name in value)
        if kind is list:
            if identities is not None and not identities(value):
                return False
            return items is None or all(map(items, value))
        return True

    return is_unique


def _identities(schema: Structural) -> Check | None:
    """Return a function that returns whether one list has no duplicates; None if the list is not a set or map."""
    if schema.list_type == "set":
        return lambda value: len(value) < 2 or len(set(map(identity, value))) == len(value)
    if schema.list_type != "map":
        return None
    keys = schema.list_map_keys

    def has_unique_keys(value: list[Any]) -> bool:
        if any(type(each) is not dict for each in value):
            return False  # the exact check decides about these values
        return len({tuple(identity(each[key]) if key in each else None for key in keys) for each in value}) == len(
            value
        )

    return has_unique_keys


def validate_lists(value: Any, schema: Structural, path: Path = ROOT) -> list[FieldError]:
    """Return an error for the second occurrence of each item in a set, and of each key in a map."""
    errors: list[FieldError] = []
    if type(value) is dict:
        for key, each in value.items():
            if schema.additional is not None:
                errors += validate_lists(each, schema.additional, path.key(key))
            if (declared := schema.properties.get(key)) is not None:
                errors += validate_lists(each, declared, path.child(key))
    elif type(value) is list:
        if schema.list_type == "set":
            errors += _validate_items(value, path)
        elif schema.list_type == "map":
            errors += _validate_map(value, schema.list_map_keys, path)
        if schema.items is not None:
            for index, each in enumerate(value):
                errors += validate_lists(each, schema.items, path.at(index))
    return errors


def _validate_items(value: list[Any], path: Path) -> list[FieldError]:
    return [
        duplicate(path.at(index), shown_value(value[index])) for index in _repeated([identity(each) for each in value])
    ]


def _repeated(items: list[Hashable]) -> list[int]:
    """Return the indexes of the second occurrences of items; third and later occurrences are not reported."""
    times: dict[Hashable, int] = {}
    repeated = []
    for index, item in enumerate(items):
        times[item] = times.get(item, 0) + 1
        if times[item] == 2:
            repeated.append(index)
    return repeated


def _validate_map(value: list[Any], keys: Sequence[str], path: Path) -> list[FieldError]:
    for index, each in enumerate(value):
        if each is not None and type(each) is not dict:
            return [invalid(path.at(index), shown_value(each), "must be an object for an array of list-type map")]
    found = [{key: each[key] for key in keys if key in each} if each else {} for each in value]
    return [
        duplicate(path.at(index), shown_value(found[index])) for index in _repeated([identity(each) for each in found])
    ]
