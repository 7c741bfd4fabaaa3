"""Determines when each event of a recording happened, and when the event is played.

Guarantees: events keep the recording's order, times never decrease, and a gap is played in at most the requested time.

The time of an event is the first of the following that exists:
- the `recordedAt` of the event's line;
- in a recording without `recordedAt`, the newest timestamp in the object (its creation time, or the time of a field
  manager). Timestamps in objects are whole seconds, so the events of one second are distributed evenly over the second.
  An event without any timestamp, which is usually a deletion, has the time of the previous event;
- if no object in the recording has a timestamp, each event happens one second after the previous event.
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
"""Microseconds per second; all times in this module are in microseconds."""


class Timetable(NamedTuple):
    """The times of all events; the first `opening` are the initial objects."""

    revisions: Sequence[Revision]
    times: Sequence[int]
    """The time of each event, in microseconds since 1970, ascending."""
    due: Sequence[int]
    """For each event, the microseconds from the beginning of playing at speed 1, with gaps shortened."""
    opening: int

    @classmethod
    def of(
        cls, revisions: Sequence[Revision], times: Sequence[int], opening: int, *, max_gap: int | None = None
    ) -> Timetable:
        """Return a timetable with gaps of at most `max_gap` microseconds."""
        due, at = [0] * min(opening, len(times)), 0
        for before, after in pairwise(times[max(opening - 1, 0) :]):
            gap = after - before
            at += gap if max_gap is None else min(gap, max_gap)
            due.append(at)
        return cls(revisions, times, due, opening)

    def __len__(self) -> int:
        """Return the number of events in the timetable."""
        return len(self.revisions)

    def upto_revision(self, revision: Revision) -> int:
        """Return the number of events up to a revision, at least the number of initial objects."""
        return max(bisect_right(self.revisions, revision, lo=self.opening), self.opening)

    def upto_time(self, moment: int) -> int:
        """Return the number of events up to a time, at least the number of initial objects."""
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
    """Return the number of initial objects with which the changes begin, which is at least one.

    An initial object is ADDED before the first change of another type. If lines have times, an object that was created
    after the first line was recorded is not an initial object, because it was added during the recording.
    """
    began = changes[0].recorded_at
    count = sum(1 for _ in takewhile(lambda change: is_opening(change, began), changes))
    return max(count, 1)


def is_opening(change: Change, began: int) -> bool:
    """Return whether a change is an initial object (see `opening_of`); all changes before it must be initial objects.

    `began` is the time at which the first line was recorded.
    """
    if change.type is not EventType.ADDED or bool(change.recorded_at) is not bool(began):
        return False
    return not began or created_at(change.object) < began - began % SECOND


def times_of(changes: Sequence[Change], opening: int) -> list[int]:
    """Return the time of each change; all initial objects have the time of the last initial object."""
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
    """Distribute the events of the same second evenly over that second."""
    for time, same in groupby(times):
        count = len(list(same))
        yield from (time + SECOND * number // count for number in range(count))


def created_at(obj: Object) -> int:
    """Return the time at which an object was created, in microseconds since 1970; 0 if it is not known."""
    return _read(obj.metadata.creation_timestamp)


def stated_at(obj: Object) -> int:
    """Return the newest timestamp in an object's metadata; 0 if it has no timestamp."""
    times = _decode_times(obj.body).metadata
    stated = [times.creation_timestamp, *(entry.time for entry in times.managed_fields or ())]
    return max(map(_read, stated))


def _read(text: str | None) -> int:
    try:
        return parse_time(text) if text else 0
    except ValueError:
        return 0  # an invalid time counts as unknown
