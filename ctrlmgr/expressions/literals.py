"""What is looked at in a checked expression besides its types: constants that functions would refuse, mixed lists.

Guarantees: patterns, durations and timestamps that are written in the expression are valid; the elements of a list are
of one type, as are the keys and the values of a map, but for the arguments of `format`.

Source: cel-go `cel/validator.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ctrlmgr.expressions import types
from ctrlmgr.expressions.nodes import Call, ListOf, Literal, MapOf, Node
from ctrlmgr.expressions.reading import children
from ctrlmgr.expressions.source import CompileError, Problem
from ctrlmgr.expressions.times import parse_duration, parse_timestamp
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.regexp import PatternError, compiled

_CHECKS: Mapping[str, tuple[int, Callable[[str], Any]]] = {
    "duration": (0, parse_duration),
    "timestamp": (0, parse_timestamp),
    "matches": (1, compiled),
}


def check_literals(source: str, root: Node) -> None:
    """Raise `CompileError` for what is wrong with constants."""
    if problems := list(_problems(root)):
        raise CompileError(source, problems)


def _problems(root: Node) -> Iterator[Problem]:
    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, may_mix = waiting.pop()
        if isinstance(node, Call):
            yield from _call_problems(node)
            may_mix = may_mix or node.function == "format"
        elif not may_mix:
            yield from _mixed(node)
        waiting += [(below, may_mix) for below in children(node)]


def _call_problems(node: Call) -> Iterator[Problem]:
    place, check = _CHECKS.get(node.function, (-1, None))
    operands = [*([node.target] if node.target is not None else []), *node.arguments]
    if check is None or not 0 <= place < len(operands):
        return
    operand = operands[place]
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        try:
            check(operand.value)
        except (EvalError, PatternError):
            yield Problem(operand.at, f"invalid {node.function} argument")


def _mixed(node: Node) -> Iterator[Problem]:
    if isinstance(node, ListOf):
        given = [(each, index in node.optional) for index, each in enumerate(node.elements)]
        yield from _different(given)
    elif isinstance(node, MapOf):
        yield from _different([(each.key, False) for each in node.entries if not isinstance(each.key, str)])
        yield from _different([(each.value, each.optional) for each in node.entries])


def _different(parts: Sequence[tuple[Node, bool]]) -> Iterator[Problem]:
    first: Type | None = None
    for part, is_optional in parts:
        type_ = types.unwrapped(part.type) if is_optional else part.type
        if first is None:
            first = type_
        elif type_ != first:
            yield Problem(part.at, f"expected type '{first}' but found '{type_}'")
            return
