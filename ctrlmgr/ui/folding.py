"""Folds long pauses of a log out of an axis of time, so that events before and after a pause are not only at its edges.

Guarantees: order is kept. A folded pause is `_DRAWN` of the axis wide. Only pauses that are longer than `_LONG` of the
axis are folded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

_LONG: Final = 0.3
_DRAWN: Final = 0.04
_MOST: Final = 20
"""Maximum number of folded pauses."""


class Fold(NamedTuple):
    """A folded pause; all times in microseconds."""

    began: int
    ended: int
    width: int
    """Its length on the axis."""


class Folded(NamedTuple):
    """An axis of time with folds, in order of time."""

    folds: tuple[Fold, ...] = ()

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Folded:
        """Return the axis for events in these spans of time."""
        pauses, length = _pauses(spans)
        chosen: list[tuple[int, int]] = []
        for began, ended in sorted(pauses, key=lambda each: each[0] - each[1])[:_MOST]:
            if ended - began <= _LONG * length:
                break
            chosen.append((began, ended))
            length -= ended - began
        width = max(1, round(_DRAWN * length))
        return cls(tuple(Fold(began, ended, width) for began, ended in sorted(chosen)))

    def point(self, time: int) -> int:
        """Return the point of the time of an event on the axis; both in microseconds since 1970."""
        number = bisect_right([each.ended for each in self.folds], time)
        return time - sum(each.ended - each.began - each.width for each in self.folds[:number])

    def told(self) -> list[dict[str, Any]]:
        """Return the folds as plain JSON values: the point at which each ends, its width, and the time left out."""
        return [
            {
                "at": self.point(each.ended),
                "width": each.width,
                "left": each.ended - each.began - each.width,
                "pause": each.ended - each.began,
            }
            for each in self.folds
        ]


def _pauses(spans: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """Return the times between spans, and the length of all."""
    ordered = sorted(spans)
    if not ordered:
        return [], 0
    pauses, reached = [], ordered[0][1]
    for began, ended in ordered:
        if began > reached:
            pauses.append((reached, began))
        reached = max(reached, ended)
    return pauses, reached - ordered[0][0]
