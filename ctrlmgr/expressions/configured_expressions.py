"""Compiles expressions in configuration files when the file is read, and evaluates them for each request.

Guarantees: the message of each error has only one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.expressions.environment import Environment, Expression
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import CostExceeded, EvalError


def compiled(environment: Environment, source: str, expected: Type | None = None) -> Expression:
    """Compile an expression; if `expected` is given, the value of the expression must have this type.

    Raises `ValueError` if the expression is invalid.
    """
    try:
        expression = environment.compile(source)
    except CompileError as error:
        raise ValueError(f"compilation failed: {error.in_one_line}") from error
    if expected is not None and expression.type != expected:
        raise ValueError(f"must evaluate to {expected} but got {expression.type}")
    return expression


def value_of(expression: Expression, variables: Mapping[str, Any]) -> Any:
    """Return the value of an expression; raises `NoValue` if the evaluation fails."""
    try:
        return expression.evaluate(variables)[0]
    except (EvalError, CostExceeded) as error:
        raise expression.no_value(error) from error
