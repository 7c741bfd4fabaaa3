"""What a call's price depends on: its operands, each with its type, its place in the variables, and its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ctrlmgr.expressions.estimating.ranges import UNKNOWN, Range
from ctrlmgr.expressions.nodes import Node
from ctrlmgr.expressions.types import Type

Place: TypeAlias = tuple[str, ...]
"""A path from a variable: names of fields, `@items`, `@keys` and `@values`. Empty: it is in none."""

SizeAt: TypeAlias = Callable[[Place], Range | None]
"""Returns how large the value at a place can be; None: that is not known."""


class Operand(NamedTuple):
    """One operand (`checker.AstNode`)."""

    type: Type
    place: Place = ()
    node: Node | None = None
    size: Range | None = None

    @property
    def known(self) -> Range:
        """Its size as the expression tells it."""
        return UNKNOWN if self.size is None else self.size

    def sized(self, size_at: SizeAt) -> Range:
        """Return its size as the expression or the schema tells it."""
        return self.size or (size_at(self.place) if self.place else None) or UNKNOWN


class Estimate(NamedTuple):
    """What a call costs, its operands not included, and how large its result is."""

    cost: Range
    size: Range | None = None
