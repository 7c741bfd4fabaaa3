from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Resource
from ctrlmgr.errors import RecordingError, SettingsError
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.capture.recording_continuation import check_chosen, read_ending
from ctrlmgr.recording.capture.rotation import Files
from ctrlmgr.recording.capture.watch_merge import Recorded
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


def test_one_file_is_written_by_default(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl.gz"
    with Files(path, FakeClock()) as files:
        for number in range(1, 100):
            files.write(recorded(EventType.ADDED, f"n{number}", number))
    assert (files.paths, files.changes, files.revision) == ([path], 99, 99)
    assert len(read(path)) == 99


def test_a_further_file_begins_with_the_current_state(tmp_path: Path) -> None:
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


def test_lines_written_a_second_ago_can_be_read(tmp_path: Path) -> None:
    clock = FakeClock()
    files = Files(tmp_path / "a.jsonl", clock)
    files.write(recorded(EventType.ADDED, "a", 1))
    files.tick()
    assert (tmp_path / "a.jsonl").read_bytes() == b""
    clock.step(1)
    files.tick()
    assert read(tmp_path / "a.jsonl") == [("ADDED", "a", 1)]
    files.close()


@pytest.mark.parametrize("name", ["some.jsonl", "some.jsonl.gz"])
def test_an_existing_file_is_continued(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with Files(path, FakeClock()) as files:
        files.write(recorded(EventType.ADDED, "a", 1))
        files.write(recorded(EventType.ADDED, "b", 2))
        files.write(recorded(EventType.DELETED, "a", 3))
    ending = read_ending(path)
    assert (ending.revision, [obj.name for found in ending.objects.values() for obj in found.values()]) == (3, ["b"])
    with Files(path, FakeClock(), ending=ending) as files:
        assert (files.revision, files.changes) == (3, 0)
        files.write(recorded(EventType.MODIFIED, "b", 4))
    assert read(path) == [("ADDED", "a", 1), ("ADDED", "b", 2), ("DELETED", "a", 3), ("MODIFIED", "b", 4)]


def test_a_further_file_of_a_continued_one_begins_with_its_state(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    with Files(path, FakeClock()) as files:
        files.write(recorded(EventType.ADDED, "a", 1))
    (tmp_path / "some.2.jsonl").write_text("of another recording")
    with Files(path, FakeClock(), limit=1, ending=read_ending(path)) as files:
        files.write(recorded(EventType.MODIFIED, "a", 2))
    assert [each.name for each in files.paths] == ["some.jsonl", "some.3.jsonl"], "none is written over"
    assert read(files.paths[1]) == [("ADDED", "a", 1), ("MODIFIED", "a", 2)]
    assert (tmp_path / "some.2.jsonl").read_text() == "of another recording"


def test_a_truncated_file_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    with Files(path, FakeClock()) as files:
        files.write(recorded(EventType.ADDED, "a", 1))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(RecordingError, match="cut short"):
        read_ending(path)


@pytest.mark.parametrize(
    ("chosen", "namespace", "problem"),
    [
        ([Resource("", "configmaps"), SERVICES], "", ""),
        ([SERVICES], "", "also holds configmaps, which --resources does not include"),
        ([Resource("", "configmaps")], "shop", "also contains objects of no namespace"),
    ],
)
def test_a_continuation_that_drops_resources_is_refused(
    tmp_path: Path, chosen: list[Resource], namespace: str, problem: str
) -> None:
    path = tmp_path / "some.jsonl"
    with Files(path, FakeClock()) as files:
        files.write(recorded(EventType.ADDED, "a", 1))
    if problem:
        with pytest.raises(SettingsError, match=problem):
            check_chosen(read_ending(path), chosen, namespace)
    else:
        check_chosen(read_ending(path), chosen, namespace)
