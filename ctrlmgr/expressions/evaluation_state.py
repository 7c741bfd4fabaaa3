"""The state of one evaluation: the variables, and the cost so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctrlmgr.expressions.values import CostExceeded


class Run:
    """One evaluation: the values of variables, and the cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: Mapping[str, Any], limit: int) -> None:
        """Evaluate with `variables`, for at most `limit` units of cost."""
        self.variables = dict(variables)
        self.cost = 0
        self.limit = limit

    def pay(self, cost: int) -> None:
        """Add a cost; raises `CostExceeded`."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded

    def afford(self, cost: int) -> None:
        """Raise `CostExceeded` if a call of this cost would exceed the limit, without adding it."""
        if self.cost + cost > self.limit:
            raise CostExceeded


Step: TypeAlias = Callable[[Run], Any]
"""Evaluates one node."""
