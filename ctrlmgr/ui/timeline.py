"""Returns a chart of events over time, for navigation in the log.

A chart has at most `_MOST_BARS` bars of equal width in revisions or time, each divided by author or resource. Each of
the `_SERIES` most frequent authors or resources is a series; all other authors or resources together are one series.
Long pauses without events on a time axis are folded. If a namespace was deleted and created again, users may be allowed
to see only the current namespace. For users that may see only the current namespace, blocks of events that began before
the creation of the current namespace are omitted.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any, NamedTuple

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.ui.density import Block, Counted, Density, Group, count
from ctrlmgr.ui.folding import Folded
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.visibility import PastVisibility

BY = ("actor", "resource")
AXES = ("revision", "time")

_MOST_BARS = 600
_SERIES = 8
_EXACT = 6000
"""Maximum number of revisions whose events are counted exactly instead of by block."""


class _Span(NamedTuple):
    """The range that the bars cover, in the units of the axis."""

    start: int
    width: float
    bars: int

    def place(self, value: float) -> int:
        return min(self.bars - 1, max(0, int((value - self.start) / self.width)))


class _Bars:
    """The bars of a chart, to which the counts of blocks are added."""

    def __init__(self, span: _Span, series: dict[str, int], by: int) -> None:
        self._span = span
        self._series = series
        self._by = by
        self._counts = [[0.0] * (len(series) + 1) for _ in range(span.bars)]
        self._revisions: list[tuple[Revision, Revision] | None] = [None] * span.bars
        self._times = [0] * span.bars

    def add(self, block: Block, first: float, last: float) -> None:
        """Distribute the events of a block over the bars from `first` to `last`, which are in the units of the axis."""
        low, high = self._span.place(first), self._span.place(last)
        share = 1 / (high - low + 1)
        for index in range(low, high + 1):
            for group, events in block.counts.items():
                self._counts[index][self._series.get(group[self._by], -1)] += events * share
            known = self._revisions[index]
            self._revisions[index] = (min(known[0], block.first), block.last) if known else (block.first, block.last)
            self._times[index] = self._times[index] or block.began

    def to_json(self) -> list[dict[str, Any]]:
        """Return the bars that contain events."""
        bars = enumerate(zip(self._revisions, self._times, self._counts, strict=True))
        return [
            {"index": index, "from": span[0], "to": span[1], "at": at, "counts": [round(each, 2) for each in counts]}
            for index, (span, at, counts) in bars
            if span is not None
        ]


class Timeline:
    """Reads charts of events from a log."""

    def __init__(self, reader: Reader, *, clock: Clock) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader
        self._clock = clock
        self._density = Density(clock=clock)

    def picture(self, parameters: Parameters) -> dict[str, Any]:
        """Return the chart for the parameters `bars`, `from`, `to`, `by` and `axis`."""
        bars = parameters.number("bars", 240, low=1, high=_MOST_BARS)
        by, axis = parameters.choice("by", BY), parameters.choice("axis", AXES)
        return self._reader.ask(lambda database: self._picture(database, parameters, bars, by, axis))

    def _picture(self, database: Database, parameters: Parameters, bars: int, by: str, axis: str) -> dict[str, Any]:
        head = self._reader.head(database)
        visibility = parameters.visibility.past(database)
        counted = _seen(self._density.counted(database, head), visibility)
        first = parameters.number("from", 1)
        last = max(first, min(parameters.number("to", head), head))
        index = Group._fields.index(by)
        names = _frequent(counted, index)
        blocks = _visible(_within(database, counted, first, last), visibility)
        folded = Folded.of([(block.began, block.ended) for block in blocks] if axis == "time" else [])
        span = _span(blocks, axis, first, last, bars, folded)
        drawn = _Bars(span, {name: place for place, name in enumerate(names)}, index)
        for block in blocks:
            ends = (folded.point(block.began), folded.point(block.ended)) if axis == "time" else block[:2]
            drawn.add(block, *ends)
        return {
            "head": head,
            "counted": counted.until,
            "from": first,
            "to": last,
            "start": span.start,
            "end": span.start + span.width * span.bars,
            "bars": span.bars,
            "series": names,
            "items": drawn.to_json(),
            "folds": folded.to_json(),
        }

    def moment(self, parameters: Parameters) -> dict[str, Any]:
        """Return the revision and the time to which `text` refers: a revision, a time, or an age."""
        text = parameters.text("text")

        def answer(database: Database) -> dict[str, Any]:
            revision = min(moment_parser.resolve(database, text, now=self._clock.now()), self._reader.head(database))
            return {"revision": revision, "recordedAt": moment_parser.recorded_at(database, revision)}

        return self._reader.ask(answer)


def _seen(counted: Counted, visibility: PastVisibility) -> Counted:
    """Return the counts of events that the user may see."""
    blocks = _visible(counted.blocks, visibility)
    if blocks is counted.blocks:
        return counted
    totals: Counter[Group] = Counter()
    for block in blocks:
        totals.update(block.counts)
    return counted._replace(blocks=blocks, totals=totals)


def _since(group: Group, visibility: PastVisibility) -> float:
    """Return the revision after which events of a group are visible to the user; infinity if no events are visible."""
    resource = Resource.parse(group.resource)
    if not visibility.now.lists(resource, group.namespace):
        return inf
    return visibility.hidden_until(resource, group.namespace)


def _visible(blocks: list[Block], visibility: PastVisibility) -> list[Block]:
    """Return the blocks without events that the user may not see.

    If the user may see all events, return the same list.
    """
    since = {group: _since(group, visibility) for group in {group for block in blocks for group in block.counts}}
    if not any(since.values()):
        return blocks
    left = [
        block._replace(counts={group: events for group, events in block.counts.items() if block.first > since[group]})
        for block in blocks
    ]
    return [block for block in left if block.counts]


def _frequent(counted: Counted, by: int) -> list[str]:
    """Return the names of the separate series, regardless of the shown range."""
    totals: Counter[str] = Counter()
    for group, events in counted.totals.items():
        totals[group[by]] += events
    return [name for name, _ in sorted(totals.items(), key=lambda each: (-each[1], each[0]))[:_SERIES]]


def _within(database: Database, counted: Counted, first: Revision, last: Revision) -> list[Block]:
    if last - first < _EXACT:
        return list(count(database, first - 1, last, 1))
    return [block for block in counted.blocks if block.last >= first and block.first <= last]


def _span(blocks: list[Block], axis: str, first: Revision, last: Revision, bars: int, folded: Folded) -> _Span:
    if axis == "revision":
        bars = min(bars, last - first + 1)
        return _Span(first, (last - first + 1) / bars, bars)
    start = min((block.began for block in blocks), default=0)
    end = folded.point(max((block.ended for block in blocks), default=0))
    return _Span(start, max(1, end - start + 1) / bars, bars)
