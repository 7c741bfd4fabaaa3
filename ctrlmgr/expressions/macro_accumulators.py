"""Mutable lists and maps for macro loops, so that a loop does not copy its result for each element.

Source: cel-go `common/types/list.go` (`mutableList`) and `map.go` (`mutableMap`), which cel-go's comprehensions use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.expressions.evaluation_state import Run, Step
from ctrlmgr.expressions.expression_tree import Call, Ident, ListOf
from ctrlmgr.expressions.macros import RESULT


def own(initial: Any) -> Any:
    """Return a mutable copy of an empty list or map; other values are returned unchanged."""
    return initial.copy() if type(initial) in (list, dict) and not initial else initial


def is_extension(node: Call) -> bool:
    """Return whether a call adds elements to the result list of a macro loop (`map`, `filter`)."""
    first, last = (node.arguments[0], node.arguments[-1]) if len(node.arguments) == 2 else (None, None)
    named = isinstance(first, Ident) and first.name == RESULT
    return named and node.function == "_+_" and isinstance(last, ListOf)


def extended(steps: Sequence[Step]) -> Step:
    """Return the step of evaluation that adds elements to the result list of a macro loop in place."""
    accumulator, elements = steps

    def extend(run: Run) -> Any:
        made, more = accumulator(run), elements(run)
        made += more
        run.pay(1)
        return made

    return extend
