"""Writes the files of a recording.

Guarantees: each file is a complete recording, because each further file starts with the objects that exist when the
file is created. A change is on disk at most a second after `write`, and then survives a crash of the process. When
`close` returns, the last file is complete. A further file never overwrites an existing file.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import TracebackType

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.recording_continuation import RecordingEnd
from ctrlmgr.recording.capture.watch_merge import Recorded
from ctrlmgr.recording.format import RecordingWriter

_FLUSH = 1.0
"""Maximum seconds for which written changes are only in memory."""


class Files:
    """Writes changes into `path`, and then into `name.2.jsonl.gz` and so on, whenever a file reaches the size limit.

    A context manager.
    """

    def __init__(self, path: Path, clock: Clock, *, limit: int = 0, ending: RecordingEnd | None = None) -> None:
        """Create the first file, or append to an existing file after `ending`.

        Raises OSError if the file cannot be written. `limit` is the maximum number of stored bytes of a file; 0 means a
        single file of any size.
        """
        self.paths = [path]
        self.changes = 0
        self.revision: Revision = 0
        self._latest = 0  # the time at which the last change was recorded
        self._clock = clock
        self._limit = limit
        self._objects: dict[tuple[Resource, Key], Recorded] = {}  # the initial objects of a further file
        if ending is not None:
            self.revision = ending.revision
            there = [obj for found in ending.objects.values() for obj in found.values()]
            self._objects = {(obj.resource, obj.key): Recorded(EventType.ADDED, obj, 0) for obj in there}
        self._writer = RecordingWriter(path, goes_on=ending is not None)
        self._flushed = clock.monotonic()

    @property
    def size(self) -> int:
        """The stored bytes of the current file."""
        return self._writer.size

    def write(self, change: Recorded) -> None:
        """Append a change; if the current file is full, append it to a new file."""
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
        """Flush the file if enough time has passed since the last flush."""
        now = self._clock.monotonic()
        if now - self._flushed >= _FLUSH:
            self._writer.flush()
            self._flushed = now

    def close(self) -> None:
        """Complete the file."""
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
