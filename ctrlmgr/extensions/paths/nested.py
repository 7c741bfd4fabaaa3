"""Reads and writes values at plain dotted paths in unstructured objects: `.spec.replicas`.

Source: apimachinery `pkg/apis/meta/v1/unstructured/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.extensions.schema_validation.go_json_values import encode, is_int, shown

ABSENT: Final = msgspec.UNSET

_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}


def split(path: str) -> list[str]:
    """Return the names in a path; a leading dot is ignored."""
    return path.removeprefix(".").split(".")


def get(value: Any, names: Sequence[str]) -> Any:
    """Return the value at a path; ABSENT if there is no value.

    Raises ValueError with Go's message if a parent of the value is not an object.
    """
    for at, name in enumerate(names):
        if value is None:
            return ABSENT
        if type(value) is not dict:
            where = "." + ".".join(names[: at + 1])
            wrong = f"{_shown(value)} is of the type {go_type(value)}, expected map[string]interface{{}}"
            raise ValueError(f"{where} accessor error: {wrong}")
        if name not in value:
            return ABSENT
        value = value[name]
    return value


def get_int(value: Any, names: Sequence[str]) -> int:
    """Return the int64 at a path; 0 if the value is absent.

    Raises ValueError if the value has another type, and if a parent is not an object.
    """
    found = get(value, names)
    if found is ABSENT:
        return 0
    if not is_int(found):
        raise ValueError(_wrong(names, found, "int64"))
    return int(found)


def get_string(value: Any, names: Sequence[str]) -> str:
    """Return the string at a path; "" if the value is absent.

    Raises ValueError if the value has another type, and if a parent is not an object.
    """
    found = get(value, names)
    if found is ABSENT:
        return ""
    if type(found) is not str:
        raise ValueError(_wrong(names, found, "string"))
    return found


def set_value(value: dict[str, Any], names: Sequence[str], new: Any) -> None:
    """Set a value at a path, and create missing parents.

    Raises ValueError if a parent is not an object.
    """
    for at, name in enumerate(names[:-1]):
        below = value.setdefault(name, {})
        if type(below) is not dict:
            raise ValueError(
                f"value cannot be set because .{'.'.join(names[: at + 1])} is not a map[string]interface{{}}"
            )
        value = below
    value[names[-1]] = new


def go_type(value: Any) -> str:
    """Return the Go type of a decoded value, as `%T` formats it."""
    return "<nil>" if value is None else _GO_TYPES.get(type(value), "map[string]interface {}")


def _wrong(names: Sequence[str], found: Any, expected: str) -> str:
    return f".{'.'.join(names)} accessor error: {_shown(found)} is of the type {go_type(found)}, expected {expected}"


def _shown(value: Any) -> str:
    """Format a value as Go's `%v` does, for all types that occur in JSON."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is list:
        return "[" + " ".join(map(_shown, value)) + "]"
    if type(value) is dict:
        return "map[" + " ".join(f"{key}:{_shown(value[key])}" for key in sorted(value)) + "]"
    if type(value) is float:
        return encode(shown(value)).decode()
    return "<nil>" if value is None else str(value)
