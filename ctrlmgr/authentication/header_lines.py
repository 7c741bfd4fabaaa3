"""The header lines of a request, and what has been read from them.

Guarantees: what one reader makes of lines is made once, however many requests of a connection have the same ones; it
lives no longer than the lines themselves, which must not change once something has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

HeaderLine: TypeAlias = tuple[bytes, bytes]
"""A header's name, in lower case, and its value."""

T = TypeVar("T")


def by_name(lines: Sequence[HeaderLine]) -> dict[bytes, bytes]:
    """Return each header's value; of several lines of a name the first counts, as in Go."""
    return dict(reversed(lines))


class HeaderLines(list[HeaderLine]):
    """Headers in the order in which they came; a connection hands on the same lines for each request that has them."""

    __slots__ = ("_read",)

    def __init__(self, lines: Iterable[HeaderLine] = ()) -> None:
        """Begin with `lines`."""
        super().__init__(lines)
        self._read: dict[Callable[[Sequence[HeaderLine]], Any], Any] = {}

    def read(self, reader: Callable[[Sequence[HeaderLine]], T]) -> T:
        """Return what `reader` makes of the lines; it is asked once, unless it raises."""
        read = self._read
        if reader in read:
            return read[reader]  # type: ignore[no-any-return]  # what this reader has returned before
        made = read[reader] = reader(self)
        return made
