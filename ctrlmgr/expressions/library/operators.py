"""Implements arithmetic, comparison and membership operators, and declares the other operators.

Guarantees: overflows of 64-bit integers raise errors. Numbers of the types int, uint and double can be compared with
each other.

Source: cel-go `common/stdlib/standard.go` and `common/types/{int,uint,double,overflow,compare}.go`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.time_values import duration, timestamp
from ctrlmgr.expressions.values import (
    LEAST_INT,
    MAPS,
    MOST_INT,
    MOST_UINT,
    SEQUENCES,
    DefaultMap,
    Duration,
    EvalError,
    MapList,
    SetList,
    Timestamp,
    UInt,
    entry,
    equal,
    scalar,
)
from ctrlmgr.work_budget import spend

OPERATORS: Final = Library()


def no_overload() -> EvalError:
    """Return the error of an operator that has no overload for operands of these types."""
    return EvalError("no such overload")


def _in_range(value: int, unsigned: bool) -> int:
    if unsigned:
        if not 0 <= value <= MOST_UINT:
            raise EvalError("unsigned integer overflow")
        return UInt(value)
    if not LEAST_INT <= value <= MOST_INT:
        raise EvalError("integer overflow")
    return value


def _calculated(compute: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Apply an operator to two numbers of one type."""
    kind = type(one)
    if kind is not type(other) or kind not in (int, UInt, float):
        raise no_overload()
    if kind is float:
        return compute(one, other)
    return _in_range(compute(int(one), int(other)), kind is UInt)


@OPERATORS.function(
    "_+_",
    "(bytes, bytes) -> bytes",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(duration, timestamp) -> timestamp",
    "(timestamp, duration) -> timestamp",
    "(int, int) -> int",
    "(list(A), list(A)) -> list(A)",
    "(string, string) -> string",
    "(uint, uint) -> uint",
)
def add(one: Any, other: Any) -> Any:
    """Add numbers and durations; concatenate strings and lists."""
    kind = type(one)
    if kind in (str, bytes):
        if type(other) is not kind:
            raise no_overload()
        return one + other
    if kind in SEQUENCES:
        if type(other) not in SEQUENCES:
            raise no_overload()
        spend((len(one) + len(other)) // _COPIED[kind])
        return _JOINED[kind](one, other)
    if kind in (Duration, Timestamp):
        return _later(one, other)
    return _calculated(operator.add, one, other)


def _concatenated(one: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    return [*one, *other]


def _union(one: SetList, other: Sequence[Any]) -> SetList:
    """Append the elements of another list that the list does not contain yet."""
    there, joined = set(map(scalar, one)), SetList(one)
    for each in other:
        if (key := scalar(each)) not in there:
            there.add(key)
            joined.append(each)
    return joined


def _merged(one: MapList, other: Sequence[Any]) -> MapList:
    """Merge two lists: elements with the same keys replace the elements of the first list, the others are appended."""
    places, joined = {scalar(one.key(each)): at for at, each in enumerate(one)}, list(one)
    for each in other:
        at = places.get(scalar(one.key(each)))
        if at is None:
            joined.append(each)
        else:
            joined[at] = each
    return MapList(joined, one.keys)


_JOINED: Final[Mapping[type, Callable[[Any, Any], Sequence[Any]]]] = {
    list: _concatenated,
    tuple: _concatenated,
    SetList: _union,
    MapList: _merged,
}


_COPIED: Final[Mapping[type, int]] = {list: 16, tuple: 16, SetList: 1, MapList: 1}
"""Joining this number of list elements counts as one step of work."""


def _later(one: Any, other: Any) -> Any:
    if type(other) not in (Duration, Timestamp) or (type(one) is Timestamp and type(other) is Timestamp):
        raise no_overload()
    total = one.nanoseconds + other.nanoseconds
    return duration(total) if type(one) is type(other) else timestamp(total)


@OPERATORS.function(
    "_-_",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(int, int) -> int",
    "(timestamp, duration) -> timestamp",
    "(timestamp, timestamp) -> duration",
    "(uint, uint) -> uint",
)
def subtract(one: Any, other: Any) -> Any:
    """Subtract numbers, durations and timestamps."""
    kinds = (type(one), type(other))
    if kinds in ((Duration, Duration), (Timestamp, Timestamp)):
        return duration(one.nanoseconds - other.nanoseconds)
    if kinds == (Timestamp, Duration):
        return timestamp(one.nanoseconds - other.nanoseconds)
    return _calculated(operator.sub, one, other)


@OPERATORS.function("_*_", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint")
def multiply(one: Any, other: Any) -> Any:
    """Multiply numbers."""
    return _calculated(operator.mul, one, other)


@OPERATORS.function("_/_", "(double, double) -> double", "(int, int) -> int", "(uint, uint) -> uint")
def divide(one: Any, other: Any) -> Any:
    """Divide numbers; integer division truncates towards zero."""
    if type(one) is float and type(other) is float:
        if other == 0:
            return math.nan if one == 0 or one != one else math.copysign(math.inf, one) * math.copysign(1, other)
        return one / other
    if type(other) in (int, UInt) and type(one) is type(other) and other == 0:
        raise EvalError("division by zero")
    return _calculated(_quotient, one, other)


def _quotient(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


@OPERATORS.function("_%_", "(int, int) -> int", "(uint, uint) -> uint")
def modulo(one: Any, other: Any) -> Any:
    """Return the remainder of a division, which has the sign of the dividend."""
    if type(one) is float:
        raise no_overload()
    if type(other) in (int, UInt) and type(one) is type(other) and other == 0:
        raise EvalError("modulus by zero")
    return _calculated(lambda a, b: a - b * _quotient(a, b), one, other)


@OPERATORS.function("-_", "(double) -> double", "(int) -> int")
def negate(value: Any) -> Any:
    """Negate a number."""
    if type(value) is float:
        return -value
    if type(value) is not int:
        raise no_overload()
    return _in_range(-value, False)


@OPERATORS.function("!_", "(bool) -> bool")
def invert(value: Any) -> bool:
    """Negate a bool."""
    if type(value) is not bool:
        raise no_overload()
    return not value


_NUMBERS = ("int", "uint", "double")
_ORDERED = (
    "(bool, bool) -> bool",
    "(bytes, bytes) -> bool",
    "(string, string) -> bool",
    "(timestamp, timestamp) -> bool",
    "(duration, duration) -> bool",
    *(f"({one}, {other}) -> bool" for one in _NUMBERS for other in _NUMBERS),
)
_COMPARED = (bool, bytes, str, Timestamp, Duration)


def compare(one: Any, other: Any) -> int:
    """Return -1, 0 or 1 for less, equal or greater; raises `EvalError` if the values cannot be ordered."""
    kind = type(one)
    if kind in (int, UInt, float):
        if type(other) not in (int, UInt, float):
            raise no_overload()
        if one != one or other != other:
            raise EvalError("NaN values cannot be ordered")
    elif kind not in _COMPARED or type(other) is not kind:
        raise no_overload()
    return int(one > other) - int(one < other)


@OPERATORS.function("_<_", *_ORDERED)
def less(one: Any, other: Any) -> bool:
    """Return whether `one` is less than `other`."""
    return compare(one, other) < 0


@OPERATORS.function("_<=_", *_ORDERED)
def less_or_equal(one: Any, other: Any) -> bool:
    """Return whether `one` is at most `other`."""
    return compare(one, other) <= 0


@OPERATORS.function("_>_", *_ORDERED)
def greater(one: Any, other: Any) -> bool:
    """Return whether `one` is greater than `other`."""
    return compare(one, other) > 0


@OPERATORS.function("_>=_", *_ORDERED)
def greater_or_equal(one: Any, other: Any) -> bool:
    """Return whether `one` is at least `other`."""
    return compare(one, other) >= 0


@OPERATORS.function("_==_", "(A, A) -> bool")
def equals(one: Any, other: Any) -> bool:
    """Return whether two values are equal."""
    return equal(one, other)


@OPERATORS.function("_!=_", "(A, A) -> bool")
def differs(one: Any, other: Any) -> bool:
    """Return whether two values are not equal."""
    return not equal(one, other)


@OPERATORS.function("@in", "(A, list(A)) -> bool", "(A, map(A, B)) -> bool")
def is_in(value: Any, container: Any) -> bool:
    """Return whether a list contains an element, or a map contains a key."""
    if type(container) in MAPS:
        return entry(container, value)[0]
    if type(container) not in SEQUENCES:
        raise no_overload()
    return any(equal(value, each) for each in container)


def index(container: Any, key: Any) -> Any:
    """Return an element of a list or a value of a map; raises `EvalError` if there is no such element."""
    if type(container) in MAPS:
        found, value = entry(container, key)
        if not found and type(container) is DefaultMap:
            return {}
        if not found:
            raise EvalError(f"no such key: {_shown(key)}")
        return value
    if type(container) not in SEQUENCES:
        raise EvalError(f"no such key: {_shown(key)}")
    at = _position(key)
    if not 0 <= at < len(container):
        raise EvalError(f"index out of bounds: {at}")
    return container[at]


def _position(key: Any) -> int:
    if type(key) in (int, UInt):
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvalError(
        f"unsupported index type '{type(key).__name__}' in list" if type(key) is float else "no such overload"
    )


def _shown(key: Any) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    return str(key)


def _evaluated(*_: Any) -> Any:
    raise AssertionError("the evaluator implements this operator itself")


# Signatures of the operators that the evaluator implements.
OPERATORS.function("_?_:_", "(bool, T, T) -> T")(_evaluated)
OPERATORS.function("_&&_", "(bool, bool) -> bool")(_evaluated)
OPERATORS.function("_||_", "(bool, bool) -> bool")(_evaluated)
OPERATORS.function("@not_strictly_false", "(bool) -> bool")(_evaluated)
OPERATORS.function("_[_]", "(list(A), int) -> A", "(map(A, B), A) -> B")(index)
