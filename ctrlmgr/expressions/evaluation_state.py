"""The state of an evaluation: the values of the variables, and the cost so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctrlmgr.expressions.values import CostExceeded


class Run:
    """The state of one evaluation: the values of variables, and the cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: Mapping[str, Any], limit: int) -> None:
        """Create the state of an evaluation with `variables`, which may cost at most `limit` units."""
        self.variables = dict(variables)
        self.cost = 0
        self.limit = limit

    def pay(self, cost: int) -> None:
        """Add a cost to the cost so far; raises `CostExceeded` if the sum exceeds the limit."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded

    def afford(self, cost: int) -> None:
        """Raise `CostExceeded` if a call with this cost would exceed the limit, without adding the cost."""
        if self.cost + cost > self.limit:
            raise CostExceeded


Step: TypeAlias = Callable[[Run], Any]
"""The type of a function that evaluates one node."""
