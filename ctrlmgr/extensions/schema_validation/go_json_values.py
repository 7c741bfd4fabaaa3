"""Functions about decoded JSON with Go's semantics: equality, conversion of numbers, and formatting.

In Python, `True` equals 1 and 1.0 equals 1. In decoded JSON, Go distinguishes bools, int64 and float64. The comparisons
of this module do the same. Go decodes integers beyond 64 bits to float64.
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
    """Return whether a value would be decoded to an int64 in Go."""
    return type(value) is int and LOWEST <= value <= HIGHEST


def same(left: Any, right: Any) -> bool:
    """Return whether two decoded values are equal and have the same types, at any depth (`reflect.DeepEqual`)."""
    if left is right:  # decoded JSON contains no NaN
        return True
    if type(left) is not type(right):
        return False
    if type(left) is dict:
        return len(left) == len(right) and all(key in right and same(each, right[key]) for key, each in left.items())
    if type(left) is list:
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def identity(value: Any) -> Hashable:
    """Return a key for a dict; equal values of the same types have equal keys."""
    if type(value) in (dict, list):
        return encode(shown(value))
    return type(value), value


def is_integral(number: float) -> bool:
    """Return whether a float64 is an integer, or very close to one (go-openapi's swag)."""
    if not math.isfinite(number) or abs(number) > _HIGHEST_INTEGRAL:
        return False
    difference = abs(number - round(number))
    return difference == 0 or difference / (abs(number) + abs(round(number))) < _EPSILON


def shown_value(value: Any) -> Any:
    """Return a value for an error message: a float is returned unchanged, because the message formats it.

    For other values, `shown` is returned.
    """
    return value if type(value) is float else shown(value)


def shown(value: Any) -> Any:
    """Return a value that encodes to the same JSON as in Go: whole floats without a fraction, and sorted keys."""
    if type(value) is float and value == math.trunc(value) and abs(value) < _EXPONENT_FROM:
        return int(value)
    if type(value) is dict:
        return {key: shown(value[key]) for key in sorted(value)}
    return [shown(each) for each in value] if type(value) is list else value


def equals_converted(value: Any, other: Any) -> bool:
    """Return whether a value equals `other` after Go's conversion to the type of `other`.

    For example, 1.5 equals 1, and 97 equals "a".
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
