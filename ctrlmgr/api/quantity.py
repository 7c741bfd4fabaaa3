"""Parses and formats resource quantities such as `100m`, `1.5Gi` and `2e3`.

Guarantees:
- An amount is an int, which counts billionths exactly. As in Kubernetes, fractions of a billionth are rounded away from
  zero. An amount in binary notation above 2^63-1 becomes 2^63-1.
- `canonical` formats an amount as Kubernetes stores it: in the notation in which the amount was written, and with the
  largest suffix for which the number before the suffix is an integer. As in Kubernetes, some strings, such as `1.500`,
  are not changed although they are not canonical.
- The cost of parsing does not depend on the size of the exponent, so a malicious client cannot make parsing slow.

Rules come from apimachinery's `pkg/api/resource/quantity.go` and `suffix.go`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlmgr.caches.memoized import memoized

WHOLE = 10**9
"""The amount 1 in billionths."""
MILLI = 10**6
"""The amount 0.001 in billionths."""

_LONGEST = 32  # the maximum length of a memoized amount, in characters
_LARGEST = (2**63 - 1) * WHOLE
_FARTHEST = 64  # with a larger exponent, an amount exceeds the maximum or is rounded to one billionth
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF = {exponent: suffix for suffix, exponent in DECIMAL.items()}
# Kubernetes' description of the format of quantities, used in errors
_FORMAT = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_NUMBER = r"([+-]?)([0-9]*)(?:\.([0-9]*))?"  # all parts are optional, so `Ki` is 0
PATTERN = re.compile(_NUMBER + r"([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)", re.ASCII)
_SPLIT = re.compile(_NUMBER + r"[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_FINEST = -9
"""The smallest allowed exponent of a quantity without digits; with a smaller exponent, such a quantity is invalid."""


def parse(text: str) -> int:
    """Return an amount in billionths; raises `ValueError` if `text` is not a quantity."""
    return _read(text)[0]


@memoized(entries=4096, longest=_LONGEST)
def canonical(text: str) -> str:
    """Return an amount in Kubernetes' format: `0.5` is `500m`, `1024Mi` is `1Gi`.

    Raises `ValueError` if `text` is not a quantity.
    """
    amount, suffix = _read(text)
    return text if keeps_text(text) else _write(amount, suffix)


def rounded_up(text: str, unit: int) -> str:
    """Round an amount up to a multiple of `unit` billionths, and return it in the notation of `text`.

    If the amount is already a multiple of `unit`, `text` itself is returned.
    """
    amount, suffix = _read(text)
    return _write(-(-amount // unit) * unit, suffix) if amount % unit else text


def total(amounts: list[str]) -> str:
    """Return the sum of amounts in the notation of the first amount, as `Quantity.Add` does.

    Returns `0` if there are no amounts.
    """
    suffix = _read(amounts[0])[1] if amounts else ""
    return _write(sum(parse(each) for each in amounts), suffix)


class Quantity(NamedTuple):
    """A parsed amount; sums that are updated often have this type."""

    amount: int
    """The amount of the quantity in billionths."""
    suffix: str
    """The suffix of the parsed text, or another suffix of the same notation."""
    text: str

    @classmethod
    def read(cls, text: str) -> Quantity:
        """Parse an amount; raises `ValueError` if the string is not a quantity."""
        return cls(*_read(text), text)

    def plus(self, more: Quantity) -> Quantity:
        """Return the sum, in the notation of the first nonzero amount."""
        if not self.amount:
            return Quantity.read(canonical(more.text))
        amount = self.amount + more.amount
        text = _write(amount, self.suffix)
        if not text.endswith(self.suffix) or amount > _LARGEST:
            return Quantity.read(text)
        return Quantity(amount, self.suffix, text)


def plus(amount: str, more: str) -> str:
    """Return the sum of two amounts, in the notation of the first nonzero amount."""
    return Quantity.read(amount).plus(Quantity.read(more)).text


def difference(amount: str, less: str) -> str:
    """Return the difference of two amounts, in the notation of the first amount."""
    of, suffix = _read(amount)
    return _write(of - parse(less), suffix)


@memoized(entries=4096, longest=_LONGEST)  # memoized, because clusters use the same few amounts repeatedly
def _read(text: str) -> tuple[int, str]:
    """Return an amount in billionths, and the suffix of the amount's string."""
    match = PATTERN.fullmatch(text) if text else None
    if match is None:
        if text and _SPLIT.fullmatch(text):
            raise ValueError("unable to parse quantity's suffix")
        raise ValueError(f"quantities must match the regular expression '{_FORMAT}'")
    sign, whole, fraction, suffix = match.groups()
    if not (whole or fraction or suffix in BINARY) and exponent_of(suffix) < _FINEST:
        raise ValueError("unable to parse numeric part of quantity")
    amount = _scaled(int(whole + (fraction or "") or "0"), -len(fraction or ""), suffix)
    return (-amount if sign == "-" else amount), suffix


def keeps_text(text: str) -> bool:
    """Return whether Kubernetes stores a valid amount unchanged (the end of the fast path in `ParseQuantity`)."""
    match = PATTERN.fullmatch(text)
    assert match is not None  # the text is valid
    _, whole, fraction, suffix = match.groups()
    whole, fraction = whole.lstrip("0"), fraction or ""
    if suffix in BINARY:
        room = 14 - len(whole or "0") - BINARY[suffix] * 3 // 10
        return bool(whole) and not fraction and room >= 0 and int(whole) % 8 != 0
    places = exponent_of(suffix) - len(fraction)
    digits = whole + fraction
    room = 18 - len(digits)
    return bool(whole) and room >= 0 and places >= -9 and places % 3 == 0 and not digits.endswith("000")


def exponent_of(suffix: str) -> int:
    """Return the power of ten of a decimal suffix: `m` is -3, `e5` is 5."""
    return DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])


def _scaled(digits: int, exponent: int, suffix: str) -> int:
    bits = BINARY.get(suffix, 0)
    if not bits:
        exponent += exponent_of(suffix)
    places = exponent + 9
    if not digits:
        return 0
    if places >= 0:
        amount = (digits << bits) * _ten_to(min(places, _FARTHEST))
    else:
        amount = -(-(digits << bits) // _ten_to(min(-places, _FARTHEST + digits.bit_length())))
    return min(amount, _LARGEST) if bits else amount


def _ten_to(places: int) -> int:
    return int(10**places)


def _write(amount: int, suffix: str) -> str:
    if not amount:
        return "0"
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    if suffix in BINARY and amount >= 1024 * WHOLE and not amount % WHOLE:
        return sign + _in_1024s(amount // WHOLE)
    exponent = -9
    while not amount % 1000 and exponent < 18:
        amount //= 1000
        exponent += 3
    if suffix in DECIMAL or suffix in BINARY:
        return f"{sign}{amount}{_SUFFIX_OF[exponent]}"
    return f"{sign}{amount}e{exponent}" if exponent else f"{sign}{amount}"


def _in_1024s(number: int) -> str:
    suffix = ""
    for each in BINARY:
        if number % 1024:
            break
        number //= 1024
        suffix = each
    return f"{number}{suffix}"
