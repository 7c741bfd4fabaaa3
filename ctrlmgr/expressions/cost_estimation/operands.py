"""The operands of a call, with the properties that determine its cost: type, path in the variables, and size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ctrlmgr.expressions.cost_estimation.cost_ranges import UNKNOWN, Range
from ctrlmgr.expressions.expression_tree import Node
from ctrlmgr.expressions.types import Type

Place: TypeAlias = tuple[str, ...]
"""The path of a value from a variable: field names, `@items`, `@keys` and `@values`.

A path is empty if the value is not part of a variable.
"""

SizeAt: TypeAlias = Callable[[Place], Range | None]
"""The type of a function that returns the maximum size of the value at a path; None if it is unknown."""


class Operand(NamedTuple):
    """One operand of a call (`checker.AstNode`)."""

    type: Type
    place: Place = ()
    node: Node | None = None
    size: Range | None = None

    @property
    def known(self) -> Range:
        """The size range of the operand, if the expression determines it; otherwise None."""
        return UNKNOWN if self.size is None else self.size

    def sized(self, size_at: SizeAt) -> Range:
        """Return the size range of the operand that the expression or the schema determines."""
        return self.size or (size_at(self.place) if self.place else None) or UNKNOWN


class Estimate(NamedTuple):
    """The estimate for a call: its cost without the costs of its operands, and the size of its result."""

    cost: Range
    size: Range | None = None
