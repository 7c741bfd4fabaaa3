"""Marks the entries of a recording that describe the state before the recording began: the past.

Guarantees: entries keep their order. Each entry is yielded when the module knows whether the entry belongs to the past.
An error in the recording is raised after all entries before it.

Recorded lines do not say whether they belong to the past, so these rules decide:
- A line with a time adds an object of the past if the object was created in a second before the first line's time.
- Lines without a time before the first line with a time add objects of the past, as in exported logs.
- Changes of one resource can precede the listed objects of another, because resources are listed one after the other.
  The past is the state after the last listed object, so all entries before that object belong to the past.
- A recording whose lines have no times has no past.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, Entry
from ctrlmgr.recording.playback.timetable import SECOND, created_at

_WITHOUT: Final = 1_000
"""The number of consecutive entries not of the past after which no further entry is of the past."""


class PlacedEntry(NamedTuple):
    """An entry of a recording, and whether the entry belongs to the past."""

    entry: Entry
    is_past: bool = False


def placed(entries: Iterable[Entry]) -> Iterator[PlacedEntry]:
    """Yield each entry and whether it belongs to the past; raises `RecordingError` if `entries` does."""
    source = iter(entries)
    waiting: deque[Entry] = deque()
    untimed = True
    began = 0
    fault: RecordingError | None = None
    try:
        for entry in source:
            if not isinstance(entry, Change):
                waiting.append(entry)
                break
            if untimed and (entry.recorded_at or entry.type is not EventType.ADDED):
                untimed, began = False, entry.recorded_at
                if began:
                    yield from _past(waiting)
            waiting.append(entry)
            if _adds_past(entry, began):
                yield from _past(waiting)
            if not untimed and len(waiting) > _WITHOUT:
                break
    except RecordingError as error:
        fault = error
    yield from (PlacedEntry(each) for each in waiting)
    if fault is not None:
        raise fault
    yield from (PlacedEntry(each) for each in source)


def _past(waiting: deque[Entry]) -> Iterator[PlacedEntry]:
    while waiting:
        yield PlacedEntry(waiting.popleft(), is_past=True)


def _adds_past(change: Change, began: int) -> bool:
    if not began or change.type is not EventType.ADDED:
        return False
    return 0 < created_at(change.object) < began - began % SECOND
