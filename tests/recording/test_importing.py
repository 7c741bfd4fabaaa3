"""Tests of imported recordings: the log has the same objects at the same revisions, in every type of database."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import SERVICES, Key
from ctrlmgr.clock import parse_time
from ctrlmgr.errors import Expired, RecordingError
from ctrlmgr.eventlog import open_log, verify
from ctrlmgr.eventlog.imports import ImportedRange
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.capture.rotation import Files
from ctrlmgr.recording.capture.watch_merge import Recorded
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.recording.importing import ImportCounts, Importer
from ctrlmgr.testing import FakeClock
from tests.recording.samples import LARGER, SMALL, endpoints, managed, service, small_lines, write_lines

Log = SQLLog | MemoryEventLog


def opened(url: str) -> Log:
    return open_log(url, clock=FakeClock(), random=random.Random(1), migrate=True)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """An empty log, once for each type of database."""
    url = {"memory": "memory:", "sqlite": f"sqlite:///{tmp_path}/log.db"}.get(request.param)
    with closing(opened(url or request.getfixturevalue("postgres_url"))) as log:
        yield log


@pytest.fixture
def memory() -> Iterator[Log]:
    with closing(opened("memory:")) as log:
        yield log


def changes(path: Path) -> list[tuple[str, int, bytes]]:
    return [
        (each.type.name, each.object.revision, bytes(each.object.wire()))
        for each in RecordingReader(path)
        if isinstance(each, Change)
    ]


def exported(log: Log) -> list[tuple[str, int, bytes]]:
    told = history(log, lambda obj: is_api_object(obj.resource))
    return [(each.type.name, each.object.revision, bytes(each.object.wire())) for each in told]


def imported(log: Log, path: Path) -> ImportCounts:
    return Importer(log).run(RecordingReader(path))


def line(type: str, fields: dict[str, Any], revision: int, at: str = "") -> dict[str, Any]:
    metadata = {**fields["metadata"], "resourceVersion": str(revision)}
    return {"type": type, "object": {**fields, "metadata": metadata}, **({"recordedAt": at} if at else {})}


def test_an_exported_import_equals_the_recording(log: Log) -> None:
    recorded = changes(SMALL)
    assert imported(log, SMALL) == ImportCounts(len(recorded), 0)
    assert exported(log) == recorded
    assert verify(log).head.revision == recorded[-1][1]
    assert log.imports() == [ImportedRange(0, recorded[-1][1])]


@pytest.mark.slow
@pytest.mark.timeout(120)  # the machine may be busy with other tests
@pytest.mark.parametrize("path", LARGER[:1], ids=lambda path: path.stem)
def test_a_larger_exported_import_equals_the_recording(tmp_path: Path, path: Path) -> None:
    with closing(opened(f"sqlite:///{tmp_path}/log.db")) as log:
        imported(log, path)
        assert exported(log) == changes(path)
        verify(log)


def test_writes_have_authors(memory: Log) -> None:
    imported(memory, SMALL)
    authors = Counter(event.actor for event in memory.scan())
    assert set(authors) > {"kube-controller-manager", "kube-apiserver", "recording"}
    assert authors["recording"] < authors.total() / 2
    deletions = {event.actor for event in memory.scan() if event.type.name == "DELETED"}
    assert deletions == {"recording"}


LISTED = [
    line("ADDED", endpoints("a", entries=[managed("kubectl", ["subsets"], time="2026-01-01T00:00:07Z")]), 30),
    line("ADDED", endpoints("b", entries=[managed("kubectl", ["subsets"], time="2026-01-01T00:00:05Z")]), 10),
    line("ADDED", service("s"), 20),
    line("MODIFIED", endpoints("b", entries=[managed("helm", ["subsets"], time="2026-01-01T00:00:09Z")]), 44),
    line("DELETED", endpoints("a"), 45),
]


def test_output_of_kubectl_is_sorted(memory: Log, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "kubectl.jsonl", LISTED)
    assert imported(memory, path) == ImportCounts(5, 0)
    found = [(event.revision, event.actor, event.recorded_at) for event in memory.scan()]
    first, then = parse_time("2026-01-01T00:00:07Z"), parse_time("2026-01-01T00:00:09Z")
    assert found == [
        (10, "kubectl", first),
        (20, "recording", first),
        (30, "kubectl", first),
        (44, "helm", then),
        (45, "recording", then),
    ]


def test_events_before_the_beginning_are_not_invented(memory: Log, tmp_path: Path) -> None:
    imported(memory, write_lines(tmp_path / "kubectl.jsonl", LISTED))
    assert memory.floor() == 30
    assert [obj.name for obj in memory.snapshot(at=30).objects] == ["a", "b", "s"]
    with pytest.raises(Expired):
        memory.snapshot(at=29)
    assert memory.get(SERVICES, Key("shop", "s")) is not None


def test_a_recording_that_begins_empty_has_no_past(memory: Log, tmp_path: Path) -> None:
    lines = [line("ADDED", {**service("s")}, 20, "2026-01-01T00:00:01.5Z")]
    lines[0]["object"]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    imported(memory, write_lines(tmp_path / "from-the-start.jsonl", lines))
    assert (memory.floor(), memory.snapshot(at=19).objects) == (0, [])


def test_an_interrupted_import_is_continued(tmp_path: Path, log: Log) -> None:
    broken = write_lines(tmp_path / "broken.jsonl", [*small_lines()[:200], b'{"type":'])
    with pytest.raises(RecordingError, match=r"broken\.jsonl:201: not a JSON document"):
        imported(log, broken)
    had = len(list(log.scan()))
    assert 150 < had <= 200
    whole = changes(SMALL)
    assert imported(log, SMALL) == ImportCounts(len(whole) - had, had)
    assert exported(log) == whole
    assert imported(log, SMALL) == ImportCounts(0, len(whole))
    verify(log)


def test_the_files_of_a_rotated_recording_are_joined(memory: Log, tmp_path: Path) -> None:
    with Files(tmp_path / "part.jsonl", FakeClock(), limit=300_000) as files:
        for entry in RecordingReader(SMALL):
            if isinstance(entry, Change):
                files.write(Recorded(entry.type, entry.object, entry.recorded_at))
    assert len(files.paths) > 2
    importer = Importer(memory)
    tallies = [importer.run(RecordingReader(path)) for path in files.paths]
    assert exported(memory) == changes(SMALL)
    assert all(tally.passed_over for tally in tallies[1:])


@pytest.mark.parametrize(
    ("revision", "name"), [pytest.param(21, "s", id="another revision"), pytest.param(20, "other", id="another object")]
)
def test_a_recording_that_is_no_continuation_is_refused(memory: Log, tmp_path: Path, revision: int, name: str) -> None:
    imported(memory, write_lines(tmp_path / "first.jsonl", LISTED))
    other = write_lines(tmp_path / "other.jsonl", [line("ADDED", service(name), revision)])
    said = rf"other.jsonl:1: services shop/{name} of revision {revision} is not in the log, which is at 45"
    with pytest.raises(RecordingError, match=said):
        imported(memory, other)
    assert memory.head().revision == 45


def test_a_later_recording_is_appended(memory: Log, tmp_path: Path) -> None:
    imported(memory, write_lines(tmp_path / "first.jsonl", LISTED))
    later = [LISTED[2], line("ADDED", endpoints("b", labels={"x": "y"}), 80), line("ADDED", endpoints("c"), 90)]
    assert imported(memory, write_lines(tmp_path / "later.jsonl", later)) == ImportCounts(2, 1)
    newest = [(event.revision, event.type.name) for event in memory.events_after(45)]
    assert newest == [(80, "MODIFIED"), (90, "ADDED")]
    assert memory.floor() == 30


def test_an_empty_recording_imports_nothing(memory: Log, tmp_path: Path) -> None:
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}}
    path = tmp_path / "quiet.jsonl"
    path.write_text(json.dumps(bookmark) + "\n")
    assert imported(memory, path) == ImportCounts(0, 0)
    assert memory.head().revision == 0
