"""Numbers in text, as Go reads them (`strconv.ParseInt` and `ParseUint` with base 10 and 64 bits) and writes them.

Guarantees: ASCII digits and nothing else but a sign, no matter how many; what is refused is refused in Go's words.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ctrlmgr.golang.go_text import quote

_signed = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_unsigned = re.compile(r"[0-9]+", re.ASCII).fullmatch
_LONGEST = 20
"""As many digits as 2**64 has: more are out of range without a look at them, as Python refuses to read thousands."""


_PRECISION = 6
"""The power of ten from which, and -4 below which, Go writes a float with an exponent."""


def write_float(number: float) -> str:
    """Write a finite float64 as Go's `%v` does: `1.5`, `100000`, `1e+06`, `1.2e-05`."""
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
    """Read an int64; raises `ValueError`."""
    if not _signed(text):
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    value = -_amount(text.lstrip("+-0")) if text[0] == "-" else _amount(text.lstrip("+0"))
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


def parse_uint(text: str) -> int:
    """Read an uint64; raises `ValueError`."""
    if not _unsigned(text):
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")
    value = _amount(text.lstrip("0"))
    if value >= 2**64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return value


def _amount(digits: str) -> int:
    """Return what digits that do not start with a zero amount to, 2**64 if they amount to more."""
    return int(digits or "0") if len(digits) <= _LONGEST else 2**64
