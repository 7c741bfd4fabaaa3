"""The header lines of a request, with a cache of values that were parsed from the lines.

Guarantees: each parser runs once per list of header lines, even if many requests of a connection share the list. The
cache is freed together with the list. The list must not change after the first parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

HeaderLine: TypeAlias = tuple[bytes, bytes]
"""A header's name, in lower case, and its value."""

T = TypeVar("T")


def by_name(lines: Sequence[HeaderLine]) -> dict[bytes, bytes]:
    """Return each header's value by the header's name.

    Of several lines with the same name, the first is used, as in Go.
    """
    return dict(reversed(lines))


class HeaderLines(list[HeaderLine]):
    """The header lines of a request in the order in which they were received.

    A connection passes the same list of header lines to all requests that have equal header lines.
    """

    __slots__ = ("_read",)

    def __init__(self, lines: Iterable[HeaderLine] = ()) -> None:
        """Store the header lines `lines` of a request, with an empty cache of values."""
        super().__init__(lines)
        self._read: dict[Callable[[Sequence[HeaderLine]], Any], Any] = {}

    def read(self, reader: Callable[[Sequence[HeaderLine]], T]) -> T:
        """Return the result of `reader` for the header lines; the result is cached, unless `reader` raises an error."""
        read = self._read
        if reader in read:
            return read[reader]  # type: ignore[no-any-return]  # what this reader has returned before
        made = read[reader] = reader(self)
        return made
