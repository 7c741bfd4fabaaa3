"""Environments, which declare the variables and functions of expressions, and compiled expressions.

Guarantees: a compiled expression can be evaluated any number of times, by several threads at once, within a cost limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlmgr.expressions.ast_validators import check_literals
from ctrlmgr.expressions.costs import MOST_STEPS, PER_CALL_LIMIT
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.escapes import unescape
from ctrlmgr.expressions.evaluation import Compiler
from ctrlmgr.expressions.evaluation_state import Run, Step
from ctrlmgr.expressions.expression_parser import read
from ctrlmgr.expressions.expression_tree import Node
from ctrlmgr.expressions.library.authorizing import AUTHORIZING
from ctrlmgr.expressions.library.list_functions import LISTS
from ctrlmgr.expressions.library.network_functions import ADDRESSES
from ctrlmgr.expressions.library.operators import OPERATORS
from ctrlmgr.expressions.library.quantity_functions import AMOUNTS
from ctrlmgr.expressions.library.regex_and_urls import TEXTS
from ctrlmgr.expressions.library.sets import SETS
from ctrlmgr.expressions.library.standard_functions import STANDARD
from ctrlmgr.expressions.library.strings import STRINGS
from ctrlmgr.expressions.type_checker import check
from ctrlmgr.expressions.types import NoObjects, Objects, Type
from ctrlmgr.expressions.values import CostExceeded, EvalError
from ctrlmgr.work_budget import TooMuchWork, bounded

LIBRARIES: Final = (OPERATORS, STANDARD, STRINGS, LISTS, SETS, TEXTS, ADDRESSES, AMOUNTS, AUTHORIZING)
"""The libraries that every environment has; callers that need formats add `library.formats`."""


class NoValue(Exception):
    """Raised if the evaluation of an expression gives no value; the message names the expression and the reason."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; two compiled expressions are equal if their sources and types are equal."""

    source: str
    type: Type
    """The type of the expression's value."""
    root: Node = field(compare=False)
    step: Step = field(compare=False)

    def evaluate(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """Return the value of the expression and its cost.

        Raises `EvalError` if the evaluation fails, and `CostExceeded` if the cost exceeds `limit`.
        """
        run = Run(variables, limit)
        try:
            with bounded(MOST_STEPS):
                value = self.step(run)
        except RecursionError as error:
            raise EvalError("expression recursion limit exceeded") from error
        except TooMuchWork as error:
            raise CostExceeded from error
        return value, run.cost

    def no_value(self, error: EvalError | CostExceeded) -> NoValue:
        """Return an error with Kubernetes' message, which contains `error` as the reason."""
        return NoValue(f"expression '{self.source}' resulted in error: {error}")


class Environment:
    """An environment: the variables and functions that expressions may use."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Functions,
        objects: Objects | None = None,
        *,
        unescapes: bool = False,
        binds: bool = False,
    ) -> None:
        """Create an environment with the given variables, functions and declarations of objects.

        If `unescapes` is true, expressions contain escaped field names, and objects contain the original names. If
        `binds` is true, expressions may use `cel.bind`.
        """
        self._variables = dict(variables)
        self._functions = functions
        self._objects = objects if objects is not None else NoObjects()
        self._unescapes = unescapes
        self._binds = binds

    def compile(self, source: str) -> Expression:
        """Compile an expression; raises `CompileError` if the expression is invalid."""
        root = read(source, binds=self._binds)
        type_ = check(source, root, self._variables, self._functions, self._objects)
        check_literals(source, root)
        if self._unescapes:
            unescape(root)
        return Expression(source, type_, root, Compiler(self._functions).step(root))
