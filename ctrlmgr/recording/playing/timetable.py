"""When each event of a recording happened, and how far apart they are played.

Guarantees: times never go back; events keep the recording's order; a silence is played no longer than asked for.

Where times come from, of an event by an event:
- the line's `recordedAt`;
- of a recording without any: the newest of the object's own times (created, or changed by a field manager). They
  are whole seconds, so events of one second are spread over it. What has none (a deletion, mostly) happens with the
  event before it;
- of a recording whose objects say nothing either: a second apart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, takewhile
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import parse_time
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change

SECOND = 1_000_000
"""Microseconds, in which all times here are."""


class Timetable(NamedTuple):
    """What happened when; the first `opening` events were there when the recording began."""

    revisions: Sequence[Revision]
    times: Sequence[int]
    """Of each event, microseconds since 1970, none less than the one before it."""
    due: Sequence[int]
    """Of each event, microseconds of playing since the beginning at speed 1: the same but for silences cut short."""
    opening: int

    @classmethod
    def of(
        cls, revisions: Sequence[Revision], times: Sequence[int], opening: int, *, max_gap: int | None = None
    ) -> Timetable:
        """Make one in which no silence is played for longer than `max_gap` microseconds."""
        due, at = [0] * min(opening, len(times)), 0
        for before, after in pairwise(times[max(opening - 1, 0) :]):
            gap = after - before
            at += gap if max_gap is None else min(gap, max_gap)
            due.append(at)
        return cls(revisions, times, due, opening)

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.revisions)

    def upto_revision(self, revision: Revision) -> int:
        """Return how many events have happened at a revision; never fewer than there were at the beginning."""
        return max(bisect_right(self.revisions, revision, lo=self.opening), self.opening)

    def upto_time(self, moment: int) -> int:
        """Return how many events have happened at a moment; never fewer than there were at the beginning."""
        return max(bisect_right(self.times, moment, lo=self.opening), self.opening)


class _Managed(msgspec.Struct):
    time: str = ""


class _Times(msgspec.Struct, rename="camel"):
    creation_timestamp: str | None = None
    managed_fields: list[_Managed] | None = None


class _Timed(msgspec.Struct):
    metadata: _Times


_decode_times = msgspec.json.Decoder(_Timed).decode


def opening_of(changes: Sequence[Change]) -> int:
    """Return how many of the first changes tell what there was when the recording began: one at least.

    They are the objects ADDED before anything else happened. Of lines with times only those of objects that had been
    created before the first line was recorded: the others were added while the recording went on.
    """
    began = changes[0].recorded_at
    count = sum(1 for _ in takewhile(lambda change: is_opening(change, began), changes))
    return max(count, 1)


def is_opening(change: Change, began: int) -> bool:
    """Whether a change, if all before it do, tells what there was at the beginning; see `opening_of`.

    `began` is when the first line was recorded.
    """
    if change.type is not EventType.ADDED or bool(change.recorded_at) is not bool(began):
        return False
    return not began or created_at(change.object) < began - began % SECOND


def times_of(changes: Sequence[Change], opening: int) -> list[int]:
    """Return when each change happened; those of the opening all at once, when the last of them was told."""
    later = changes[opening:]
    if any(change.recorded_at for change in later) or changes[0].recorded_at:
        start = max(change.recorded_at for change in changes[:opening])
        start = start or next(change.recorded_at for change in later if change.recorded_at)
        return [start] * opening + list(_ascending(start, (change.recorded_at for change in later)))
    start = max(map(stated_at, (change.object for change in changes[:opening])))
    stated = [0 if change.type is EventType.DELETED else stated_at(change.object) for change in later]
    if not start and not any(stated):
        return [0] * opening + [(number + 1) * SECOND for number in range(len(later))]
    return [start] * opening + list(_spread(list(_ascending(start, stated))))


def _ascending(start: int, times: Iterator[int] | Sequence[int]) -> Iterator[int]:
    newest = start
    for time in times:
        newest = max(newest, time)
        yield newest


def _spread(times: Sequence[int]) -> Iterator[int]:
    """Spread events that share a second over it."""
    for time, same in groupby(times):
        count = len(list(same))
        yield from (time + SECOND * number // count for number in range(count))


def created_at(obj: Object) -> int:
    """Return when an object was created, microseconds since 1970; 0 if it does not say."""
    return _read(obj.metadata.creation_timestamp)


def stated_at(obj: Object) -> int:
    """Return the newest time that an object's metadata tells of, 0 if none."""
    times = _decode_times(obj.body).metadata
    stated = [times.creation_timestamp, *(entry.time for entry in times.managed_fields or ())]
    return max(map(_read, stated))


def _read(text: str | None) -> int:
    try:
        return parse_time(text) if text else 0
    except ValueError:
        return 0  # another clock is none of a player's business
