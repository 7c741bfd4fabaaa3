"""Declarations of the functions in a library: signatures and implementations.

Guarantees: a signature is a line in CEL's notation: `string.(int) -> string` for a member and `(int, int) -> int` for a
function. A capital letter is a type parameter, and an unknown name is a type of the library. At run time, a call uses
the first overload that accepts the types of the arguments, as in cel-go's `common/decls`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ctrlmgr.expressions import types
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import EvalError, type_of

Implementation = Callable[..., Any]
F = TypeVar("F", bound=Implementation)


class Overload(NamedTuple):
    """One signature of a function."""

    arguments: tuple[Type, ...]
    """The types of the arguments; for a member, the first type is that of the target."""
    result: Type
    is_member: bool
    compute: Implementation
    """The Python function that implements the signature; raises `EvalError` if the evaluation fails."""

    def accepts(self, values: tuple[Any, ...]) -> bool:
        """Return whether the values have the types of the signature."""
        return len(values) == len(self.arguments) and all(map(_has_type, self.arguments, values))


_ANYTHING: Final = ("dyn", "parameter")


def _has_type(expected: Type, value: Any) -> bool:
    if expected.kind in _ANYTHING:
        return True
    given = type_of(value)
    if expected.kind == "opaque" or expected.kind == "struct":
        return given.name == expected.name
    return given.kind == expected.kind


class Library:
    """A library: a set of functions, and the names of types and values."""

    def __init__(self) -> None:
        """Create a library without functions."""
        self.functions: dict[str, list[Overload]] = {}

    def function(self, name: str, *signatures: str) -> Callable[[F], F]:
        """Return a decorator for the Python function that implements a CEL function with these signatures."""

        def declare(compute: F) -> F:
            overloads = self.functions.setdefault(name, [])
            overloads += [Overload(*signature(each), compute) for each in signatures]
            return compute

        return declare


class Functions:
    """The functions of several libraries combined."""

    def __init__(self, libraries: Iterable[Library]) -> None:
        """Merge the functions of several libraries."""
        self.overloads: dict[str, list[Overload]] = {}
        for library in libraries:
            for name, overloads in library.functions.items():
                self.overloads.setdefault(name, []).extend(overloads)

    def get(self, name: str) -> list[Overload] | None:
        """Return the overloads of a function; None if the function does not exist."""
        return self.overloads.get(name)


def dispatch(name: str, overloads: Iterable[Overload], *, as_member: bool) -> Implementation:
    """Return a Python function that selects the overload by the types of its arguments."""
    candidates = [each for each in overloads if each.is_member is as_member]

    def call(*values: Any) -> Any:
        for overload in candidates:
            if overload.accepts(values):
                return overload.compute(*values)
        given = ", ".join(type_of(each).name for each in values)
        raise EvalError(f"no such overload: {name}({given})")

    return call


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def signature(text: str) -> tuple[tuple[Type, ...], Type, bool]:
    """Parse a signature, and return the argument types, the result type, and whether the function is a member."""
    before, _, result = text.partition(" -> ")
    target, member, arguments = before.partition(".(") if not before.startswith("(") else ("", "", before[1:])
    given = _read_types(arguments[:-1])
    return (read_type(target), *given) if member else given, read_type(result), bool(member)


def read_type(text: str) -> Type:
    """Parse a type in the notation of signatures."""
    (only,) = _read_types(text)
    return only


def _read_types(text: str) -> tuple[Type, ...]:
    found: list[Type] = []
    while text:
        match = _WORD.match(text)
        assert match is not None, text
        text, inner = text[match.end() :], ""
        if text.startswith("("):
            end = _closing(text)
            inner, text = text[1:end], text[end + 1 :]
        found.append(_named(match[0], _read_types(inner)))
        text = text.removeprefix(", ")
    return tuple(found)


def _closing(text: str) -> int:
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return at
    raise AssertionError(text)


def _named(name: str, parameters: tuple[Type, ...]) -> Type:
    if name in ("list", "map", "type") and parameters:
        return Type(name, name, parameters)
    if name in types.SIMPLE:
        return types.SIMPLE[name]
    if len(name) == 1 and name.isupper():
        return types.parameter(name)
    return types.opaque(name, *parameters)


TYPE_NAMES: Final[Mapping[str, Type]] = {
    **{name: each for name, each in types.SIMPLE.items() if name not in ("dyn", "null", "timestamp", "duration")},
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
    "optional_type": types.optional_of(types.DYN),
    "net.IP": types.opaque("net.IP"),
    "net.CIDR": types.opaque("net.CIDR"),
}
"""The names of types that expressions may use as values, as in `type(x) == int`."""
