"""Formats floating point numbers as Go's `strconv.FormatFloat` does, with the fewest unambiguous digits.

Guarantees: `write_double` implements Go's verb `g`, `write_fixed` implements `f`, and `write_scientific` implements
`e`.
"""

from __future__ import annotations

import math
from decimal import Decimal


def write_double(value: float) -> str:
    """Format a number with the fewest digits.

    The formatted number has an exponent if the number is at least 1e+06 or below 0.0001.
    """
    special = _special(value)
    if special:
        return special
    sign, digits, exponent = _shortest(value)
    if exponent < -4 or exponent >= 6:
        return sign + _with_exponent(digits, exponent)
    return sign + _plain(digits, exponent)


def write_fixed(value: float, precision: int) -> str:
    """Format a number with the given number of decimals."""
    return _special(value) or f"{value:.{precision}f}"


def write_scientific(value: float, precision: int) -> str:
    """Format a number with the given number of decimals, and with an exponent of at least two digits."""
    return _special(value) or f"{value:.{precision}e}"


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return ""


def _shortest(value: float) -> tuple[str, str, int]:
    """Return the sign, the digits, and the exponent of the first digit of a number."""
    number = Decimal(repr(value))
    sign = "-" if number.is_signed() else ""
    if not number:
        return sign, "0", 0
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # the exponent is an integer, because the number is finite
    text = "".join(map(str, digits))
    first = len(text) - 1 + exponent
    return sign, text.rstrip("0") or "0", first


def _with_exponent(digits: str, exponent: int) -> str:
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
