"""Evaluates match conditions and other expressions about a write, with Kubernetes' error messages.

Guarantees: all expressions of a group share one cost budget; once the budget is spent, no further expression is
evaluated.

Source: apiserver `pkg/admission/plugin/cel/condition.go`, `pkg/admission/plugin/webhook/matchconditions/matcher.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.authorization.authorizer import aggregate
from ctrlmgr.expressions.costs import PER_CALL_LIMIT
from ctrlmgr.expressions.environment import Expression, NoValue
from ctrlmgr.expressions.values import CostExceeded, EvalError
from ctrlmgr.kinds.admissionregistration.expression_variables import ExpressionRefused

_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudget(Exception):
    """Raised when the expressions of a group exceed their cost budget."""

    def __init__(self) -> None:
        """Create the error with Kubernetes' message."""
        super().__init__(_SPENT)


class Budget:
    """The cost budget that the expressions of a group share."""

    def __init__(self, limit: int) -> None:
        """Create a budget of `limit` cost units."""
        self.left = limit

    def spend(self, cost: int) -> None:
        """Subtract a cost from the budget; raises `OutOfBudget`."""
        self.left -= cost
        if self.left < 0:
            raise OutOfBudget

    def evaluate(self, expression: Expression, variables: Mapping[str, Any]) -> Any:
        """Return the value of an expression.

        Raises `NoValue` if the evaluation fails, and `OutOfBudget` if it costs too much.
        """
        try:
            value, cost = expression.evaluate(variables, PER_CALL_LIMIT)
        except (EvalError, CostExceeded) as error:
            if isinstance(error, CostExceeded):
                self.spend(PER_CALL_LIMIT)
            raise expression.no_value(error) from error
        self.spend(cost)
        return value


class Condition(NamedTuple):
    """A named expression; `problem` is its compilation error, or None if the expression compiles."""

    name: str
    expression: Expression | None
    problem: str = ""
    source: str = ""


def condition_of(fields: Mapping[str, Any], compile_: Callable[[str], Expression]) -> Condition:
    """Compile one match condition of a webhook or policy."""
    name, source = str(fields.get("name") or ""), str(fields.get("expression") or "")
    try:
        return Condition(name, compile_(source), source=source)
    except ExpressionRefused as error:
        return Condition(name, None, str(error), source)


class ConditionsFailed(Exception):
    """Raised if conditions cannot be evaluated and the failure policy refuses the write."""


def met(conditions: Sequence[Condition], variables: Mapping[str, Any], budget: Budget, *, fails_open: bool) -> bool:
    """Return whether a write meets all conditions; raises `ConditionsFailed` if the conditions cannot be evaluated.

    If one condition is false, the function returns False, even if other conditions raise errors.
    """
    problems: list[str] = []
    for condition in conditions:
        try:
            if value_of(condition, variables, budget) is False:
                return False
        except NoValue as error:
            problems.append(str(error))
        except OutOfBudget as error:
            problems = [str(error)]
            break
    if problems and not fails_open:
        raise ConditionsFailed(aggregate(problems))
    return not problems


def value_of(condition: Condition, variables: Mapping[str, Any], budget: Budget) -> Any:
    """Return the value of an expression.

    Raises `NoValue` if the expression does not compile or its evaluation fails, and `OutOfBudget` if the evaluation
    costs too much.
    """
    if condition.expression is None:
        raise NoValue(f"compilation error: {condition.problem}")
    return budget.evaluate(condition.expression, variables)
