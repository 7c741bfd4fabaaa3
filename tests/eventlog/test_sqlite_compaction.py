"""Compaction of a SQLite file: its WAL stays small, and a transaction that fails ends at once."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogClosed
from ctrlmgr.eventlog import compaction, open_log
from ctrlmgr.eventlog.compaction import Write
from ctrlmgr.eventlog.sqlite.log import SQLiteEventLog
from ctrlmgr.eventlog.sqlite.writer import CHECKPOINT
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@pytest.fixture
def log(path: Path) -> Iterator[SQLiteEventLog]:
    log = open_log(f"sqlite:///{path}", clock=SystemClock(), random=random.Random(1), migrate=True)
    assert isinstance(log, SQLiteEventLog)
    yield log
    log.close()


def test_compaction_does_not_let_the_wal_grow_as_large_as_all_that_it_writes(
    log: SQLiteEventLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("_FIRST_CHUNK", "_LARGEST_CHUNK"):
        monkeypatch.setattr(compaction, size, 100)  # however quick the machine is
    large, versions = "x" * 40_000, 1_600
    revision = log.append([add(thing("a", spec=large))], author=AUTHOR)[0].revision
    for version in range(1, versions):
        revision = log.append([modify(thing("a", spec=f"{version}{large}"), revision)], author=AUTHOR)[0].revision
    log._sqlite_writer.idle()
    assert log.compact(revision) == versions - 1
    wal = path.with_name(path.name + "-wal")
    assert CHECKPOINT // 2 < wal.stat().st_size < CHECKPOINT * 1.5
    with log._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar() == 0  # of others' it is the writer's


def test_what_fails_while_it_writes_leaves_nothing_begun(log: SQLiteEventLog, path: Path) -> None:
    log.append([add(thing("a"))], author=AUTHOR)

    def fail(write: Write) -> None:
        with write() as connection:
            connection.exec_driver_sql("DELETE FROM event")
            raise ZeroDivisionError

    with log._write_much() as write:
        with pytest.raises(ZeroDivisionError):
            fail(write)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # which nobody keeps it from
            assert other.execute("SELECT count(*) FROM event").fetchone() == (1,)
            other.execute("ROLLBACK")
    log.close()
    with pytest.raises(LogClosed):
        log.compact(1)
