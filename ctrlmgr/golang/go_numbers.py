"""Parses and formats numbers as Go does (`strconv.ParseInt` and `ParseUint` with base 10 and 64 bits).

Guarantees: only ASCII digits and a sign are accepted; the number of digits is not limited. The error messages are Go's.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ctrlmgr.golang.go_text import quote

_signed = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_unsigned = re.compile(r"[0-9]+", re.ASCII).fullmatch
_LONGEST = 20
"""The number of digits of 2**64.

A number with more digits is out of range and is not parsed, because Python refuses to parse very long numbers.
"""


_PRECISION = 6
"""The power of ten from which on Go formats a float with an exponent; Go also uses an exponent below 10**-4."""


def write_float(number: float) -> str:
    """Format a finite float64 as Go's `%v` does: `1.5`, `100000`, `1e+06`, `1.2e-05`."""
    written = Decimal(repr(number))
    sign, digits, _ = written.normalize().as_tuple()
    exponent = written.adjusted() if number else 0
    minus = "-" if sign else ""
    if -4 <= exponent < _PRECISION:
        text = format(abs(written), "f")
        return minus + (text.rstrip("0").rstrip(".") if "." in text else text)
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    return f"{minus}{first}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def parse_int(text: str) -> int:
    """Parse an int64; raises `ValueError` with Go's message if the string is not an int64."""
    if not _signed(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    value = -_amount(text.lstrip("+-0")) if text[0] == "-" else _amount(text.lstrip("+0"))
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


def parse_uint(text: str) -> int:
    """Parse a uint64; raises `ValueError` with Go's message if the string is not a uint64."""
    if not _unsigned(text):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    value = _amount(text.lstrip("0"))
    if value >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return value


def _amount(digits: str) -> int:
    """Return the value of a string of digits; 2**64 if the value is out of range."""
    return int(digits or "0") if len(digits) <= _LONGEST else 2**64
