"""Tests of reading and writing recordings."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.clock import parse_time
from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import EventType
from ctrlmgr.recording.format import Change, Checkpoint, Entry, RecordingReader, RecordingWriter
from tests.recording.samples import SMALL, small_lines, write_lines

TIME = "2026-01-02T03:04:05.123456Z"


def line(type: str, revision: int | str, name: str = "a", *, recorded_at: str | None = TIME, **metadata: Any) -> Any:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": str(revision), **metadata}
    event = {"type": type, "object": {"kind": "Pod", "apiVersion": "v1", "metadata": meta}}
    return event if recorded_at is None else {**event, "recordedAt": recorded_at}


def bookmark(revision: int, kind: str = "Checkpoint", name: str = "c") -> Any:
    return {"type": "BOOKMARK", "object": {"kind": kind, "metadata": {"name": name, "resourceVersion": str(revision)}}}


def read(path: Path) -> list[Entry]:
    return list(RecordingReader(path))


def test_a_real_recording_is_read_completely() -> None:
    entries = read(SMALL)
    assert sum(isinstance(entry, Change) for entry in entries) == 421
    assert sum(isinstance(entry, Checkpoint) for entry in entries) == 27
    assert [entry.line for entry in entries] == list(range(1, 449))


def test_a_read_recording_can_be_written_again_byte_for_byte(tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl.gz"
    with RecordingWriter(copy) as writer:
        for entry in RecordingReader(SMALL):
            if isinstance(entry, Checkpoint):
                writer.checkpoint(entry.name, entry.revision)
            else:
                writer.change(entry.type, entry.object, entry.recorded_at)
    assert gzip.decompress(copy.read_bytes()).splitlines() == small_lines()


def test_equal_events_produce_equal_files(tmp_path: Path) -> None:
    entry = next(iter(RecordingReader(SMALL)))
    assert isinstance(entry, Change)
    for name in ("one.jsonl.gz", "other.jsonl.gz"):
        with RecordingWriter(tmp_path / name) as writer:
            writer.change(entry.type, entry.object)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "other.jsonl.gz").read_bytes()


def test_an_entry_has_an_object_a_position_and_a_time(tmp_path: Path) -> None:
    [change, checkpoint] = read(write_lines(tmp_path / "r.jsonl", [line("ADDED", 7), bookmark(7)]))
    assert isinstance(change, Change)
    assert (change.line, change.type, change.recorded_at) == (1, EventType.ADDED, parse_time(TIME))
    assert (change.object.resource, change.object.key, change.object.revision) == (PODS, Key("ns", "a"), 7)
    assert checkpoint == Checkpoint(2, "c", 7)


def test_the_time_is_optional(tmp_path: Path) -> None:
    [change] = read(write_lines(tmp_path / "r.jsonl", [line("ADDED", 7, recorded_at=None)]))
    assert isinstance(change, Change)
    assert change.recorded_at == 0


def test_bookmarks_without_a_checkpoint_are_skipped(tmp_path: Path) -> None:
    assert read(write_lines(tmp_path / "r.jsonl", [bookmark(5, kind="Pod")])) == []


def test_the_initial_list_of_a_plain_watch_is_sorted_by_key(tmp_path: Path) -> None:
    """The order is that of kubectl: `a-b/x` comes before `a/x`, regardless of the objects' revisions."""
    lines = [
        line("ADDED", 9, "x", namespace="a-b", recorded_at=None),
        line("ADDED", 4, "x", namespace="a", recorded_at=None),
        line("MODIFIED", 10, "x", namespace="a", recorded_at=None),
    ]
    assert len(read(write_lines(tmp_path / "r.jsonl", lines))) == 3


@pytest.mark.parametrize(
    ("lines", "at", "reason"),
    [
        pytest.param([line("ADDED", 1), b'{"type":"ADDED","obj'], 2, "not a JSON document", id="a line is cut short"),
        pytest.param(
            [b'{"type":"ADDED","object":' + b"[" * 100_000], 1, "not a JSON document", id="a line is nested too deeply"
        ),
        pytest.param([b""], 1, "not a JSON document", id="a line is empty"),
        pytest.param([b"[1]"], 1, "not a watch event", id="a line is not an object"),
        pytest.param([{"type": "ADDED"}], 1, "`object`", id="there is no object"),
        pytest.param([{"object": {}}], 1, "`type`", id="there is no type"),
        pytest.param([line("ERROR", 1)], 1, "unknown event type 'ERROR'", id="the type is unknown"),
        pytest.param([{"type": "ADDED", "object": 1}], 1, "decoded", id="the object is a number"),
        pytest.param([{"type": "ADDED", "object": {"kind": "Pod"}}], 1, "apiVersion", id="the object has no metadata"),
        pytest.param([line("ADDED", 1, "")], 1, "no metadata.name", id="the object has no name"),
        pytest.param([line("ADDED", "")], 1, "no metadata.resourceVersion", id="there is no revision"),
        pytest.param([line("ADDED", "x1")], 1, "no metadata.resourceVersion", id="the revision is no number"),
        pytest.param([line("ADDED", 1), line("MODIFIED", 1)], 2, "is repeated", id="a revision comes twice"),
        pytest.param([line("ADDED", 5), line("MODIFIED", 4)], 2, "goes back from 5", id="a revision goes back"),
        pytest.param(
            [line("ADDED", 5), line("ADDED", 4, "b")], 2, "goes back", id="the list at the start is not in order"
        ),
        pytest.param(
            [line("ADDED", 5, "b", recorded_at=None), line("ADDED", 4, "a", recorded_at=None)],
            2,
            "goes back",
            id="a plain list has neither order",
        ),
        pytest.param([line("ADDED", 5), bookmark(4)], 2, "goes back from 5 to 4", id="a checkpoint goes back"),
        pytest.param([bookmark(5), line("ADDED", 5)], 2, "is repeated", id="an event stands below its checkpoint"),
        pytest.param([{"type": "BOOKMARK", "object": {}}], 1, "not a bookmark", id="a bookmark says nothing"),
        pytest.param(
            [line("MODIFIED", 1)], 1, "MODIFIED pods ns/a, which does not exist", id="modified before it exists"
        ),
        pytest.param([line("DELETED", 1)], 1, "DELETED pods ns/a, which does not exist", id="deleted before it exists"),
        pytest.param([line("ADDED", 1), line("ADDED", 2)], 2, "which exists already", id="added twice"),
        pytest.param(
            [line("ADDED", 1), line("DELETED", 2), line("MODIFIED", 3)], 3, "does not exist", id="modified when gone"
        ),
        pytest.param([line("ADDED", 1, recorded_at="noon")], 1, "recordedAt", id="the time is no time"),
        pytest.param([line("ADDED", 1, recorded_at="2026-01-02T03:04:05")], 1, "recordedAt", id="the time has no zone"),
        pytest.param(
            [json.dumps(line("ADDED", 1, annotations={"x": "@"})).encode().replace(b"@", b"\xff")],
            1,
            "",
            id="a text is not UTF-8",
        ),
        pytest.param(
            [b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"x":"\xff"}}}'],
            1,
            "not UTF-8",
            id="a text that nobody decodes is not UTF-8",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_bad_recording_is_refused_with_its_line(
    tmp_path: Path, lines: list[Any], at: int, reason: str, suffix: str
) -> None:
    path = write_lines(tmp_path / f"r.{suffix}", lines)
    taken: list[Entry] = []
    with pytest.raises(RecordingError) as caught:
        taken.extend(RecordingReader(path))
    error = caught.value
    assert (error.file, error.line) == (str(path), at)
    assert reason in error.reason
    assert len(taken) <= at - 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        pytest.param(lambda data: data[: len(data) // 2], "cut short", id="half of it"),
        pytest.param(lambda data: data[:-4], "cut short", id="all but the length at its end"),
        pytest.param(lambda data: data[:-6] + b"!!" + data[-4:], "damaged", id="a wrong checksum"),
        pytest.param(lambda data: b"hello", "damaged", id="no gzip at all"),
        pytest.param(lambda data: b"", "cut short", id="nothing"),
    ],
)
def test_a_damaged_gzip_stream_is_refused_after_its_readable_part(tmp_path: Path, damage: Any, reason: str) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(damage(SMALL.read_bytes()))
    reader = RecordingReader(path)
    taken: list[Entry] = []
    with pytest.raises(RecordingError, match=reason) as caught:
        taken.extend(reader)
    assert caught.value.line == len(taken) + 1
    assert reader.line == len(taken)


def test_concatenated_gzip_streams_are_one_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.gz"
    parts = [json.dumps(line("ADDED", revision, f"p{revision}")).encode() + b"\n" for revision in (1, 2)]
    path.write_bytes(b"".join(map(gzip.compress, parts)) + b"\0\0")
    assert len(read(path)) == 2


def test_an_empty_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="empty"):
        read(write_lines(tmp_path / "r.jsonl", []))


def test_a_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        read(tmp_path / "r.jsonl")


def test_a_last_line_without_a_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(json.dumps(line("ADDED", 1)).encode())
    assert len(read(path)) == 1
