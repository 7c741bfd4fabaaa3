"""What an expression is once it is read: a tree whose macros are expanded.

A node knows its place in the text; the checker writes its type, and what a name or a call turned out to mean.
Source of the forms: cel-go `common/ast/expr.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ctrlmgr.expressions.declarations import Overload
from ctrlmgr.expressions.types import DYN, Type


@dataclass(slots=True, eq=False)
class _Placed:
    at: int
    """The offset in the text, in characters."""
    type: Type = field(default=DYN, kw_only=True)
    """Set by the checker."""


@dataclass(slots=True, eq=False)
class Literal(_Placed):
    """A constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(_Placed):
    """A name: of a variable, or of a type; `.a` where `is_absolute`."""

    name: str
    is_absolute: bool = False


@dataclass(slots=True, eq=False)
class Select(_Placed):
    """A field: `a.b`; `a.?b` where `optional`; `has(a.b)` where `test_only`."""

    operand: Node
    field: str
    test_only: bool = False
    optional: bool = False
    ident: str = ""
    """The qualified name that the selection turned out to be, by the checker."""


@dataclass(slots=True, eq=False)
class Call(_Placed):
    """A call of a function or an operator; `target` is what a member function is called on."""

    function: str
    target: Node | None
    arguments: list[Node]
    namespaced: str = ""
    """The qualified name of the function, where the target turned out to be part of it."""
    overloads: tuple[Overload, ...] = ()
    """The signatures that fit, as far as that can be known before the values are there; by the checker."""


@dataclass(slots=True, eq=False)
class ListOf(_Placed):
    """A list; elements at the places in `optional` are left out if they are absent."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """An entry of a map, or a field of a struct."""

    at: int
    key: Node | str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapOf(_Placed):
    """A map."""

    entries: list[Entry]


@dataclass(slots=True, eq=False)
class StructOf(_Placed):
    """An object of a declared type."""

    name: str
    fields: list[Entry]


@dataclass(slots=True, eq=False)
class Comprehension(_Placed):
    """A loop over a list or a map, with one or two variables, and an accumulator."""

    variable: str
    second: str
    """The second variable; empty without one."""
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListOf | MapOf | StructOf | Comprehension
