"""The files that a recording goes into.

Guarantees: each file is a recording of its own, because a further one begins with what there is at that moment; what
was written a second ago survives the process; the last file is whole when `close` has returned. A further file never
takes the place of one that is there.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import TracebackType

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.continuing import Ending
from ctrlmgr.recording.capture.merge import Recorded
from ctrlmgr.recording.format import RecordingWriter

_FLUSH = 1.0
"""Seconds for which what was written may be in memory alone."""


class Files:
    """Writes changes into `path`, and from a size on into `name.2.jsonl.gz` and so on; a context manager."""

    def __init__(self, path: Path, clock: Clock, *, limit: int = 0, ending: Ending | None = None) -> None:
        """Create the first file, or go on with it where it ended; raises OSError.

        `limit` is in stored bytes, 0 for one file however large.
        """
        self.paths = [path]
        self.changes = 0
        self.revision: Revision = 0
        self._latest = 0  # when the last change came
        self._clock = clock
        self._limit = limit
        self._objects: dict[tuple[Resource, Key], Recorded] = {}  # what a further file begins with
        if ending is not None:
            self.revision = ending.revision
            there = [obj for found in ending.objects.values() for obj in found.values()]
            self._objects = {(obj.resource, obj.key): Recorded(EventType.ADDED, obj, 0) for obj in there}
        self._writer = RecordingWriter(path, goes_on=ending is not None)
        self._flushed = clock.monotonic()

    @property
    def size(self) -> int:
        """Stored bytes of the file being written."""
        return self._writer.size

    def write(self, change: Recorded) -> None:
        """Append a change, in a new file if the last is full."""
        if self._limit and self._writer.size >= self._limit:
            self._turn()
        self._writer.change(*change)
        self.changes += 1
        self.revision = change.object.revision
        self._latest = change.recorded_at or self._latest
        place = (change.object.resource, change.object.key)
        if change.type is EventType.DELETED:
            self._objects.pop(place, None)
        else:
            self._objects[place] = change

    def tick(self) -> None:
        """Bring what was written to the file, now and then."""
        now = self._clock.monotonic()
        if now - self._flushed >= _FLUSH:
            self._writer.flush()
            self._flushed = now

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()

    def _turn(self) -> None:
        self._writer.close()
        first = self.paths[0]
        stem, dot, suffixes = first.name.partition(".")
        names = (first.with_name(f"{stem}.{number}{dot}{suffixes}") for number in count(len(self.paths) + 1))
        path = next(name for name in names if not name.exists())
        self._writer = RecordingWriter(path)
        self.paths.append(path)
        for each in sorted(self._objects.values(), key=lambda change: change.object.revision):
            self._writer.change(EventType.ADDED, each.object, self._latest)

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
