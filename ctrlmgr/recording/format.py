"""The file format of recordings: JSON Lines with one watch event per line, compressed if the name ends in `.gz`.

    {"type":"ADDED|MODIFIED|DELETED","object":{…},"recordedAt":"2026-01-02T03:04:05.123456Z"}
    {"type":"BOOKMARK","object":{"kind":"Checkpoint","metadata":{"name":"…","resourceVersion":"…"}}}

The format is the output of `kubectl get --watch --output-watch-events -o json`, with an optional time in each line.
Recordings of a log of ctrlmgr also have the author of each change (`"actor"`). Guarantees of the reader: each entry is
consistent with the entries before it. Revisions ascend, an added object did not exist before, and a modified or deleted
object existed before. The reader holds one line at a time in memory. At the first fault, the reader raises a
`RecordingError` with file, line and reason. Guarantee of the writer: the same events are always written as the same
bytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import format_time, parse_time
from ctrlmgr.errors import BadRequest, RecordingError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.custom_names import CustomNames
from ctrlmgr.recording.line_reader import LONGEST, LineTooLong, lines
from ctrlmgr.recording.watch_event import CHANGES, Line, decode_bookmark, decode_line, plain_line


class ChangeOrigin(NamedTuple):
    """The author and the reconcile of a change; fields that the recording does not contain are empty or 0."""

    actor: str = ""
    """The user that made the change."""
    decided_at: int = 0
    """The time at which the reconcile that made the change began, in microseconds since 1970."""
    seen: Revision = 0
    """The last revision that triggered the reconcile."""


_UNTOLD = ChangeOrigin()


class Change(msgspec.Struct, frozen=True, gc=False):
    """One recorded change; for DELETED, `object` is the object's last state, at the revision of the deletion.

    `recorded_at` is in microseconds since 1970; it is 0 if the line has no time.
    """

    line: int
    type: EventType
    object: Object
    recorded_at: int = 0
    made: ChangeOrigin = _UNTOLD


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """A checkpoint: the recorded cluster was quiescent at this point of the recording."""

    line: int
    name: str
    revision: Revision


Entry: TypeAlias = Change | Checkpoint


def _place_in_list(obj: Object) -> str:
    """Return the key of `obj` in the API server's storage, by which lists are sorted."""
    return f"{obj.resource}/{obj.namespace}/{obj.name}"


LAST_REVISION = 1 << 62
"""The largest revision that a recording may contain; it leaves room for a log that continues from the recording."""

_DIGITS = 20


class RecordingReader:
    """Iterates over a recording once; `line` and `revision` are the reader's position, also after an error."""

    def __init__(self, path: str | Path) -> None:
        """Read the recording at `path`, which is opened when the iteration starts."""
        self.path = str(path)
        self.line = 0
        self.revision: Revision = 0
        self.size = 0  # the size of the file, in stored bytes
        self._stored: IO[bytes] | None = None
        self._custom = CustomNames()
        self._existing: dict[Resource, set[Key]] = {}
        # The last parsed time: its text without the fraction of a second, and the same time in microseconds.
        self._second = ("", 0)
        # The position in the list with which a watch of kubectl begins; None after the list.
        self._opening: str | None = ""

    @property
    def position(self) -> int:
        """The number of bytes of the file that were read so far."""
        return self._stored.tell() if self._stored and not self._stored.closed else 0

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries of the recording in order; raises `RecordingError` at the first fault."""
        for data in self._lines():
            self.line += 1
            line = plain_line(data) or self._decoded(data)
            entry = self._bookmark(line.object) if line.type == "BOOKMARK" else self._change(line, data)
            if entry is not None:
                yield entry
        if not self.line:
            raise RecordingError(self.path, 0, "the recording is empty")

    def _decoded(self, data: bytes) -> Line:
        try:
            return decode_line(data)
        except msgspec.ValidationError as error:
            raise self._error(f"not a watch event: {error}") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._error(f"not a JSON document: {error}") from error
        except UnicodeDecodeError as error:
            raise self._error(f"not UTF-8: {error}") from error

    def _lines(self) -> Iterator[bytes]:
        """Yield the raw lines of the file.

        Errors of the file system or of gzip become `RecordingError`s at the current line.
        """
        try:
            with open(self.path, "rb") as stored:
                self._stored = stored
                self.size = stored.seek(0, 2)
                stored.seek(0)
                yield from lines(stored, compressed=self.path.endswith(".gz"))
        except EOFError as error:
            raise self._error("the gzip stream is cut short", next=True) from error
        except zlib.error as error:
            raise self._error(f"the gzip stream is damaged: {error}", next=True) from error
        except LineTooLong as error:
            raise self._error(f"the line is longer than {LONGEST} bytes", next=True) from error
        except OSError as error:
            raise RecordingError(self.path, 0, error.strerror or str(error)) from error

    def _error(self, reason: str, *, next: bool = False) -> RecordingError:
        return RecordingError(self.path, self.line + next, reason)

    def _bookmark(self, data: msgspec.Raw) -> Checkpoint | None:
        try:
            bookmark = decode_bookmark(data)
        except msgspec.MsgspecError as error:
            raise self._error(f"not a bookmark: {error}") from error
        revision = self._revision_of(bookmark.metadata.resource_version)
        if revision < self.revision:
            raise self._error(f"resourceVersion goes back from {self.revision} to {revision}")
        self.revision = revision
        if bookmark.kind != "Checkpoint":
            return None
        return Checkpoint(self.line, bookmark.metadata.name or f"line {self.line}", revision)

    def _revision_of(self, version: str) -> Revision:
        # The check of isascii() excludes digits of other scripts, which isdecimal() accepts.
        if len(version) > _DIGITS or not (version.isascii() and version.isdecimal() and int(version)):
            raise self._error(f"resourceVersion {version[: 2 * _DIGITS]!r} is not a positive number")
        self._refuse_late(int(version))
        return int(version)

    def _refuse_late(self, revision: Revision) -> None:
        if revision > LAST_REVISION:
            raise self._error(f"resourceVersion {revision} is beyond {LAST_REVISION}: no log could continue from it")

    def _change(self, line: Line, data: bytes) -> Change:
        type_ = CHANGES.get(line.type)
        if type_ is None:
            raise self._error(f"unknown event type {line.type!r}")
        if not data.isascii():
            self._refuse_bad_utf8(data)
        try:
            obj = Object.from_wire(line.object)
            if obj.resource.group:
                obj = self._custom.named(obj)
        except (BadRequest, RecursionError) as error:
            self._decoded(data)  # parse the whole line, because it may be malformed and was not parsed yet
            raise self._error(str(error)) from error
        if not obj.name:
            raise self._error("the object has no metadata.name")
        if not obj.revision:
            raise self._error("the object has no metadata.resourceVersion that is a positive number")
        self._refuse_late(obj.revision)
        if obj.revision <= self.revision:
            self._refuse_out_of_order(type_, obj, timed=bool(line.recorded_at))
        else:
            self.revision = obj.revision
        if self._opening is not None:
            still = type_ is EventType.ADDED and not line.recorded_at
            self._opening = _place_in_list(obj) if still else None
        self._refuse_impossible(type_, obj.resource, obj.key)
        made = ChangeOrigin(line.actor) if line.actor else _UNTOLD
        if line.reconcile is not None:
            made = ChangeOrigin(
                line.actor, self._time(line.reconcile.started_at), max(line.reconcile.triggers, default=0)
            )
        return Change(self.line, type_, obj, self._time(line.recorded_at), made)

    def _refuse_bad_utf8(self, data: bytes) -> None:
        """Raise an error for invalid UTF-8, which msgspec does not detect in skipped strings."""
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise self._error(f"not UTF-8: {error}") from error

    def _refuse_out_of_order(self, type_: EventType, obj: Object, *, timed: bool) -> None:
        """Raise an error for a revision that does not ascend, except in the initial list of a watch of kubectl."""
        untimed_addition = type_ is EventType.ADDED and not timed
        if untimed_addition and self._opening is not None and _place_in_list(obj) > self._opening:
            return
        what = "is repeated" if obj.revision == self.revision else f"goes back from {self.revision}"
        raise self._error(f"resourceVersion {obj.revision} {what}: the recording is out of order")

    def _refuse_impossible(self, type_: EventType, resource: Resource, key: Key) -> None:
        existing = self._existing.get(resource)
        if existing is None:
            existing = self._existing[resource] = set()
        if (key in existing) is (type_ is EventType.ADDED):
            state = "exists already" if key in existing else "does not exist"
            raise self._error(f"{type_.name} {resource} {key}, which {state}")
        if type_ is EventType.ADDED:
            existing.add(key)
        elif type_ is EventType.DELETED:
            existing.remove(key)

    def _time(self, text: str) -> int:
        if not text:
            return 0
        second, start = self._second
        fraction = text[20:26]
        # Nearly every line has a time like 2026-01-02T03:04:05.123456Z, in the same second as the line before.
        if text[:19] == second and len(text) == 27 and text[19] == "." and text[26] == "Z" and fraction.isdecimal():
            return start + int(fraction)
        try:
            moment = parse_time(text)
        except ValueError as error:
            raise self._error(f"recordedAt is not an RFC 3339 time: {text!r}") from error
        if text.endswith("Z"):
            self._second = (text[:19], moment // 1_000_000 * 1_000_000)
        return moment


class RecordingWriter:
    """Writes a recording; a context manager.

    A compressed file contains no timestamp, so equal events are written as equal files.
    """

    def __init__(self, path: str | Path, *, goes_on: bool = False) -> None:
        """Create (or overwrite) the file at `path`, compressed if its name ends in `.gz`; raises OSError if that fails.

        If `goes_on` is set, append to the existing file, which must end with a complete line. A compressed file gets a
        further gzip stream.
        """
        self._stored = open(path, "ab" if goes_on else "wb")  # noqa: SIM115  # closed by close(), which __exit__ calls
        compressed = str(path).endswith(".gz")
        self._out: IO[bytes] | gzip.GzipFile = (
            gzip.GzipFile(filename="", mode="wb", fileobj=self._stored, mtime=0) if compressed else self._stored
        )

    def change(self, type: EventType, obj: Object, recorded_at: int = 0, made: ChangeOrigin | None = None) -> None:
        """Append one change; `recorded_at` is in microseconds since 1970.

        If `recorded_at` is 0 or `made` is None, the line does not contain the time or the author.
        """
        more = f',"recordedAt":"{format_time(recorded_at)}"'.encode() if recorded_at else b""
        if made is not None and made.actor:
            more += b',"actor":' + msgspec.json.encode(made.actor)
        if made is not None and made.decided_at:
            reconcile = {"startedAt": format_time(made.decided_at), "triggers": [made.seen] if made.seen else []}
            more += b',"reconcile":' + msgspec.json.encode(reconcile)
        self._out.write(b'{"type":"%b","object":%b%b}\n' % (type.name.encode(), obj.wire(), more))

    def checkpoint(self, name: str, revision: Revision) -> None:
        """Append a checkpoint, which says that the file contains all changes up to `revision`."""
        metadata = {"name": name, "resourceVersion": str(revision)}
        bookmark = {"kind": "Checkpoint", "apiVersion": "v1", "metadata": metadata}
        self._out.write(msgspec.json.encode({"type": "BOOKMARK", "object": bookmark}) + b"\n")

    @property
    def size(self) -> int:
        """The number of bytes that were written into the file, without bytes that are still buffered in memory."""
        return self._stored.tell()

    def flush(self) -> None:
        """Write all buffered data into the file."""
        self._out.flush()
        self._stored.flush()

    def close(self) -> None:
        """Complete and close the file."""
        self._out.close()
        self._stored.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
