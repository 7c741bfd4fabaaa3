"""The functions of `math`: extremes, rounding, signs, bits.

Source: cel-go `ext/math.go`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.library.operators import compare
from ctrlmgr.expressions.values import EvalError, UInt

ARITHMETIC: Final = Library()
_function = ARITHMETIC.function

_NUMBERS = ("int", "uint", "double")
_SOME = (
    *(f"({each}) -> {each}" for each in _NUMBERS),
    *(f"({each}, {each}) -> {each}" for each in _NUMBERS),
    *(f"({one}, {other}) -> dyn" for one in _NUMBERS for other in _NUMBERS if one != other),
    *(f"(list({each})) -> {each}" for each in _NUMBERS),
    "(list(dyn)) -> dyn",
)


def _extreme(name: str, values: Sequence[Any], sign: int) -> Any:
    items = values[0] if len(values) == 1 and type(values[0]) in (list, tuple) else values
    if not items:
        raise EvalError(f"{name}(list) argument must not be empty")
    found = items[0]
    for each in items:
        found = each if compare(each, found) * sign > 0 else found
    return found


@_function("math.greatest", *_SOME)
def _greatest(*values: Any) -> Any:
    return _extreme("math.greatest", values, 1)


@_function("math.least", *_SOME)
def _least(*values: Any) -> Any:
    return _extreme("math.least", values, -1)


@_function("math.ceil", "(double) -> double")
def _ceil(value: float) -> float:
    return float(math.ceil(value)) if math.isfinite(value) else value


@_function("math.floor", "(double) -> double")
def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


@_function("math.trunc", "(double) -> double")
def _trunc(value: float) -> float:
    return float(math.trunc(value)) if math.isfinite(value) else value


@_function("math.round", "(double) -> double")
def _round(value: float) -> float:
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


@_function("math.abs", *(f"({each}) -> {each}" for each in _NUMBERS))
def _abs(value: Any) -> Any:
    if type(value) is int and value == -(2**63):
        raise EvalError("integer overflow")
    return type(value)(abs(value))


@_function("math.sign", *(f"({each}) -> {each}" for each in _NUMBERS))
def _sign(value: Any) -> Any:
    return value if value != value else type(value)((value > 0) - (value < 0))


@_function("math.isInf", "(double) -> bool")
def _is_inf(value: float) -> bool:
    return math.isinf(value)


@_function("math.isNaN", "(double) -> bool")
def _is_nan(value: float) -> bool:
    return math.isnan(value)


@_function("math.isFinite", "(double) -> bool")
def _is_finite(value: float) -> bool:
    return math.isfinite(value)


@_function("math.sqrt", *(f"({each}) -> double" for each in _NUMBERS))
def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


_BITWISE = ("(int, int) -> int", "(uint, uint) -> uint")


@_function("math.bitAnd", *_BITWISE)
def _bit_and(one: int, other: int) -> int:
    return type(one)(int(one) & int(other))


@_function("math.bitOr", *_BITWISE)
def _bit_or(one: int, other: int) -> int:
    return type(one)(int(one) | int(other))


@_function("math.bitXor", *_BITWISE)
def _bit_xor(one: int, other: int) -> int:
    return type(one)(int(one) ^ int(other))


@_function("math.bitNot", "(int) -> int", "(uint) -> uint")
def _bit_not(value: int) -> int:
    return UInt(~int(value) % 2**64) if type(value) is UInt else ~value


_SHIFTED = ("(int, int) -> int", "(uint, int) -> uint")


@_function("math.bitShiftLeft", *_SHIFTED)
def _shift_left(value: int, bits: int) -> int:
    if bits < 0:
        raise EvalError(f"math.bitShiftLeft() negative offset: {bits}")
    shifted = (int(value) << bits if bits < 64 else 0) % 2**64
    return UInt(shifted) if type(value) is UInt else shifted - (2**64 if shifted >= 2**63 else 0)


@_function("math.bitShiftRight", *_SHIFTED)
def _shift_right(value: int, bits: int) -> int:
    if bits < 0:
        raise EvalError(f"math.bitShiftRight() negative offset: {bits}")
    shifted = int(value) % 2**64 >> bits if bits < 64 else 0
    return UInt(shifted) if type(value) is UInt else shifted - (2**64 if shifted >= 2**63 else 0)
