"""Cost estimates of the standard functions of CEL.

Source: cel-go `checker/cost.go` (`functionCost`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ctrlmgr.expressions.cost_estimation.cost_ranges import ONE, Range
from ctrlmgr.expressions.cost_estimation.operands import Estimate, Operand
from ctrlmgr.expressions.declarations import Overload

TRAVERSAL: Final = 0.1
"""The cost of reading one character."""
PATTERN: Final = 0.25
"""The cost of matching one character of a pattern."""

_TEXTS: Final = ("string", "bytes")

_Price = Callable[[Overload, Operand | None, Sequence[Operand]], Estimate | None]


def standard_estimate(
    function: str, overload: Overload, target: Operand | None, arguments: Sequence[Operand]
) -> Estimate:
    """Return the cost estimate for a call of one overload of a standard function; the usual cost is one unit."""
    price = _PRICES.get(function)
    return (price(overload, target, arguments) if price is not None else None) or Estimate(ONE)


def _kind(overload: Overload, at: int = 0) -> str:
    return overload.arguments[at].kind


def _read(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    return Estimate(target.known.scaled(TRAVERSAL)) if target is not None else None


def _read_argument(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    return Estimate(arguments[0].known.scaled(TRAVERSAL)) if len(arguments) == 1 else None


def _to_bytes(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    if _kind(overload) != "string":
        return None
    size = arguments[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(size.least, _wrapped(size.most * 4)))


def _to_text(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    if _kind(overload) != "bytes":
        return None
    size = arguments[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(size.least // 4, size.most))


def _quote(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    size = arguments[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(_wrapped(size.least + 2), _wrapped(size.most * 2 + 2)))


def _wrapped(number: int) -> int:
    """Return a number modulo 2^64, because Go does not check this multiplication for overflow."""
    return number & ((1 << 64) - 1)


def _in(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    return Estimate(arguments[1].known) if _kind(overload, 1) == "list" else None


def _matches(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    text, pattern = (target, arguments[0]) if target is not None else (arguments[0], arguments[1])
    return Estimate(matching(text.known, pattern.known))


def matching(text: Range, pattern: Range) -> Range:
    """Return the cost of matching a string against a pattern.

    Even an empty string has a cost, because the pattern may be long.
    """
    return text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(PATTERN))


def _contains(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    if target is None:
        return None
    return Estimate(target.known.scaled(TRAVERSAL).times(arguments[0].known.scaled(TRAVERSAL)))


def _sum(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    size = arguments[0].known.plus(arguments[1].known)
    if _kind(overload) == "list":
        return Estimate(ONE, size)
    return Estimate(size.scaled(TRAVERSAL), size) if _kind(overload) in _TEXTS else None


def _order(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    return _equality(overload, target, arguments) if _kind(overload) in _TEXTS else None


def _equality(overload: Overload, target: Operand | None, arguments: Sequence[Operand]) -> Estimate | None:
    """Return the cost of reading the smaller of two operands."""
    most = min(arguments[0].known.most, arguments[1].known.most)
    return Estimate(Range(min(most, 1), most).scaled(TRAVERSAL))


_PRICES: Final[Mapping[str, _Price]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("_==_", "_!=_"), _equality),
    **dict.fromkeys(("startsWith", "endsWith"), _read_argument),
    "format": _read,
    "bytes": _to_bytes,
    "string": _to_text,
    "strings.quote": _quote,
    "@in": _in,
    "matches": _matches,
    "contains": _contains,
    "_+_": _sum,
}
