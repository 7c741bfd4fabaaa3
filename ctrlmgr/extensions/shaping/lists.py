"""Lists that are sets or maps: no item twice, no key twice.

Source: apiextensions-apiserver `pkg/apiserver/schema/listtype/validation.go`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ctrlmgr.api.field import ROOT, FieldError, Path, duplicate, invalid
from ctrlmgr.extensions.structural import Structural
from ctrlmgr.extensions.values.go import identity, shown


def has_unique_lists(schema: Structural) -> bool:
    """Say whether there are sets or maps among the lists at a node or below it."""
    return schema.list_type in ("set", "map") or any(map(has_unique_lists, schema.below()))


def validate_lists(value: Any, schema: Structural, path: Path = ROOT) -> list[FieldError]:
    """Return an error for the second appearance of every item of a set, and of every key of a map."""
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
    return [duplicate(path.at(index), shown(value[index])) for index in _repeated([identity(each) for each in value])]


def _repeated(items: list[Hashable]) -> list[int]:
    """Return the indexes of second appearances; third ones are not told."""
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
            return [invalid(path.at(index), shown(each), "must be an object for an array of list-type map")]
    found = [{key: each[key] for key in keys if key in each} if each else {} for each in value]
    return [duplicate(path.at(index), shown(found[index])) for index in _repeated([identity(each) for each in found])]
