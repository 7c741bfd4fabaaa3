"""Prints aligned columns as kubectl does.

Guarantees: control characters in values are printed as escapes, so that values cannot control the terminal. A printed
line has no trailing spaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctrlmgr.logging import escape

_GAP = "   "


def lines(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """Yield the header and the rows of a table; each column is as wide as its longest cell."""
    cells = [[escape(cell(value)) for value in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def cell(value: Any) -> str:
    """Return a value as the string in a cell: an empty string for None, hexadecimal for bytes."""
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else str(value)
