"""Values that Python has no type for, and what values have in common: a type, an equality, a size.

Booleans, ints, floats, strings, bytes, None, lists and dicts stand for themselves, so that an object can be looked at
as it came from JSON. Guarantees: equality holds across the numeric types and never between a boolean and a number;
values of other types than these carry their type as `cel_type`.

Source: cel-go `common/types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ctrlmgr.expressions import types
from ctrlmgr.expressions.types import Type

MOST_INT: Final = 2**63 - 1
LEAST_INT: Final = -(2**63)
MOST_UINT: Final = 2**64 - 1


class EvalError(Exception):
    """An expression has no value; the message is cel-go's."""


class CostExceeded(Exception):
    """An evaluation has cost more than it may; nothing absorbs it."""

    def __init__(self) -> None:
        """Say it in cel-go's words."""
        super().__init__("operation cancelled: actual cost limit exceeded")


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, in nanoseconds since 1970."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time, in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    """What may be absent."""

    present: bool
    value: Any = None


NONE: Final = Optional(False)


@dataclass(frozen=True, slots=True)
class StructValue:
    """An object that an expression has made; fields that were not given are absent."""

    name: str
    fields: Mapping[str, Any]


_TYPES: Mapping[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.Type("list", "list"),
    tuple: types.Type("list", "list"),
    dict: types.Type("map", "map"),
    type(None): Type("null", "null_type"),
    Timestamp: Type("timestamp", "google.protobuf.Timestamp"),
    Duration: Type("duration", "google.protobuf.Duration"),
    Optional: Type("opaque", "optional_type"),
    Type: types.TYPE,
}


def type_of(value: Any) -> Type:
    """Return the type that a value has at run time, without parameters."""
    found = _TYPES.get(type(value))
    if found is not None:
        return found
    if isinstance(value, StructValue):
        return types.struct(value.name)
    if isinstance(value, Mapping):
        return _TYPES[dict]
    own: Type = value.cel_type
    return own


_NUMBERS: Final = (int, UInt, float)
_SEQUENCES: Final = (list, tuple)


def equal(one: Any, other: Any) -> bool:
    """Say whether two values are equal: by value across numbers, element by element in lists and maps."""
    kind = type(one)
    if kind is str:
        return bool(one == other)
    if kind in _NUMBERS:
        return type(other) in _NUMBERS and bool(one == other)
    if kind in _SEQUENCES:
        return (
            type(other) in _SEQUENCES
            and len(one) == len(other)
            and all(equal(here, there) for here, there in zip(one, other, strict=True))
        )
    if kind is dict:
        return (
            type(other) is dict and len(one) == len(other) and all(_has_entry(other, *entry) for entry in one.items())
        )
    if kind is Optional:
        return (
            type(other) is Optional
            and one.present == other.present
            and (not one.present or equal(one.value, other.value))
        )
    if kind is Type:
        return type(other) is Type and one.name == other.name
    if kind is StructValue:
        return type(other) is StructValue and one.name == other.name and equal(one.fields, other.fields)
    return type(other) is kind and bool(one == other)


def _has_entry(map_: dict[Any, Any], key: Any, value: Any) -> bool:
    found, there = entry(map_, key)
    return found and equal(value, there)


def entry(map_: dict[Any, Any], key: Any) -> tuple[bool, Any]:
    """Return whether a map has a key, and its value; True and 1 are different keys, 1 and 1.0 are not."""
    kind = type(key)
    if kind is str:
        return (True, map_[key]) if key in map_ else (False, None)
    if kind not in _NUMBERS and kind is not bool:
        return False, None
    if key not in map_:
        return False, None
    if key in (0, 1):
        (stored,) = (each for each in map_ if not isinstance(each, str) and each == key)
        if (type(stored) is bool) != (kind is bool):
            return False, None
    return True, map_[key]


def size(value: Any) -> int:
    """Return what a value's size counts for in costs: characters, bytes, elements; 1 for what has no size."""
    kind = type(value)
    if kind in (str, bytes, list, dict, tuple):
        return len(value)
    if kind is Optional and value.present:
        return size(value.value)
    own: int = getattr(value, "cel_size", 1)
    return own
