"""The variables of a policy, each of which is evaluated when an expression first uses it.

Source: apiserver `pkg/admission/plugin/cel/composition.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.admission.expressions.cel_evaluation import Budget, Condition
from ctrlmgr.expressions.costs import PER_CALL_LIMIT
from ctrlmgr.expressions.evaluation import LazyFields
from ctrlmgr.expressions.values import EvalError


class Variables(LazyFields):
    """The variables of one evaluation of a policy; a variable that was evaluated has either a value or an error."""

    def __init__(self, expressions: Mapping[str, Condition], seen: Mapping[str, Any], budget: Budget) -> None:
        """Evaluate `expressions`, which may use each other and the variables in `seen`; `budget` limits the cost."""
        self._expressions = expressions
        self._seen = {**seen, "variables": self}
        self._budget = budget
        self._known: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        """Return whether the policy declares a variable of this name."""
        return name in self._expressions

    def field(self, name: str) -> Any:
        """Return the value of a policy variable.

        Raises `EvalError` if the evaluation fails, and `OutOfBudget` if it costs too much.
        """
        if name not in self._known:
            self._known[name] = self._evaluated(name)
        value = self._known[name]
        if isinstance(value, EvalError):
            raise value
        return value

    def _evaluated(self, name: str) -> Any:
        declared = self._expressions[name]
        try:
            if declared.expression is None:
                raise EvalError(declared.problem)
            value, cost = declared.expression.evaluate(self._seen, PER_CALL_LIMIT)
        except EvalError as error:
            return EvalError(f'composited variable "{name}" fails to evaluate: {error}')
        self._budget.spend(cost)
        return value
