"""Ranges of costs and sizes: unsigned 64-bit numbers, with saturating arithmetic.

Source: cel-go `checker/cost.go` (`SizeEstimate`, `CostEstimate`).
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

LARGEST: Final = (1 << 64) - 1


class Range(NamedTuple):
    """The minimum and the maximum of a cost or a size; both are equal if the cost or size is exact."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        """Return the sum of two ranges of costs or sizes."""
        return Range(min(self.least + other.least, LARGEST), min(self.most + other.most, LARGEST))

    def times(self, other: Range) -> Range:
        """Return the product of two ranges of costs or sizes."""
        return Range(min(self.least * other.least, LARGEST), min(self.most * other.most, LARGEST))

    def scaled(self, factor: float) -> Range:
        """Return the product of the range and a factor; minimum and maximum are rounded up."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        """Return the smallest range that contains two ranges."""
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    value = float(number)
    if value > 0 and factor > 0 and value > LARGEST / factor:
        return LARGEST
    return min(ceil(value * factor), LARGEST)


def fixed(number: int) -> Range:
    """Return the range that consists of one exact number."""
    return Range(number, number)


FREE: Final = fixed(0)
ONE: Final = fixed(1)
UNKNOWN: Final = Range(0, LARGEST)
EMPTY: Final = Range(LARGEST, 0)
"""The range that is the initial value for a union of ranges."""
