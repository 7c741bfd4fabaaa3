"""The CEL types that Python lacks, and functions for all values: type, equality, size.

Booleans, ints, floats, strings, bytes, None, lists and dicts are used directly as CEL values, so that expressions can
read decoded JSON.

Guarantees: numbers of different types can be equal, but a boolean never equals a number. The classes for types that
Python lacks have an attribute `cel_type`, their CEL type.

Source: cel-go `common/types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Final

from ctrlmgr.expressions import types
from ctrlmgr.expressions.types import Type
from ctrlmgr.work_budget import spend

MOST_INT: Final = 2**63 - 1
LEAST_INT: Final = -(2**63)
MOST_UINT: Final = 2**64 - 1


class EvalError(Exception):
    """Raised if an expression has no value; the message is the same as in cel-go."""


class CostExceeded(Exception):
    """Raised if an evaluation exceeds its cost limit; no operation catches this error."""

    def __init__(self) -> None:
        """Create the error with cel-go's message."""
        super().__init__("operation cancelled: actual cost limit exceeded")


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A timestamp, in nanoseconds since 1970."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration, in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A CEL value of an optional type, which may be empty."""

    present: bool
    value: Any = None


NONE: Final = Optional(False)


@dataclass(frozen=True, slots=True)
class StructValue:
    """An object that an expression created; fields that were not set are absent."""

    name: str
    fields: Mapping[str, Any]


class SetList(list[Any]):
    """A list whose schema says that it is a set, so that its order does not matter (`x-kubernetes-list-type: set`).

    The elements of a list of type set are scalars.
    """

    __slots__ = ()


class MapList(list[Any]):
    """A list whose schema identifies elements by key fields (`x-kubernetes-list-type: map`)."""

    __slots__ = ("keys",)

    def __init__(self, elements: Iterable[Any], keys: Sequence[str]) -> None:
        """Create a list of objects; the values of the fields `keys` identify each object.

        Names of key fields are in the form that expressions use, which may be escaped.
        """
        super().__init__(elements)
        self.keys = keys

    def key(self, element: Any) -> Any:
        """Return the values of the key fields of a list element.

        An element that is not an object is returned unchanged.
        """
        return tuple(element.get(name) for name in self.keys) if type(element) is dict else element


class DefaultMap(dict[Any, Any]):
    """A map that returns an empty map for a missing key; the missing key is not added to the map."""

    __slots__ = ()


MAPS: Final = (dict, DefaultMap)
"""The Python types that are maps in CEL."""

SEQUENCES: Final = (list, tuple, SetList, MapList)
"""The Python types that are lists in CEL."""

_TYPES: Mapping[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.Type("list", "list"),
    tuple: types.Type("list", "list"),
    SetList: types.Type("list", "list"),
    MapList: types.Type("list", "list"),
    dict: types.Type("map", "map"),
    DefaultMap: types.Type("map", "map"),
    type(None): Type("null", "null_type"),
    Timestamp: Type("timestamp", "google.protobuf.Timestamp"),
    Duration: Type("duration", "google.protobuf.Duration"),
    Optional: Type("opaque", "optional_type"),
    Type: types.TYPE,
}


def type_of(value: Any) -> Type:
    """Return the type of a value at run time, without type parameters."""
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


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal, comparing numbers by value, and lists and maps element by element.

    If the schema of the first list says that it is a set or a map, the order of the elements does not matter.
    """
    kind = type(one)
    if kind is str:
        return bool(one == other)
    if kind in _NUMBERS:
        return type(other) in _NUMBERS and bool(one == other)
    if kind in SEQUENCES:
        return type(other) in SEQUENCES and _same_size(one, other) and _EQUAL_LISTS[kind](one, other)
    if kind in MAPS:
        return (
            type(other) in MAPS and _same_size(one, other) and all(_has_entry(other, *entry) for entry in one.items())
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


def _same_size(one: Sized, other: Sized) -> bool:
    """Return whether two lists or maps have the same size; if so, count one step of work for each element."""
    if len(one) != len(other):
        return False
    spend(1 + len(one))
    return True


def _in_order(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(equal(here, there) for here, there in zip(one, other, strict=True))


def _as_sets(one: SetList, other: Sequence[Any]) -> bool:
    own = set(map(scalar, one))
    return all(scalar(each) in own for each in other)


def _as_maps(one: MapList, other: Sequence[Any]) -> bool:
    own = {scalar(one.key(each)): each for each in one}
    keyed = ((scalar(one.key(each)), each) for each in other)
    return all(key in own and equal(own[key], each) for key, each in keyed)


_EQUAL_LISTS: Final[Mapping[type, Callable[[Any, Any], bool]]] = {
    list: _in_order,
    tuple: _in_order,
    SetList: _as_sets,
    MapList: _as_maps,
}


def scalar(value: Any) -> Any:
    """Return an element, or the values of its key fields, in a hashable form.

    Raises `EvalError` if a key field is missing, as in Go.
    """
    if type(value) in SEQUENCES and type(value) is not tuple:
        raise EvalError("internal error: runtime error: hash of unhashable type []interface {}")
    if type(value) in MAPS:
        raise EvalError("internal error: runtime error: hash of unhashable type map[string]interface {}")
    return tuple(map(scalar, value)) if type(value) is tuple else (type(value), value)


def _has_entry(map_: dict[Any, Any], key: Any, value: Any) -> bool:
    found, there = entry(map_, key)
    return found and equal(value, there)


def entry(map_: dict[Any, Any], key: Any) -> tuple[bool, Any]:
    """Return whether a map has a key, and the key's value.

    In a map, True and 1 are different keys, but 1 and 1.0 are the same key.
    """
    kind = type(key)
    if kind is str:
        return (True, map_[key]) if key in map_ else (False, None)
    if kind not in _NUMBERS and kind is not bool:
        return False, None
    if key not in map_:
        return False, None
    if key in (0, 1) and (type(_stored(map_, key)) is bool) != (kind is bool):
        return False, None
    return True, map_[key]


class _Probe:
    """A key for a look-up that records the stored key with which Python compares it."""

    __slots__ = ("key", "stored")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.stored: Any = None

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        self.stored = other
        return bool(self.key == other)


def _stored(map_: dict[Any, Any], key: Any) -> Any:
    """Return the key of a map that equals `key` in Python, without comparing the other keys of the map."""
    probe = _Probe(key)
    return probe.stored if probe in map_ else None


def size(value: Any) -> int:
    """Return the size of a value for the computation of costs.

    The size of a value is its number of characters, bytes or elements; the size of any other value is 1.
    """
    kind = type(value)
    if kind in (str, bytes, dict) or kind in SEQUENCES:
        return len(value)
    if kind is Optional and value.present:
        return size(value.value)
    own: int = getattr(value, "cel_size", 1)
    return own
