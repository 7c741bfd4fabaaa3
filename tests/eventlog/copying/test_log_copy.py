"""Tests of whole copies of a log: a copy is the same log in another database, of the same or of another type."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.errors import SchemaOutdated, SettingsError
from ctrlmgr.eventlog import EventType, Proposal, migrate_log, open_log, verify
from ctrlmgr.eventlog.copying import copied_tables
from ctrlmgr.eventlog.copying.log_copy import Copied, copy
from ctrlmgr.eventlog.log_tables import metadata
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run, run
from tests.inspection import story

__all__ = ["run"]


class CopyKilled(Exception):
    """Raised by a read that stands for the death of the copying process."""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once for each type of database."""
    url = f"sqlite:///{tmp_path}/copy.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    migrate_log(url, clock=FakeClock(), random=random.Random(9))
    return url


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy three events a page, so that the short history has several pages."""
    monkeypatch.setattr(copied_tables, "_CHUNK", 3)


def copied(source: str, target: str) -> Copied:
    with open_database(source) as opened:
        return copy(lambda asked, given: opened.query(asked, given).rows, target)


def opened_log(url: str) -> SQLLog:
    log = open_log(url, clock=FakeClock(), random=random.Random(3))
    assert isinstance(log, SQLLog)
    return log


def tables_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables of a log."""
    with open_database(url) as opened:
        return {table.name: sorted(rows_of(opened, table.name), key=repr) for table in metadata.sorted_tables}


def rows_of(opened: Database, table: str) -> list[tuple[Any, ...]]:
    columns = ", ".join(column.name for column in metadata.tables[table].columns)
    rows = opened.query(f"SELECT {columns} FROM {table}").rows
    deleted = [index for index, column in enumerate(metadata.tables[table].columns) if column.name == "deleted"]
    return [tuple(bool(value) if index in deleted else value for index, value in enumerate(row)) for row in rows]


def test_a_copy_contains_every_row_of_the_log(story_url: str, target: str) -> None:
    found = copied(story_url, target)
    assert (found.events, found.head.revision) == (story.HEAD, story.HEAD)
    assert tables_of(target) == tables_of(story_url)
    log = opened_log(target)
    assert verify(log).events == story.HEAD
    log.close()


def test_a_copy_of_a_copy_equals_the_first_database(sqlite_story: str, target: str, tmp_path: Path) -> None:
    back = f"sqlite:///{tmp_path}/back.db"
    migrate_log(back, clock=FakeClock(), random=random.Random(5))
    copied(sqlite_story, target)
    copied(target, back)
    assert tables_of(back) == tables_of(sqlite_story)


@pytest.mark.parametrize("reads", range(1, 30, 5))
def test_a_killed_copy_is_refused_by_readers_and_can_be_finished(sqlite_story: str, target: str, reads: int) -> None:
    with open_database(sqlite_story) as opened:
        left = reads

        def read(asked: str, given: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
            nonlocal left
            left -= 1
            if left < 0:
                raise CopyKilled
            return opened.query(asked, given).rows

        try:
            copy(read, target)
        except CopyKilled:
            assert_unusable(target, begun=reads > 2)
    copied(sqlite_story, target)
    assert tables_of(target) == tables_of(sqlite_story)


def assert_unusable(url: str, *, begun: bool) -> None:
    """Check that no program opens a copy that is unfinished."""
    if not begun:
        return
    for opening in (lambda: open_database(url), lambda: opened_log(url)):
        with pytest.raises(SchemaOutdated, match="unfinished copy"):
            opening()
    with pytest.raises(SchemaOutdated, match="unfinished copy"):
        migrate_log(url, clock=FakeClock(), random=random.Random(9))


def test_a_second_copy_adds_only_new_events(past_url: str, target: str) -> None:
    copied(past_url, target)
    log = opened_log(past_url)
    log.append([Proposal(EventType.ADDED, story.pod("web-9", "10.0.0.9", ready=True), 0)], author=story.ALICE)
    log.close()
    assert copied(past_url, target).events == 1
    assert tables_of(target) == tables_of(past_url)


def test_a_copy_after_a_compaction_equals_the_compacted_log(past_url: str, target: str) -> None:
    copied(past_url, target)
    log = opened_log(past_url)
    log.compact(13, resource=PODS)
    log.append([Proposal(EventType.ADDED, story.pod("web-9", "10.0.0.9", ready=True), 0)], author=story.ALICE)
    log.close()
    copied(past_url, target)
    assert tables_of(target) == tables_of(past_url)
    log = opened_log(target)
    assert verify(log).head.revision == story.HEAD + 1
    log.close()


def test_a_compaction_during_the_copy_restarts_it(past_url: str, target: str) -> None:
    """A compaction runs after the first page was read; the copy equals the log after it."""
    compacted = False
    with open_database(past_url) as opened:

        def read(asked: str, given: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
            nonlocal compacted
            if given.get("after") and not compacted:
                compacted = True
                log = opened_log(past_url)
                log.compact(13, resource=PODS)
                log.close()
            return opened.query(asked, given).rows

        copy(read, target)
    assert compacted
    assert tables_of(target) == tables_of(past_url)


def test_a_copy_that_was_written_to_is_refused(past_url: str, target: str) -> None:
    copied(past_url, target)
    log = opened_log(target)
    log.append([Proposal(EventType.ADDED, story.pod("web-9", "10.0.0.9", ready=True), 0)], author=story.ALICE)
    log.close()
    with pytest.raises(SettingsError, match="was written to"):
        copied(past_url, target)
    log = opened_log(target)
    assert log.head().revision == story.HEAD + 1
    log.close()


def test_a_database_with_another_log_is_refused(sqlite_story: str, target: str) -> None:
    log = opened_log(target)
    log.append([Proposal(EventType.ADDED, story.pod("web-9", "10.0.0.9", ready=True), 0)], author=story.ALICE)
    log.close()
    with pytest.raises(SettingsError, match=r"another log|was written to"):
        copied(sqlite_story, target)


def test_the_command_copies_verifies_and_names_both_databases(run: Run, sqlite_story: str, tmp_path: Path) -> None:
    made = f"sqlite:///{tmp_path}/made.db"
    finished = run("copy", sqlite_story, made)
    assert (finished.code, finished.err) == (0, "")
    assert f"at revision {story.HEAD}" in finished.out
    assert run("copy", sqlite_story, made).out.startswith("copied 0 events")
    same = run("copy", made, made)
    assert (same.code, "the same" in same.err) == (2, True)


def test_a_backup_is_one_file_that_can_be_forked(run: Run, sqlite_story: str, tmp_path: Path) -> None:
    made = tmp_path / "kept" / "backup.db"
    finished = run("backup", "--database", sqlite_story, str(made))
    assert (finished.code, finished.err) == (0, "")
    assert [path.name for path in made.parent.iterdir()] == ["backup.db"]
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert run("fork", "--from", f"sqlite:///{made}", "--at", "9", "--database", restored).code == 0
    assert run("verify", "--database", restored).out.startswith("ok: 9 events")
