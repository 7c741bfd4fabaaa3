"""The header lines of a request, with a cache of values that were parsed from the lines.

Guarantees: each parser runs once per list of lines, even if many requests of a connection share the list. The cache is
freed with the list, which must not change after the first parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

HeaderLine: TypeAlias = tuple[bytes, bytes]
"""A header's name, in lower case, and its value."""

T = TypeVar("T")


def by_name(lines: Sequence[HeaderLine]) -> dict[bytes, bytes]:
    """Return each header's value; the first of several lines with the same name counts, as in Go."""
    return dict(reversed(lines))


class HeaderLines(list[HeaderLine]):
    """Headers in their order on the wire.

    A connection passes the same object to all requests that have equal header lines.
    """

    __slots__ = ("_read",)

    def __init__(self, lines: Iterable[HeaderLine] = ()) -> None:
        """Hold `lines`."""
        super().__init__(lines)
        self._read: dict[Callable[[Sequence[HeaderLine]], Any], Any] = {}

    def read(self, reader: Callable[[Sequence[HeaderLine]], T]) -> T:
        """Return the result of `reader` for the lines; `reader` is called once, unless it raises."""
        read = self._read
        if reader in read:
            return read[reader]  # type: ignore[no-any-return]  # what this reader has returned before
        made = read[reader] = reader(self)
        return made
