from __future__ import annotations

from pathlib import Path

from ctrlmgr.api.object import Object
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.merge import Recorded
from ctrlmgr.recording.capture.rotation import Files
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.testing import FakeClock


def recorded(type: EventType, name: str, revision: int) -> Recorded:
    metadata = {"name": name, "uid": name, "resourceVersion": str(revision)}
    data = {"pad": "x" * 300}
    obj = Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data})
    return Recorded(type, obj, revision * 1_000_000)


def read(path: Path) -> list[tuple[str, str, int]]:
    entries = [entry for entry in RecordingReader(path) if isinstance(entry, Change)]
    return [(each.type.name, each.object.name, each.object.revision) for each in entries]


def test_one_file_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl.gz"
    with Files(path, FakeClock()) as files:
        for number in range(1, 100):
            files.write(recorded(EventType.ADDED, f"n{number}", number))
    assert (files.paths, files.changes, files.revision) == ([path], 99, 99)
    assert len(read(path)) == 99


def test_a_further_file_begins_with_what_there_is(tmp_path: Path) -> None:
    with Files(tmp_path / "some.jsonl", FakeClock(), limit=1500) as files:
        files.write(recorded(EventType.ADDED, "a", 1))
        files.write(recorded(EventType.ADDED, "b", 2))
        files.tick()
        files.write(recorded(EventType.MODIFIED, "a", 3))
        files.write(recorded(EventType.DELETED, "b", 4))
        files.write(recorded(EventType.MODIFIED, "a", 5))
    assert [path.name for path in files.paths] == ["some.jsonl", "some.2.jsonl"]
    first, second = map(read, files.paths)
    assert first == [("ADDED", "a", 1), ("ADDED", "b", 2), ("MODIFIED", "a", 3), ("DELETED", "b", 4)]
    assert second == [("ADDED", "a", 3), ("MODIFIED", "a", 5)]


def test_what_was_written_a_second_ago_can_be_read(tmp_path: Path) -> None:
    clock = FakeClock()
    files = Files(tmp_path / "a.jsonl", clock)
    files.write(recorded(EventType.ADDED, "a", 1))
    files.tick()
    assert (tmp_path / "a.jsonl").read_bytes() == b""
    clock.step(1)
    files.tick()
    assert read(tmp_path / "a.jsonl") == [("ADDED", "a", 1)]
    files.close()
