"""Checks that follow the type check of an expression: invalid constants, and lists of mixed types.

Guarantees: an expression passes these checks only if its literal patterns, durations and timestamps are valid. If a
format and its list of arguments are literals, the arguments must fit the format. All elements of a list must have the
same type, except for the arguments of `format`. All keys of a map must have the same type, and all values of a map must
have the same type.

Source: cel-go `cel/validator.go`, `ext/formatting.go` (`stringFormatValidator`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ctrlmgr.expressions import types
from ctrlmgr.expressions.expression_parser import children
from ctrlmgr.expressions.expression_tree import Call, ListOf, Literal, MapOf, Node
from ctrlmgr.expressions.library.formatting import WANTS, Clause, interpolated
from ctrlmgr.expressions.source import CompileError, Problem
from ctrlmgr.expressions.time_values import parse_duration, parse_timestamp
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.regexp import PatternError, compiled

_CHECKS: Mapping[str, Callable[[str], Any]] = {
    "duration": parse_duration,
    "timestamp": parse_timestamp,
    "matches": compiled,
}
"""Functions that check the first argument of a call, by the name of the called function.

Each of these functions raises an exception if the argument is invalid.
"""


def check_literals(source: str, root: Node) -> None:
    """Raise `CompileError` if constants in the expression are invalid."""
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
    if node.function == "format" and node.target is not None:
        yield from _format_problems(node)
    check = _CHECKS.get(node.function)
    if check is None or not node.arguments:
        return
    operand = node.arguments[0]
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        try:
            check(operand.value)
        except (EvalError, PatternError):
            yield Problem(operand.at, f"invalid {node.function} argument")


def _format_problems(node: Call) -> Iterator[Problem]:
    """Yield the first error in a format and its arguments, or the error that there are too many arguments."""
    text, listed = node.target, node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(text, Literal) or type(text.value) is not str or not isinstance(listed, ListOf):
        return
    elements, used = listed.elements, 0
    misfits: list[Node] = [node]

    def check(clause: Clause, at: int) -> str:
        nonlocal used
        used = at + 1
        misfit = _misfit(clause.verb, elements[at])
        if misfit is None:
            return ""
        misfits.append(misfit)
        raise EvalError(f"{WANTS[clause.verb]}, was given {_RUNTIME_NAMES.get(misfit.type.name, misfit.type.name)}")

    try:
        interpolated(text.value, len(elements), check, counts_first=False)
    except EvalError as error:
        yield Problem(misfits[-1].at, str(error))
        return
    if len(elements) > used:
        words = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        yield Problem(node.at, words)


_INTEGERS = ("int", "uint")
_FITTING: Mapping[str, tuple[str, ...]] = {
    "s": (*_INTEGERS, "list", "map", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"),
    "d": _INTEGERS,
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": (*_INTEGERS, "bool"),
    "x": (*_INTEGERS, "string", "bytes"),
    "X": (*_INTEGERS, "string", "bytes"),
    "o": _INTEGERS,
}
"""The kinds of types that a clause of a format accepts; a clause also accepts types that are unknown before evaluation.
"""
_RUNTIME_NAMES: Mapping[str, str] = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
}


def _misfit(verb: str, node: Node) -> Node | None:
    """Return the argument, or the part of it, whose type a clause refuses; None if the argument fits."""
    if node.type.kind not in _FITTING[verb] and node.type != types.DYN:
        return node
    if verb != "s":
        return None
    parts: list[Node] = []
    if isinstance(node, ListOf):
        parts = node.elements
    elif isinstance(node, MapOf):
        parts = [part for each in node.entries for part in (each.key, each.value) if not isinstance(part, str)]
    return next((misfit for part in parts if (misfit := _misfit(verb, part)) is not None), None)


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
