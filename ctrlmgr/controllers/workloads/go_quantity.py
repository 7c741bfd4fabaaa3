"""Computes the internal fields of Go's `resource.Quantity`, because the hash of a template depends on all of them.

Guarantees: `read` returns the fields that `ParseQuantity` of Kubernetes 1.36 sets (apimachinery's
`pkg/api/resource/quantity.go`). The fields of a Go quantity determine three properties: the type of the amount (int64
or a decimal of any size), whether its string is kept, and its format. Kubernetes' clients parse amounts from JSON and
from protobuf with `ParseQuantity`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.api.quantity import BINARY, DECIMAL, PATTERN, exponent_of, keeps_text

_FINEST: Final = 9
"""The maximum number of decimal places in Go."""
_LARGEST: Final = 2**63 - 1
_WORD: Final = 2**64
"""The base of the digits in Go's type `big.Int`."""


class Decimal(NamedTuple):
    """Go's `inf.Dec`: the number `unscaled` / 10^`scale`."""

    unscaled: int
    scale: int


class GoQuantity(NamedTuple):
    """The fields of Go's `resource.Quantity`.

    The amount is `decimal`; if `decimal` is None, the amount is `value` * 10^`scale`.
    """

    value: int = 0
    scale: int = 0
    decimal: Decimal | None = None
    text: str = ""
    """The string of the quantity, which Go keeps if the string is canonical."""
    format: str = ""

    def __str__(self) -> str:
        """Format the quantity in the same way as go-spew's `%#v`."""
        return (
            f"{{i:(resource.int64Amount){{value:(int64){self.value} scale:(resource.Scale){self.scale}}} "
            f"d:(resource.infDecAmount){{Dec:(*inf.Dec){_printed(self.decimal)}}} "
            f"s:(string){self.text} Format:(resource.Format){self.format}}}"
        )


def read(text: str) -> GoQuantity:
    """Parse an amount in the same way as Go; raises `ValueError` if the string is invalid."""
    if text == "0":
        return GoQuantity(text=text, format="DecimalSI")
    match = PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, whole, fraction, suffix = match.groups()
    whole, fraction, factor = whole.lstrip("0"), fraction or "", -1 if sign == "-" else 1
    format_ = "BinarySI" if suffix in BINARY else "DecimalSI" if suffix in DECIMAL else "DecimalExponent"
    quick = _quick(whole or "0", fraction, suffix)
    if quick is not None:
        return GoQuantity(quick[0] * factor, quick[1], None, text if keeps_text(text) else "", format_)
    unscaled, scale = _decimal(whole, fraction, suffix)
    if suffix in BINARY and unscaled < 10**scale:
        format_ = "DecimalSI"  # below 1
    return GoQuantity(decimal=Decimal(unscaled * factor, scale), format=format_)


def _quick(whole: str, fraction: str, suffix: str) -> tuple[int, int] | None:
    """Return the amount and the power of ten of a quantity that Go stores as int64; None for any other quantity."""
    if suffix in BINARY:
        factor, scale = 1 << BINARY[suffix], 0
        room = -1 if fraction else 15 - len(whole) - BINARY[suffix] * 3 // 10 - 1
    else:
        factor, scale = 1, exponent_of(suffix)
        room = 18 - len(whole) - len(fraction)
    scale -= len(fraction)
    amount = int(whole + fraction) * factor
    return (amount, scale) if room >= 0 and scale >= -_FINEST and amount <= _LARGEST else None


def _decimal(whole: str, fraction: str, suffix: str) -> Decimal:
    """Return an amount of any size without its sign, rounded up to billionths.

    An amount with a binary suffix is limited to 2^63-1.
    """
    unscaled, scale = int(whole + fraction or "0"), len(fraction)
    if suffix in BINARY:
        unscaled <<= BINARY[suffix]
    else:
        scale -= exponent_of(suffix)
    rounded = rounded_up(Decimal(unscaled, scale), _FINEST)
    if suffix in BINARY and rounded.unscaled > _LARGEST * 10**_FINEST:
        return Decimal(_LARGEST, 0)
    return rounded


def rounded_up(amount: Decimal, scale: int) -> Decimal:
    """Return an amount rounded to `scale` decimal places, away from 0 (`inf.Dec.Round` with `RoundUp`)."""
    if not amount.unscaled:
        return amount
    if scale >= amount.scale:
        return Decimal(amount.unscaled * 10 ** (scale - amount.scale), scale)
    unscaled = -(-abs(amount.unscaled) // 10 ** (amount.scale - scale))
    return Decimal(-unscaled if amount.unscaled < 0 else unscaled, scale)


def _printed(decimal: Decimal | None) -> str:
    if decimal is None:
        return "<nil>"
    words, rest = [], abs(decimal.unscaled)
    while rest:
        rest, word = divmod(rest, _WORD)
        words.append(str(word))
    digits = f"[{' '.join(words)}]" if words else "<nil>"
    negative = "true" if decimal.unscaled < 0 else "false"
    number = f"{{neg:(bool){negative} abs:(big.nat){digits}}}"
    return f"{{unscaled:(big.Int){number} scale:(inf.Scale){decimal.scale}}}"
