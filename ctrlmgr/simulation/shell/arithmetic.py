"""The arithmetic of the small shell: integers, variables, `+ - * / %`, comparisons and parentheses.

Guarantees: expressions with other operators are not evaluated and have the value 0.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Final

_OPERATORS: Final[Mapping[type[ast.AST], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b) if b else 0,
    ast.Mod: lambda a, b: a - b * int(a / b) if b else 0,
    ast.Lt: lambda a, b: int(a < b),
    ast.LtE: lambda a, b: int(a <= b),
    ast.Gt: lambda a, b: int(a > b),
    ast.GtE: lambda a, b: int(a >= b),
    ast.Eq: lambda a, b: int(a == b),
    ast.NotEq: lambda a, b: int(a != b),
}
_LARGEST: Final = 2**63
_LONGEST: Final = 200
"""The maximum length of an expression, in characters."""


def evaluate(text: str, variables: Mapping[str, str]) -> int:
    """Return the value of an expression as a 64-bit integer."""
    try:
        tree = ast.parse(text.strip(), mode="eval") if len(text) <= _LONGEST else None
        found = _value(tree.body, variables) if tree is not None else 0
    except (SyntaxError, ValueError, OverflowError):
        return 0
    return (found + _LARGEST) % (2 * _LARGEST) - _LARGEST


def _value(node: ast.expr, variables: Mapping[str, str]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.Name(id=name):
            return int(variables.get(name) or "0")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, variables)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](_value(left, variables), _value(right, variables))
    raise ValueError(ast.dump(node))
