"""Lists and maps that loops of macros make: a loop adds to its own, and copies none for each element.

Source: cel-go `common/types/list.go` (`mutableList`) and `map.go` (`mutableMap`), as its comprehensions use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.expressions.macros import RESULT
from ctrlmgr.expressions.nodes import Call, Ident, ListOf
from ctrlmgr.expressions.run import Run, Step


def own(initial: Any) -> Any:
    """Return what a loop may change: steps add to the list or the map that the loop makes."""
    return initial.copy() if type(initial) in (list, dict) and not initial else initial


def is_extension(node: Call) -> bool:
    """Whether a call adds elements to the list that a loop of a macro makes (`map`, `filter`)."""
    first, last = (node.arguments[0], node.arguments[-1]) if len(node.arguments) == 2 else (None, None)
    named = isinstance(first, Ident) and first.name == RESULT
    return named and node.function == "_+_" and isinstance(last, ListOf)


def extended(steps: Sequence[Step]) -> Step:
    """Return what adds elements to the list that a loop of a macro makes: to the list itself, not to a copy."""
    accumulator, elements = steps

    def extend(run: Run) -> Any:
        made, more = accumulator(run), elements(run)
        made += more
        run.pay(1)
        return made

    return extend
