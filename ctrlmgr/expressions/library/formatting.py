"""The function `'%s is %d'.format([a, b])`: parses formats, and formats values.

Guarantees: clauses and errors are the same as in cel-go's strings library, version 2, as in Kubernetes. The clauses
`%f` and `%e` format numbers in English (`1,234.50`, `1.2 × 10⁰³`). The clause `%s` formats values in lists and maps as
CEL literals. The result cannot be much longer than the format and its arguments, regardless of precisions and clauses.

Source: cel-go `ext/formatting.go`, golang.org/x/text `message`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.expressions.library.float_format import write_double, write_fixed, write_scientific
from ctrlmgr.expressions.time_values import write_duration, write_timestamp
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import MAPS, SEQUENCES, Duration, EvalError, Timestamp, UInt, type_of
from ctrlmgr.golang.go_text import quote
from ctrlmgr.work_budget import spend

_DEFAULT_PRECISION: Final = 6
_MOST_PRECISION: Final = 1000
_VERBS: Final = "sdfebxXo"
_WRITTEN: Final = 30
"""Formatting this number of characters counts as one step of work."""
_DIGITS: Final = b"0123456789"

WANTS: Final[Mapping[str, str]] = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps",
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
"""Raised by a clause if its argument has a wrong type."""


class Clause(NamedTuple):
    """One clause of a format, such as `%.2f`."""

    verb: str
    precision: int | None
    end: int
    """The position in the format after the clause, in bytes."""


def format_text(text: str, arguments: Sequence[Any]) -> str:
    """Return a format in which each clause is replaced by its argument.

    Raises `EvalError` if the format or an argument is invalid.
    """

    def write(clause: Clause, at: int) -> str:
        if at >= len(arguments):
            raise EvalError(f"index {at} out of range")
        written = _WRITERS[clause.verb](arguments[at], clause.precision)
        spend(1 + len(written) // _WRITTEN)
        return written

    return interpolated(text, len(arguments), write, counts_first=True)


def interpolated(text: str, count: int, write: Callable[[Clause, int], str], *, counts_first: bool) -> str:
    """Return a format in which each clause is replaced by the result of `write` for the clause's index.

    Raises `EvalError` if the format is invalid. The argument `count` is the number of arguments. If `counts_first` is
    true, a missing argument is detected before an error in the clause.
    """
    data, pieces, at, index = text.encode("utf-8", "surrogatepass"), [], 0, 0
    while (sign := data.find(b"%", at)) >= 0:
        pieces.append(data[at:sign])
        if data[sign + 1 : sign + 2] == b"%":
            pieces.append(b"%")
            at = sign + 2
            continue
        if counts_first and index >= count:
            raise EvalError(f"index {index} out of range")
        clause = _clause(data, sign + 1)
        if index >= count:
            raise EvalError(f"index {index} out of range")
        pieces.append(_written(clause, index, write).encode("utf-8", "surrogatepass"))
        at, index = clause.end, index + 1
    return b"".join((*pieces, data[at:])).decode("utf-8", "surrogatepass")


def _written(clause: Clause, index: int, write: Callable[[Clause, int], str]) -> str:
    if clause.verb not in _VERBS:
        raise EvalError(f'could not parse formatting clause: unrecognized formatting clause "{clause.verb}"')
    try:
        return write(clause, index)
    except EvalError as error:
        raise EvalError(f"error during formatting: {error}") from error


def _clause(data: bytes, at: int) -> Clause:
    """Parse the clause that follows a percent sign in a format."""
    if at >= len(data):
        raise EvalError("unexpected end of string")
    precision = None
    if data[at] == ord("."):
        begin = at = at + 1
        while at < len(data) and data[at] in _DIGITS:
            at += 1
        precision = _precision(data[begin:at].decode(), is_whole=at < len(data))
    return Clause(chr(data[at]), precision, at + 1)


def _precision(digits: str, *, is_whole: bool) -> int:
    problem = ""
    if not is_whole:
        problem = "could not find end of precision specifier"
    elif not digits:
        problem = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
    elif len(digits) > 5 or int(digits) > _MOST_PRECISION:
        problem = f"precision {digits[:20]} is too large"
    if problem:
        raise EvalError(f"could not parse formatting clause: error while parsing precision: {problem}")
    return int(digits)


def _refuse(verb: str, value: Any) -> EvalError:
    return EvalError(f"{WANTS[verb]}, was given {type_of(value).name}")


def _string(value: Any, precision: int | None) -> str:
    if type(value) in SEQUENCES:
        return f"[{', '.join(map(_literal, value))}]"
    if type(value) in MAPS:
        entries = sorted((_key(key), _literal(each)) for key, each in value.items())
        return "{" + ", ".join(f"{key}:{each}" for key, each in entries) + "}"
    simple = _simple(value)
    if simple is None:
        raise _refuse("s", value)
    return simple


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
        return write_double(value)
    if kind is Timestamp:
        return write_timestamp(value)
    if kind is Duration:
        return write_duration(value)
    return value.name if kind is Type else None


def _literal(value: Any) -> str:
    """Format a value that is contained in a list or a map."""
    kind = type(value)
    if kind is float:
        return f"{value:.{_DEFAULT_PRECISION}f}" if math.isfinite(value) else f'"{write_double(value)}"'
    if kind in SEQUENCES or kind is dict:
        return _string(value, None)
    simple = _simple(value)
    if simple is None:
        raise EvalError(f"no formatting function for {type_of(value).name}")
    if kind in _QUOTED:
        return _QUOTED[kind].format(quote(simple))
    return simple


_QUOTED: Final[Mapping[type, str]] = {str: "{}", bytes: "b{}", Timestamp: "timestamp({})", Duration: "duration({})"}


def _key(key: Any) -> str:
    if type(key) not in (str, bool, int, UInt):
        raise EvalError(f"no formatting function for map key of type {type_of(key).name}")
    return _literal(key)


def _decimal(value: Any, precision: int | None) -> str:
    if type(value) not in (int, UInt):
        raise _refuse("d", value)
    return str(int(value))


_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The strings for infinities and NaN."""
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_TIMES_TEN: Final = "\u202f\u00d7\u202f10"


def _number(verb: str, value: Any) -> float:
    if type(value) is float:
        return float(value) or 0.0  # this turns negative zero into zero
    if type(value) is str and value in _NUMBERS:
        return _NUMBERS[value]
    raise _refuse(verb, value)


def _special(number: float) -> str:
    """Format infinities and NaN; return an empty string for a finite number."""
    if math.isfinite(number):
        return ""
    return "NaN" if math.isnan(number) else "∞" if number > 0 else "-∞"


def _fixed(value: Any, precision: int | None) -> str:
    number = _number("f", value)
    if special := _special(number):
        return special
    digits = write_fixed(abs(number), _DEFAULT_PRECISION if precision is None else precision)
    whole, point, fraction = digits.partition(".")
    return f"{'-' if number < 0 else ''}{int(whole):,}{point}{fraction}"


def _scientific(value: Any, precision: int | None) -> str:
    """Format a number with the default number of decimals; cel-go wrongly uses the given precision as the width."""
    number = _number("e", value)
    written = _special(number)
    if not written:
        digits, _, exponent = write_scientific(number, _DEFAULT_PRECISION).partition("e")
        written = digits + _TIMES_TEN + exponent.removeprefix("+").translate(_SUPERSCRIPTS)
    return written.rjust(_DEFAULT_PRECISION if precision is None else precision)


def _binary(value: Any, precision: int | None) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in (int, UInt):
        return format(int(value), "b")
    raise _refuse("b", value)


def _octal(value: Any, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return format(int(value), "o")
    raise _refuse("o", value)


def _hexadecimal(value: Any, precision: int | None) -> str:
    if type(value) in (int, UInt):
        return format(int(value), "x")
    if type(value) is str:
        return str(value).encode().hex()
    if type(value) is bytes:
        return bytes(value).hex()
    raise _refuse("x", value)


_WRITERS: Final[Mapping[str, Callable[[Any, int | None], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}
