"""The standard functions (sizes, strings, type conversions, fields of timestamps), and the functions of optionals.

Source: cel-go `common/stdlib/standard.go`, `common/types`, `cel/library.go` (optionals).
"""

from __future__ import annotations

import math
from typing import Any, Final

from ctrlmgr.expressions import values
from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.library.float_format import write_double
from ctrlmgr.expressions.time_values import (
    SECOND,
    local,
    parse_duration,
    parse_timestamp,
    timestamp,
    write_duration,
    write_timestamp,
)
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import (
    LEAST_INT,
    MOST_INT,
    MOST_UINT,
    NONE,
    SEQUENCES,
    Duration,
    EvalError,
    Optional,
    Timestamp,
    UInt,
)
from ctrlmgr.golang.go_numbers import parse_int, parse_uint
from ctrlmgr.regexp import PatternError, compiled

STANDARD: Final = Library()
_function = STANDARD.function


@_function("type", "(A) -> type(A)")
def _type(value: Any) -> Type:
    return values.type_of(value)


@_function("dyn", "(A) -> dyn")
def _dyn(value: Any) -> Any:
    return value


_SIZED = ("string", "bytes", "list(A)", "map(A, B)")


@_function("size", *(f"({each}) -> int" for each in _SIZED), *(f"{each}.() -> int" for each in _SIZED))
def _size(value: Any) -> int:
    return len(value)


@_function("contains", "string.(string) -> bool")
def _contains(text: str, part: str) -> bool:
    return part in text


@_function("startsWith", "string.(string) -> bool")
def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@_function("endsWith", "string.(string) -> bool")
def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@_function("matches", "(string, string) -> bool", "string.(string) -> bool")
def _matches(text: str, pattern: str) -> bool:
    try:
        return compiled(pattern).search(text)
    except PatternError as error:
        raise EvalError(str(error)) from error


# Conversions


def _no_conversion(from_: str, to: str) -> EvalError:
    return EvalError(f"type conversion error from '{from_}' to '{to}'")


@_function("int", *(f"({each}) -> int" for each in ("int", "double", "duration", "string", "timestamp", "uint")))
def _int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return parse_int(value)
        except ValueError as error:
            raise _no_conversion("string", "int") from error
    if isinstance(value, Timestamp):
        return value.nanoseconds // SECOND
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, float) and not (math.isfinite(value) and LEAST_INT < value < MOST_INT):
        raise EvalError("integer overflow")
    if not LEAST_INT <= int(value) <= MOST_INT:
        raise EvalError("integer overflow")
    return int(value)


@_function("uint", *(f"({each}) -> uint" for each in ("uint", "double", "int", "string")))
def _uint(value: Any) -> UInt:
    if isinstance(value, str):
        try:
            return UInt(parse_uint(value))
        except ValueError as error:
            raise _no_conversion("string", "uint") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise EvalError("unsigned integer overflow")
    if value < 0 or int(value) > MOST_UINT:
        raise EvalError("unsigned integer overflow")
    return UInt(value)


@_function("double", *(f"({each}) -> double" for each in ("double", "int", "string", "uint")))
def _double(value: Any) -> float:
    try:
        if isinstance(value, str) and ("_" in value or value.strip() != value or not value.isascii()):
            raise ValueError  # Python would accept this text
        return float(value)
    except ValueError as error:
        raise _no_conversion("string", "double") from error


_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")


@_function("bool", "(bool) -> bool", "(string) -> bool")
def _bool(value: Any) -> bool:
    if value in _TRUE or value is True:
        return True
    if value in _FALSE or value is False:
        return False
    raise _no_conversion("string", "bool")


@_function("bytes", "(bytes) -> bytes", "(string) -> bytes")
def _bytes(value: Any) -> bytes:
    return value.encode(errors="surrogatepass") if isinstance(value, str) else bytes(value)


@_function("duration", "(duration) -> duration", "(int) -> duration", "(string) -> duration")
def _duration(value: Any) -> Duration:
    if isinstance(value, str):
        return parse_duration(value)
    return value if isinstance(value, Duration) else Duration(value)


@_function("timestamp", "(timestamp) -> timestamp", "(int) -> timestamp", "(string) -> timestamp")
def _timestamp(value: Any) -> Timestamp:
    if isinstance(value, str):
        return parse_timestamp(value)
    return value if isinstance(value, Timestamp) else timestamp(value * SECOND)


_WRITTEN = ("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint")


@_function("string", *(f"({each}) -> string" for each in _WRITTEN))
def to_string(value: Any) -> str:
    """Convert a value to a string; raises `EvalError` if bytes are not UTF-8."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return write_double(value)
    if isinstance(value, Timestamp):
        return write_timestamp(value)
    if isinstance(value, Duration):
        return write_duration(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from error
    return str(int(value))


# Times of day

_AT = ("timestamp.() -> int", "timestamp.(string) -> int")


@_function("getFullYear", *_AT)
def _year(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).year


@_function("getMonth", *_AT)
def _month(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).month - 1


@_function("getDayOfYear", *_AT)
def _day_of_year(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).timetuple().tm_yday - 1


@_function("getDayOfMonth", *_AT)
def _day_of_month(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).day - 1


@_function("getDate", *_AT)
def _date(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).day


@_function("getDayOfWeek", *_AT)
def _day_of_week(moment: Timestamp, zone: str = "") -> int:
    return local(moment, zone).isoweekday() % 7


def _whole(span: Duration, unit: int) -> int:
    """Return the number of whole units in a duration, rounded towards zero."""
    count = abs(span.nanoseconds) // unit
    return -count if span.nanoseconds < 0 else count


@_function("getHours", *_AT, "duration.() -> int")
def _hours(value: Any, zone: str = "") -> int:
    return _whole(value, 3600 * SECOND) if isinstance(value, Duration) else local(value, zone).hour


@_function("getMinutes", *_AT, "duration.() -> int")
def _minutes(value: Any, zone: str = "") -> int:
    return _whole(value, 60 * SECOND) if isinstance(value, Duration) else local(value, zone).minute


@_function("getSeconds", *_AT, "duration.() -> int")
def _seconds(value: Any, zone: str = "") -> int:
    return _whole(value, SECOND) if isinstance(value, Duration) else local(value, zone).second


@_function("getMilliseconds", *_AT, "duration.() -> int")
def _milliseconds(value: Any, zone: str = "") -> int:
    if isinstance(value, Duration):
        return _whole(value, 10**6)
    local(value, zone)  # this raises an exception for an unknown time zone
    return value.nanoseconds % SECOND // 10**6  # type: ignore[no-any-return]  # a Timestamp, by the signature


# Optionals


@_function("optional.of", "(V) -> optional_type(V)")
def _of(value: Any) -> Optional:
    return Optional(True, value)


@_function("optional.ofNonZeroValue", "(V) -> optional_type(V)")
def _of_non_zero(value: Any) -> Optional:
    is_zero = value is None or (type(value) in (bool, int, UInt, float, str, bytes, dict, *SEQUENCES) and not value)
    is_zero = is_zero or (isinstance(value, Duration) and not value.nanoseconds)
    return NONE if is_zero else Optional(True, value)


@_function("optional.none", "() -> optional_type(V)")
def _none() -> Optional:
    return NONE


@_function("optional.unwrap", "(list(optional_type(V))) -> list(V)")
@_function("unwrapOpt", "list(optional_type(V)).() -> list(V)")
def _unwrap(optionals: list[Optional]) -> list[Any]:
    return [each.value for each in optionals if each.present]


@_function("value", "optional_type(V).() -> V")
def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvalError("optional.none() dereference")
    return optional.value


@_function("hasValue", "optional_type(V).() -> bool")
def _has_value(optional: Optional) -> bool:
    return optional.present


@_function("or", "optional_type(V).(optional_type(V)) -> optional_type(V)")
def _or(optional: Optional, other: Optional) -> Optional:
    return optional if optional.present else other


@_function("orValue", "optional_type(V).(V) -> V")
def _or_value(optional: Optional, other: Any) -> Any:
    return optional.value if optional.present else other


def _evaluated(*_: Any) -> Any:
    raise AssertionError("the evaluator implements this function itself")


_function(
    "_[?_]",
    "(list(V), int) -> optional_type(V)",
    "(optional_type(list(V)), int) -> optional_type(V)",
    "(map(K, V), K) -> optional_type(V)",
    "(optional_type(map(K, V)), K) -> optional_type(V)",
)(_evaluated)
_function(
    "_[_]", "(optional_type(list(V)), int) -> optional_type(V)", "(optional_type(map(K, V)), K) -> optional_type(V)"
)(_evaluated)
