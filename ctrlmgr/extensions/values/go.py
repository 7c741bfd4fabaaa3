"""Decoded JSON as Go holds it: what is equal, what is one number in two types, how values and numbers are written.

Python takes `True` for 1 and 1.0 for 1; Go's decoded JSON has bools, int64 and float64 apart, and so must what is
compared here. Integers beyond 64 bits are float64 to Go.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import msgspec

LOWEST = -(2**63)
HIGHEST = 2**63 - 1
_HIGHEST_INTEGRAL = 2**53 - 1
_EXPONENT_FROM = 1e21
_EPSILON = 1e-9
_REPLACEMENT = "\ufffd"

encode = msgspec.json.Encoder(order="deterministic").encode


def is_int(value: Any) -> bool:
    """Say whether a value is an int64 to Go."""
    return type(value) is int and LOWEST <= value <= HIGHEST


def same(left: Any, right: Any) -> bool:
    """Say whether two decoded values are equal and of the same types, at any depth (`reflect.DeepEqual`)."""
    if left is right:  # decoded JSON has no NaN
        return True
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return len(left) == len(right) and all(key in right and same(each, right[key]) for key, each in left.items())
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def identity(value: Any) -> Hashable:
    """Return a key that is equal for what is equal."""
    if type(value) in (dict, list):
        return encode(shown(value))
    return type(value), value


def is_integral(number: float) -> bool:
    """Say whether a float64 counts as a whole number, as it does when it is very near one (go-openapi's swag)."""
    if not math.isfinite(number) or abs(number) > _HIGHEST_INTEGRAL:
        return False
    difference = abs(number - round(number))
    return difference == 0 or difference / (abs(number) + abs(round(number))) < _EPSILON


def told(value: Any) -> Any:
    """Return a value for an error message: floats unchanged, because the message formats them, others as `shown`."""
    return value if type(value) is float else shown(value)


def shown(value: Any) -> Any:
    """Return a value to be written as JSON: whole floats without a fraction, keys of objects sorted."""
    if type(value) is float and value == math.trunc(value) and abs(value) < _EXPONENT_FROM:
        return int(value)
    if type(value) is dict:
        return {key: shown(value[key]) for key in sorted(value)}
    return [shown(each) for each in value] if type(value) is list else value


def equals_converted(value: Any, other: Any) -> bool:
    """Say whether a value is equal to another once it is converted to its type, where Go converts at all.

    That makes 1.5 equal to 1, and 97 to "a".
    """
    if other is None or value is None:
        return False
    kind = type(other)
    if type(value) is kind:
        return same(value, other)
    if type(value) is int:
        if kind is float:
            return bool(float(value) == other)
        return kind is str and other == (chr(value) if 0 <= value <= 0x10FFFF else _REPLACEMENT)
    return type(value) is float and kind is int and math.isfinite(value) and math.trunc(value) == other
