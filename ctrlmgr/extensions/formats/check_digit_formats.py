"""Formats of numbers with check digits: `isbn`, `isbn10`, `isbn13`, `creditcard`."""

from __future__ import annotations

import re

_separators = re.compile(r"[\s-]+", re.ASCII)
_others = re.compile("[^0-9]+")
_isbn10 = re.compile("[0-9]{9}X|[0-9]{10}")
_isbn13 = re.compile("[0-9]{13}")
_credit_card = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def is_isbn(text: str) -> bool:
    """Return whether a string is an ISBN of either length."""
    return is_isbn10(text) or is_isbn13(text)


def is_isbn10(text: str) -> bool:
    """Return whether a string is an ISBN of ten digits, the last of which may be X."""
    digits = _separators.sub("", text)
    if not _isbn10.fullmatch(digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(weight * value for weight, value in enumerate(values, 1)) % 11 == 0


def is_isbn13(text: str) -> bool:
    """Return whether a string is an ISBN of thirteen digits."""
    digits = _separators.sub("", text)
    if not _isbn13.fullmatch(digits):
        return False
    return sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0


def is_credit_card(text: str) -> bool:
    """Return whether a string is a credit card number of a known issuer with a valid Luhn check digit."""
    digits = _others.sub("", text)
    if not _credit_card.fullmatch(digits):
        return False
    doubled = (int(digit) * (2 if at % 2 else 1) for at, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
