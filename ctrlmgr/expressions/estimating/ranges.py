"""From the least to the most: of a cost, or of a size, as unsigned numbers of 64 bits that stay at the largest.

Source: cel-go `checker/cost.go` (`SizeEstimate`, `CostEstimate`).
"""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

LARGEST: Final = (1 << 64) - 1


class Range(NamedTuple):
    """Two numbers; what is known to be one number is that number twice."""

    least: int
    most: int

    def plus(self, other: Range) -> Range:
        """Return the sum."""
        return Range(min(self.least + other.least, LARGEST), min(self.most + other.most, LARGEST))

    def times(self, other: Range) -> Range:
        """Return the product."""
        return Range(min(self.least * other.least, LARGEST), min(self.most * other.most, LARGEST))

    def scaled(self, factor: float) -> Range:
        """Return the product with a price, each end rounded up."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def union(self, other: Range) -> Range:
        """Return the range that holds both."""
        return Range(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    value = float(number)
    if value > 0 and factor > 0 and value > LARGEST / factor:
        return LARGEST
    return min(ceil(value * factor), LARGEST)


def fixed(number: int) -> Range:
    """Return the range of what is known."""
    return Range(number, number)


FREE: Final = fixed(0)
ONE: Final = fixed(1)
UNKNOWN: Final = Range(0, LARGEST)
EMPTY: Final = Range(LARGEST, 0)
"""What a union begins with."""
