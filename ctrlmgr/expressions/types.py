"""The types that the type checker uses, their notation, and the rules of assignability.

Guarantees: the notation of types is that of cel-go (`list(int)`, `optional_type(string)`). The rules of assignability,
of generality, and of type parameters are the same as in cel-go's `checker/types.go` and `common/types/types.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Type:
    """A type; `kind` determines assignability, and `name` is the type's notation."""

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind == "type" and not self.parameters:
            return "type"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


def _simple(name: str) -> Type:
    return Type(name, name)


ANY: Final = Type("dyn", "any")
"""A type that is unknown before evaluation; in contrast to DYN, loops over its values are refused
(`google.protobuf.Any`).
"""
BOOL: Final = _simple("bool")
BYTES: Final = _simple("bytes")
DOUBLE: Final = _simple("double")
DURATION: Final = Type("duration", "duration")
DYN: Final = _simple("dyn")
ERROR: Final = Type("error", "!error!")
INT: Final = _simple("int")
NULL: Final = Type("null", "null")
NOTHING: Final = Type("nothing", "")
"""The type of a field without a known type; only values of unknown types can be assigned to such a field."""
STRING: Final = _simple("string")
TIMESTAMP: Final = Type("timestamp", "timestamp")
TYPE: Final = _simple("type")
UINT: Final = _simple("uint")

SIMPLE: Final[Mapping[str, Type]] = {
    each.name: each for each in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, TYPE, UINT)
} | {"null_type": NULL}


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps with the given types of keys and values."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type("opaque", "optional_type", (value,))


def opaque(name: str, *parameters: Type) -> Type:
    """Return the opaque type with this name; expressions can only pass values of an opaque type to functions."""
    return Type("opaque", name, parameters)


def parameter(name: str) -> Type:
    """Return the type parameter with this name."""
    return Type("parameter", name)


def struct(name: str) -> Type:
    """Return the type of objects with the fields that `Objects` declares under this name."""
    return Type("struct", name)


def type_of(value: Type) -> Type:
    """Return the type of `value`, which is itself a type, because types are values in CEL."""
    return Type("type", "type", (value,))


class Objects(Protocol):
    """An interface for declarations of the fields of objects."""

    def field(self, name: str, field: str) -> Type | None:
        """Return the type of a field of the struct type `name`; None if the field does not exist."""

    def has_type(self, name: str) -> bool:
        """Return whether a struct type of this name exists."""


class NoObjects:
    """An implementation that declares no objects."""

    def field(self, name: str, field: str) -> Type | None:
        """Return None."""
        return None

    def has_type(self, name: str) -> bool:
        """Return False."""
        return False


class DeclaredObjects:
    """An implementation that declares object types; expressions can read such objects but cannot create them."""

    def __init__(self, fields: Mapping[str, Mapping[str, Type]]) -> None:
        """Create declarations with the fields of these types, by the names of the types."""
        self._fields = fields

    def field(self, name: str, field: str) -> Type | None:
        """Return the type of a field; None if the field does not exist."""
        return self._fields[name].get(field)

    def has_type(self, name: str) -> bool:
        """Return False, because expressions cannot create the declared objects."""
        return False


def is_dyn(type_: Type) -> bool:
    """Return whether the type of a value is unknown before evaluation."""
    return type_.kind in ("dyn", "error")


def is_optional(type_: Type) -> bool:
    """Return whether a type is optional."""
    return type_.name == "optional_type"


def unwrapped(type_: Type) -> Type:
    """Return the type of the value in an optional; other types are returned unchanged."""
    return type_.parameters[0] if is_optional(type_) else type_


Bindings = dict[str, Type]
"""The types to which type parameters are bound, by the name of the parameter."""


def assignable(bindings: Bindings, given: Sequence[Type], expected: Sequence[Type]) -> Bindings | None:
    """Return the bindings with which the given types are assignable to the wanted types.

    The result is None if there are no such bindings.
    """
    trial = dict(bindings)
    return trial if _all_assignable(trial, given, expected) else None


def _all_assignable(bindings: Bindings, given: Sequence[Type], expected: Sequence[Type]) -> bool:
    return len(given) == len(expected) and all(
        _is_assignable(bindings, one, other) for one, other in zip(given, expected, strict=True)
    )


def _is_assignable(bindings: Bindings, given: Type, expected: Type) -> bool:
    if expected.kind == "parameter":
        found = _bind(bindings, given, expected)
        if found is not None:
            return found
    if given.kind == "parameter":
        return bool(_bind(bindings, expected, given))
    if is_dyn(given) or is_dyn(expected):
        return True
    if given.kind == "null":
        return _may_be_null(expected)
    if expected.kind == "null":
        return _may_be_null(given)
    if given.kind != expected.kind:
        return False
    if given.kind == "type":
        return True
    return given.name == expected.name and _all_assignable(bindings, given.parameters, expected.parameters)


def _may_be_null(type_: Type) -> bool:
    return type_.kind in ("opaque", "duration", "struct", "null", "timestamp")


def _bind(bindings: Bindings, given: Type, expected: Type) -> bool | None:
    """Bind a type parameter to a type.

    The result is None if the type contains the parameter itself.
    """
    if given == expected:
        return True
    bound = bindings.get(expected.name)
    if bound is not None:
        if not _is_assignable(bindings, given, bound):
            return False
        general = most_general(given, bound)
        if not _refers_to(bindings, general, expected):
            bindings[expected.name] = general
        return True
    if _refers_to(bindings, given, expected):
        return None
    bindings[expected.name] = given
    return True


def _refers_to(bindings: Bindings, type_: Type, sought: Type) -> bool:
    if type_ == sought:
        return True
    if type_.kind == "parameter":
        bound = bindings.get(type_.name)
        return bound is not None and _refers_to(bindings, bound, sought)
    return any(_refers_to(bindings, each, sought) for each in type_.parameters)


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types; one of them must be assignable to the other."""
    return one if _is_equal_or_more_general(one, other) else other


def _is_equal_or_more_general(one: Type, other: Type) -> bool:
    if is_dyn(one) or one.kind == "parameter":
        return True
    if is_dyn(other) or other.kind == "parameter":
        return False
    if one.kind == "null":
        return False
    if other.kind == "null":
        return _may_be_null(one)
    if one.kind != other.kind or one.name != other.name or len(one.parameters) != len(other.parameters):
        return False
    pairs = zip(one.parameters, other.parameters, strict=True)
    return all(_is_equal_or_more_general(here, there) for here, there in pairs)


def substituted(bindings: Mapping[str, Type], type_: Type, *, free_is_dyn: bool) -> Type:
    """Return a type in which type parameters are replaced by the types to which they are bound.

    Unbound type parameters are replaced by `dyn`.
    """
    if type_.kind == "parameter":
        bound = bindings.get(type_.name)
        if bound is not None:
            return substituted(bindings, bound, free_is_dyn=free_is_dyn)
        return DYN if free_is_dyn else type_
    if not type_.parameters:
        return type_
    inner = tuple(substituted(bindings, each, free_is_dyn=free_is_dyn) for each in type_.parameters)
    return Type(type_.kind, type_.name, inner)


def called(arguments: Sequence[Type], *, as_member: bool) -> str:
    """Return the argument types of a call, formatted as `(int, string)`, or `dyn.(int)` for a member."""
    if as_member:
        return f"{arguments[0]}.({', '.join(map(str, arguments[1:]))})"
    return f"({', '.join(map(str, arguments))})"
