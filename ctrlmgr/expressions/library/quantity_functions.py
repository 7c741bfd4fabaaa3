"""Functions of resource quantities and semantic versions.

Source: apiserver `pkg/cel/library/{quantity,semverlib}.go`, blang/semver `semver.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from ctrlmgr.api import quantity
from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.types import Type, opaque
from ctrlmgr.expressions.values import LEAST_INT, MOST_INT, EvalError

AMOUNTS: Final = Library()
_function = AMOUNTS.function


@dataclass(frozen=True, slots=True)
class Quantity:
    """A resource quantity; its amount is in billionths."""

    amount: int

    cel_type: ClassVar[Type] = opaque("kubernetes.Quantity")

    @property
    def whole(self) -> int | None:
        """Return the quantity as an int; None if it is not a 64-bit integer."""
        whole, rest = divmod(self.amount, quantity.WHOLE)
        return whole if not rest and LEAST_INT <= whole <= MOST_INT else None


@_function("quantity", "(string) -> kubernetes.Quantity")
def _quantity(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text))
    except ValueError as error:
        raise EvalError(str(error)) from error


@_function("isQuantity", "(string) -> bool")
def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


@_function("isInteger", "kubernetes.Quantity.() -> bool")
def _is_integer(of: Quantity) -> bool:
    return of.whole is not None


@_function("asInteger", "kubernetes.Quantity.() -> int")
def _as_integer(of: Quantity) -> int:
    if of.whole is None:
        raise EvalError("cannot convert value to integer")
    return of.whole


@_function("asApproximateFloat", "kubernetes.Quantity.() -> double")
def _as_float(of: Quantity) -> float:
    return of.amount / quantity.WHOLE


@_function("sign", "(kubernetes.Quantity) -> int")
def _sign(of: Quantity) -> int:
    return (of.amount > 0) - (of.amount < 0)


def _amount(of: Any) -> int:
    return of.amount if isinstance(of, Quantity) else int(of) * quantity.WHOLE


_WITH = (
    "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
    "kubernetes.Quantity.(int) -> kubernetes.Quantity",
)


@_function("add", *_WITH)
def _add(of: Quantity, other: Any) -> Quantity:
    return Quantity(of.amount + _amount(other))


@_function("sub", *_WITH)
def _sub(of: Quantity, other: Any) -> Quantity:
    return Quantity(of.amount - _amount(other))


@_function("isLessThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool")
def _is_less(of: Quantity, other: Quantity) -> bool:
    return of.amount < other.amount


@_function("isGreaterThan", "kubernetes.Quantity.(kubernetes.Quantity) -> bool")
def _is_greater(of: Quantity, other: Quantity) -> bool:
    return of.amount > other.amount


@_function("compareTo", "kubernetes.Quantity.(kubernetes.Quantity) -> int")
def _compare(of: Quantity, other: Quantity) -> int:
    return (of.amount > other.amount) - (of.amount < other.amount)


# Versions

_NUMBER = "(0|[1-9][0-9]*)"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?", re.ASCII
).fullmatch
_loose = re.compile(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(.*)", re.ASCII | re.DOTALL).fullmatch
_LONGEST_NUMBER: Final = 20


@dataclass(frozen=True, slots=True)
class Semver:
    """The CEL value of a semantic version."""

    numbers: tuple[int, int, int]
    before: tuple[str, ...]
    """The identifiers of the pre-release version."""
    build: str

    cel_type: ClassVar[Type] = opaque("kubernetes.Semver")

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key of the version, which does not contain the build metadata."""
        parts = tuple((0, int(each), "") if each.isdigit() else (1, 0, each) for each in self.before)
        return (self.numbers, not self.before, parts)


def read_semver(text: str, *, normalize: bool = False) -> Semver:
    """Parse a semantic version; raises `EvalError` if the string is not a version.

    If `normalize` is true, shorter forms such as `v1.2` are accepted, too.
    """
    match = _version(_normalized(text) if normalize else text)
    if match is None or any(len(match[at]) > _LONGEST_NUMBER for at in (1, 2, 3)):
        raise EvalError(f"invalid semver: {text[:200]}")
    before = tuple((match[4] or "").split(".")) if match[4] else ()
    if any(each.isdigit() and each != "0" and each.startswith("0") for each in before):
        raise EvalError(f"Numeric PreRelease version must not contain leading zeroes {text[:200]!r}")
    return Semver((int(match[1]), int(match[2]), int(match[3])), before, match[5] or "")


def _normalized(text: str) -> str:
    """Remove a leading `v` and leading zeros, and add missing numbers up to three."""
    match = _loose(text)
    if match is None:
        return text
    numbers = ((match[at] or "0").lstrip("0") or "0" for at in (1, 2, 3))
    return ".".join(numbers) + match[4]


@_function("semver", "(string) -> kubernetes.Semver", "(string, bool) -> kubernetes.Semver")
def _semver(text: str, normalize: bool = False) -> Semver:
    return read_semver(text, normalize=normalize)


@_function("isSemver", "(string) -> bool", "(string, bool) -> bool")
def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        read_semver(text, normalize=normalize)
    except EvalError:
        return False
    return True


@_function("major", "kubernetes.Semver.() -> int")
def _major(of: Semver) -> int:
    return of.numbers[0]


@_function("minor", "kubernetes.Semver.() -> int")
def _minor(of: Semver) -> int:
    return of.numbers[1]


@_function("patch", "kubernetes.Semver.() -> int")
def _patch(of: Semver) -> int:
    return of.numbers[2]


@_function("isLessThan", "kubernetes.Semver.(kubernetes.Semver) -> bool")
def _is_earlier(of: Semver, other: Semver) -> bool:
    return bool(of.order < other.order)


@_function("isGreaterThan", "kubernetes.Semver.(kubernetes.Semver) -> bool")
def _is_later(of: Semver, other: Semver) -> bool:
    return bool(of.order > other.order)


@_function("compareTo", "kubernetes.Semver.(kubernetes.Semver) -> int")
def _compare_versions(of: Semver, other: Semver) -> int:
    return (of.order > other.order) - (of.order < other.order)
