"""`'%s is %d'.format([a, b])`: the clauses of a format, and how each writes a value.

Guarantees: clauses and errors are cel-go's; neither a precision nor the number of clauses lets a text grow beyond what
a format and its arguments amount to.

Source: cel-go `ext/formatting_v2.go`, `ext/formatting.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.go_text import quote
from ctrlmgr.expressions.library.numbers import write_double, write_fixed, write_scientific
from ctrlmgr.expressions.times import write_duration, write_timestamp
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import Duration, EvalError, Optional, Timestamp, UInt, type_of

_CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]+))?([a-zA-Z])?)")
_DEFAULT_PRECISION: Final = 6
_MOST_PRECISION: Final = 1000


def format_text(text: str, arguments: Sequence[Any]) -> str:
    """Return a format with its clauses replaced; raises `EvalError`."""
    at = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal at
        if match[1]:
            return "%"
        if not match[3]:
            raise EvalError(
                "unexpected end of format string" if match.end() == len(text) else _unknown(text[match.end()])
            )
        if match[3] not in _WRITERS:
            raise EvalError(_unknown(match[3]))
        if at >= len(arguments):
            raise EvalError(f"index {at} out of range")
        value, at = arguments[at], at + 1
        try:
            return _WRITERS[match[3]](value, _precision(match[2]))
        except EvalError as error:
            raise EvalError(f"error during formatting: {error}") from error

    return _CLAUSE.sub(replaced, text)


def _unknown(verb: str) -> str:
    return f'could not parse formatting clause: unrecognized formatting clause "{verb}"'


def _precision(digits: str | None) -> int | None:
    if digits is None:
        return None
    if len(digits) > 5 or int(digits) > _MOST_PRECISION:
        raise EvalError(f"precision {digits} is too large")
    return int(digits)


def _refuse(verb: str, wants: str, value: Any) -> EvalError:
    return EvalError(f"{verb} clause can only be used on {wants}, was given {type_of(value).name}")


def _string(value: Any, precision: int | None) -> str:
    simple = _simple(value)
    if simple is not None:
        return simple
    if type(value) in (list, tuple):
        return f"[{', '.join(_string(each, None) for each in value)}]"
    if type(value) is dict:
        entries = sorted((_string(key, None), _string(each, None)) for key, each in value.items())
        return "{" + ", ".join(f"{key}: {each}" for key, each in entries) + "}"
    raise _refuse(
        "string", "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps", value
    )


def _simple(value: Any) -> str | None:
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    if kind is bytes:
        return bytes(value).decode(errors="replace")
    if kind in (int, UInt):
        return str(int(value))
    if kind is float:
        return write_double(value).removeprefix("+").replace("Inf", "Infinity")
    if kind is Timestamp:
        return write_timestamp(value)
    if kind is Duration:
        return write_duration(value)
    return value.name if kind is Type else None


def _decimal(value: Any, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return str(int(value))
    if type(value) is float:
        return write_double(value)
    raise _refuse("decimal", "integers", value)


def _fixed(value: Any, precision: int | None) -> str:
    return write_fixed(_number("fixed-point", value), _DEFAULT_PRECISION if precision is None else precision)


def _scientific(value: Any, precision: int | None) -> str:
    return write_scientific(_number("scientific", value), _DEFAULT_PRECISION if precision is None else precision)


def _number(verb: str, value: Any) -> float:
    if type(value) is float:
        return float(value)
    if type(value) in (int, UInt):
        return float(value)
    raise _refuse(verb, "doubles", value)


def _binary(value: Any, precision: int | None) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in (int, UInt):
        return format(int(value), "b")
    raise _refuse("binary", "integers and bools", value)


def _octal(value: Any, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return format(int(value), "o")
    raise _refuse("octal", "integers", value)


def _hexadecimal(value: Any, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return format(int(value), "x")
    if type(value) is str:
        return str(value).encode().hex()
    if type(value) is bytes:
        return bytes(value).hex()
    raise _refuse("hex", "integers, byte buffers, and strings", value)


def _quoted(value: Any, precision: int | None) -> str:
    return quote(_string(value.value if type(value) is Optional and value.present else value, None))


_WRITERS: Final[Mapping[str, Callable[[Any, int | None], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
    "q": _quoted,
}
