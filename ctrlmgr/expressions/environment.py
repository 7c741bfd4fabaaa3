"""An environment: what expressions may name and call; and expressions that were compiled in one.

Guarantees: what compiles can be evaluated any number of times, by several threads at once, within a limit of cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlmgr.expressions.checking import check
from ctrlmgr.expressions.costs import MOST_STEPS, PER_CALL_LIMIT
from ctrlmgr.expressions.declarations import Functions
from ctrlmgr.expressions.escapes import unescape
from ctrlmgr.expressions.evaluation import Compiler
from ctrlmgr.expressions.library.addresses import ADDRESSES
from ctrlmgr.expressions.library.amounts import AMOUNTS
from ctrlmgr.expressions.library.authorizing import AUTHORIZING
from ctrlmgr.expressions.library.lists import LISTS
from ctrlmgr.expressions.library.operators import OPERATORS
from ctrlmgr.expressions.library.sets import SETS
from ctrlmgr.expressions.library.standard import STANDARD
from ctrlmgr.expressions.library.strings import STRINGS
from ctrlmgr.expressions.library.texts import TEXTS
from ctrlmgr.expressions.literals import check_literals
from ctrlmgr.expressions.nodes import Node
from ctrlmgr.expressions.reading import read
from ctrlmgr.expressions.run import Run, Step
from ctrlmgr.expressions.types import NoObjects, Objects, Type
from ctrlmgr.expressions.values import CostExceeded, EvalError
from ctrlmgr.work_budget import TooMuchWork, bounded

LIBRARIES: Final = (OPERATORS, STANDARD, STRINGS, LISTS, SETS, TEXTS, ADDRESSES, AMOUNTS, AUTHORIZING)
"""What every environment has; `library.formats` is brought by those who know the formats."""


class NoValue(Exception):
    """An expression has no value, or none that can be used; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was compiled; equal to another of the same text and type."""

    source: str
    type: Type
    """What it evaluates to."""
    root: Node = field(compare=False)
    step: Step = field(compare=False)

    def evaluate(self, variables: Mapping[str, Any], limit: int = PER_CALL_LIMIT) -> tuple[Any, int]:
        """Return the value and what it cost; raises `EvalError`, and `CostExceeded` beyond `limit`."""
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
        """Return what says in Kubernetes' words that it has no value, because of `error`."""
        return NoValue(f"expression '{self.source}' resulted in error: {error}")


class Environment:
    """What expressions may name and call."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        functions: Functions,
        objects: Objects | None = None,
        *,
        unescapes: bool = False,
        binds: bool = False,
    ) -> None:
        """Declare variables with their types, functions, and the fields of objects.

        Where it `unescapes`, expressions escape the names of fields, and objects are given with the names themselves.
        Where it `binds`, they may name values with `cel.bind`.
        """
        self._variables = dict(variables)
        self._functions = functions
        self._objects = objects if objects is not None else NoObjects()
        self._unescapes = unescapes
        self._binds = binds

    def compile(self, source: str) -> Expression:
        """Return an expression; raises `CompileError`."""
        root = read(source, binds=self._binds)
        type_ = check(source, root, self._variables, self._functions, self._objects)
        check_literals(source, root)
        if self._unescapes:
            unescape(root)
        return Expression(source, type_, root, Compiler(self._functions).step(root))
