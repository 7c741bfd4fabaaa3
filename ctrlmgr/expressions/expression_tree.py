"""The tree of a parsed expression, with expanded macros.

A node has its position in the text. The checker sets its type, and what a name or a call refers to.

Source: cel-go `common/ast/expr.go`.
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
    """The name of a variable or a type; with `is_absolute`, it is written as `.a`."""

    name: str
    is_absolute: bool = False


@dataclass(slots=True, eq=False)
class Select(_Placed):
    """A field `a.b`; with `optional` it is `a.?b`, with `test_only` `has(a.b)`."""

    operand: Node
    field: str
    test_only: bool = False
    optional: bool = False
    ident: str = ""
    """The qualified name that the selection refers to, set by the checker."""


@dataclass(slots=True, eq=False)
class Call(_Placed):
    """A call of a function or an operator; `target` is the object of a member call."""

    function: str
    target: Node | None
    arguments: list[Node]
    namespaced: str = ""
    """The qualified name of the function if the target is part of the name, set by the checker."""
    overloads: tuple[Overload, ...] = ()
    """The signatures that match by the types known before evaluation, set by the checker."""


@dataclass(slots=True, eq=False)
class ListOf(_Placed):
    """A list; elements at the indexes in `optional` are omitted if they are absent."""

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
    """The second variable; empty if there is only one."""
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListOf | MapOf | StructOf | Comprehension
