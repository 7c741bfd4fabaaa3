"""Imports a recording into a log, at the recorded revisions.

Guarantees:
- The log contains the recording's objects byte for byte, in order, at their recorded revisions. If a log begins with a
  recording, a read of an earlier revision raises `Expired`.
- The import holds one line at a time in memory, and the current state of the recorded objects. Only the initial objects
  are collected before they are imported, because they may be in the order of a list.
- Changes that the log already contains are skipped, so an interrupted import can be continued. A recording that begins
  where the log ends, such as a later file of a rotated recording, continues the log. A recording that neither equals
  the log's beginning nor continues the log is refused.
- The author of a change is determined from managedFields; if the author is not certain, the name `recording` is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import Author, Event, EventLog, EventType, Imported
from ctrlmgr.recording.attribution import Managed, writer_of
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.recording.playback.timetable import is_opening, stated_at

UNKNOWN = Author("recording")
"""The author that is stored for changes whose author is unknown."""

BATCH = 1000
"""The number of events that are imported per transaction."""


class ImportCounts(NamedTuple):
    """The result of an import."""

    imported: int
    passed_over: int
    """The number of changes that the log already contained."""


class Importer:
    """Imports recordings into a log, one after the other; only one thread may use an instance."""

    def __init__(self, log: EventLog) -> None:
        """Create an import into the event log `log`."""
        self._log = log
        self._managed: dict[tuple[Resource, Key], Managed] = {}  # the managedFields of the existing objects
        self._time = 0  # the time of the previous change

    def run(
        self, reader: RecordingReader, tell: Callable[[RecordingReader], None] = lambda reader: None
    ) -> ImportCounts:
        """Import a recording; call `tell` periodically with the reader, which has the position.

        Raises `RecordingError` for a recording that is invalid or does not continue the log. After an error in a
        recording, the log contains all changes before the fault, unless the fault is among the initial objects.
        """
        changes = (entry for entry in reader if isinstance(entry, Change))
        opening, following = _split(changes)
        self._time = _began(opening, following)
        known = _ExistingEvents(self._log, reader.path)
        imported = self._import(known.unknown(opening), lambda: tell(reader))
        if opening and known.head < opening[-1].object.revision:
            self._begin(opening)
        rest = chain([following] if following else (), changes)
        imported += self._import(known.unknown(rest), lambda: tell(reader))
        return ImportCounts(imported, known.passed_over)

    def _import(self, changes: Iterator[tuple[Change, bool]], tell: Callable[[], None]) -> int:
        batch: list[Imported] = []
        count = 0
        try:
            for change, is_known in changes:
                event = self._event(change)
                if is_known:
                    continue
                batch.append(event)
                if len(batch) == BATCH:
                    count += len(self._log.import_events(batch))
                    batch = []
                    tell()
        finally:
            count += len(self._log.import_events(batch))
            tell()
        return count

    def _event(self, change: Change) -> Imported:
        obj = change.object
        if change.recorded_at:
            self._time = change.recorded_at
        elif change.type is not EventType.DELETED:
            self._time = max(self._time, stated_at(obj))
        return Imported(change.type, obj, self._time, self._author(change.type, obj))

    def _author(self, type: EventType, obj: Object) -> Author:
        place = (obj.resource, obj.key)
        before = self._managed.pop(place, None)
        if type is EventType.DELETED:
            return UNKNOWN
        now = self._managed[place] = Managed(obj)
        manager, certain = writer_of(before, now)
        return Author(manager) if manager and certain else UNKNOWN

    def _begin(self, opening: list[Change]) -> None:
        """Compact a log that begins with this recording, so that reads of earlier revisions are refused."""
        if sum(1 for _ in islice(self._log.scan(), len(opening) + 1)) == len(opening):
            # This compaction removes no event, because every event is the current state of its object.
            self._log.compact(opening[-1].object.revision)


def _split(changes: Iterator[Change]) -> tuple[list[Change], Change | None]:
    """Return the initial objects, in the order of revisions, and the first change after them."""
    opening: list[Change] = []
    following = None
    for change in changes:
        began = opening[0].recorded_at if opening else change.recorded_at
        if not is_opening(change, began):
            following = change
            break
        opening.append(change)
    return sorted(opening, key=lambda each: each.object.revision), following


def _began(opening: Iterable[Change], following: Change | None) -> int:
    """Return the start time of the recording, for lines without a time."""
    latest = max((each.recorded_at for each in opening), default=0)
    latest = latest or (following.recorded_at if following else 0)
    return latest or max((stated_at(each.object) for each in opening), default=0)


class _ExistingEvents:
    """The events that the log contained before the import, read in parallel with the recording."""

    def __init__(self, log: EventLog, path: str) -> None:
        self.passed_over = 0
        self._log = log
        self._path = path
        self.head: Revision = log.head().revision
        self._events: Iterator[Event] = iter(())

    def unknown(self, changes: Iterable[Change]) -> Iterator[tuple[Change, bool]]:
        """Yield each change, and whether the log contains it.

        Raises `RecordingError` if the recording lacks a change that the log contains.
        """
        for change in changes:
            is_known = change.object.revision <= self.head
            if is_known:
                self._require(change)
                self.passed_over += 1
            yield change, is_known

    def _require(self, change: Change) -> None:
        obj = change.object
        if not self.passed_over:
            self._events = self._log.scan(start=obj.revision)
        event = next((event for event in self._events if event.revision >= obj.revision), None)
        if event is None or (event.revision, event.resource, event.key) != (obj.revision, obj.resource, obj.key):
            text = f"{obj.resource} {obj.key} of revision {obj.revision} is not in the log, which is at {self.head}"
            raise RecordingError(self._path, change.line, f"{text}: the recording does not continue from there")
