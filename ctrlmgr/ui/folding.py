"""Shortens long periods without events (pauses) on a time axis, so that the events fill most of the axis.

Guarantees: the order of events on the axis is their order in time. The width of a folded pause is the fraction `_DRAWN`
of the axis. A pause is folded only if it is longer than the fraction `_LONG` of the axis.
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
    """A pause that is drawn shortened; all times are in microseconds."""

    began: int
    ended: int
    width: int
    """The width of the folded pause on the axis, in microseconds."""


class Folded(NamedTuple):
    """A time axis with folded pauses, which are sorted by time."""

    folds: tuple[Fold, ...] = ()

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Folded:
        """Return the axis for events that occurred in these time spans."""
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
        """Return the point on the axis for the time of an event; both are in microseconds since 1970."""
        number = bisect_right([each.ended for each in self.folds], time)
        return time - sum(each.ended - each.began - each.width for each in self.folds[:number])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the folded pauses of the axis as plain JSON values.

        For each folded pause, the value contains the point on the axis at which the pause ends, its width, and the
        omitted time.
        """
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
    """Return the pauses between the spans, and the total length of all spans and pauses."""
    ordered = sorted(spans)
    if not ordered:
        return [], 0
    pauses, reached = [], ordered[0][1]
    for began, ended in ordered:
        if began > reached:
            pauses.append((reached, began))
        reached = max(reached, ended)
    return pauses, reached - ordered[0][0]
