"""Marks the entries of a recording that tell of the time before it: a replay takes this past as given.

Guarantees: entries keep their order, and each is yielded once it is known whether it tells of the past. An error of the
recording is raised after everything above it.

How the past is told, as a line does not say it:
- A line with a time adds an object of the past if the object was created in a second before that of the first time.
- Lines without a time that come before the first one with a time add objects of the past: so logs are exported.
- Resources are listed one after the other, so changes of one can stand above the objects of another. The past is one
  state, that after its last object: whatever stands above belongs to it.
- A recording without any times does not tell; nothing of it is taken for the past.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, Entry
from ctrlmgr.recording.playing.timetable import SECOND, created_at

_WITHOUT: Final = 1_000
"""The past has ended before so many entries in a row that add nothing to it."""


class Placed(NamedTuple):
    """An entry, and whether it tells of the past."""

    entry: Entry
    is_past: bool = False


def placed(entries: Iterable[Entry]) -> Iterator[Placed]:
    """Yield entries, each with whether it tells of the past; raises `RecordingError` as `entries` does."""
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
    yield from (Placed(each) for each in waiting)
    if fault is not None:
        raise fault
    yield from (Placed(each) for each in source)


def _past(waiting: deque[Entry]) -> Iterator[Placed]:
    while waiting:
        yield Placed(waiting.popleft(), is_past=True)


def _adds_past(change: Change, began: int) -> bool:
    if not began or change.type is not EventType.ADDED:
        return False
    return 0 < created_at(change.object) < began - began % SECOND
