"""The tree of a parsed expression, with expanded macros.

A node contains its position in the text. The type checker sets the type of each node, and the declaration to which a
name or a call refers.

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
    """The offset of the node in the expression, in characters."""
    type: Type = field(default=DYN, kw_only=True)
    """The type of the node, which the type checker sets."""


@dataclass(slots=True, eq=False)
class Literal(_Placed):
    """A constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Ident(_Placed):
    """A node for the name of a variable or a type; `is_absolute` says whether the name begins with a dot (`.a`)."""

    name: str
    is_absolute: bool = False


@dataclass(slots=True, eq=False)
class Select(_Placed):
    """A node for the selection of a field, `a.b`.

    If `optional` is true, the selection is `a.?b`; if `test_only` is true, it is `has(a.b)`.
    """

    operand: Node
    field: str
    test_only: bool = False
    optional: bool = False
    ident: str = ""
    """The qualified name to which the selection refers; the type checker sets this name."""


@dataclass(slots=True, eq=False)
class Call(_Placed):
    """A node for a call of a function or an operator; `target` is the object of a call of a member."""

    function: str
    target: Node | None
    arguments: list[Node]
    namespaced: str = ""
    """The qualified name of the function, set by the type checker if the target is a namespace, not an object."""
    overloads: tuple[Overload, ...] = ()
    """The signatures that match the argument types; the type checker sets these signatures."""


@dataclass(slots=True, eq=False)
class ListOf(_Placed):
    """A list.

    If the index of an element is in `optional`, the element is an optional, which the list omits if it has no value.
    """

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry:
    """A node for an entry of a map, or a field of a struct."""

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
    """A node for an object of a declared type that the expression creates."""

    name: str
    fields: list[Entry]


@dataclass(slots=True, eq=False)
class Comprehension(_Placed):
    """A node for a loop over a list or a map, with one or two variables, and an accumulator."""

    variable: str
    second: str
    """The name of the second loop variable; empty if the loop has only one variable."""
    range: Node
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = Literal | Ident | Select | Call | ListOf | MapOf | StructOf | Comprehension
