"""Tests of the compaction and clean-up of a SQLite file: its WAL stays small, and its content is checkpointed."""

from __future__ import annotations

import fcntl
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogClosed, LogUnavailable
from ctrlmgr.eventlog import compaction, open_log
from ctrlmgr.eventlog.compaction import Write
from ctrlmgr.eventlog.sqlite.sqlite_log import SQLiteEventLog
from ctrlmgr.eventlog.sqlite.sqlite_writer import CHECKPOINT
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def opened(path: Path, *, patience: float = 10.0) -> SQLiteEventLog:
    url, clock = f"sqlite:///{path}", SystemClock()
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True, patience=patience)
    assert isinstance(log, SQLiteEventLog)
    return log


@pytest.fixture
def log(path: Path) -> Iterator[SQLiteEventLog]:
    log = opened(path)
    yield log
    log.close()


def test_compaction_limits_the_growth_of_the_wal(
    log: SQLiteEventLog, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("_FIRST_CHUNK", "_LARGEST_CHUNK"):
        monkeypatch.setattr(compaction, size, 100)  # on machines of any speed
    large, versions = "x" * 40_000, 1_600
    revision = log.append([add(thing("a", spec=large))], author=AUTHOR)[0].revision
    for version in range(1, versions):
        revision = log.append([modify(thing("a", spec=f"{version}{large}"), revision)], author=AUTHOR)[0].revision
    log._sqlite_writer.idle()
    assert log.compact(revision) == versions - 1
    wal = path.with_name(path.name + "-wal")
    assert CHECKPOINT // 2 < wal.stat().st_size < CHECKPOINT * 1.5
    with log._engine.connect() as connection:
        # the writer checkpoints the commits of other processes
        assert connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar() == 0


def test_a_failed_write_leaves_no_open_transaction(log: SQLiteEventLog, path: Path) -> None:
    log.append([add(thing("a"))], author=AUTHOR)

    def fail(write: Write) -> None:
        with write() as connection:
            connection.exec_driver_sql("DELETE FROM event")
            raise ZeroDivisionError

    with log._write_much() as write:
        with pytest.raises(ZeroDivisionError):
            fail(write)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # no reader prevents the checkpoint
            assert other.execute("SELECT count(*) FROM event").fetchone() == (1,)
            other.execute("ROLLBACK")
    log.close()
    with pytest.raises(LogClosed):
        log.compact(1)


def at_home(path: Path) -> int:
    """Return the newest revision in the SQLite database file itself, without the journal."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as reader:
        return int(reader.execute("SELECT revision FROM log_head").fetchone()[0])


def test_a_frozen_writer_does_not_block_later_cleanup_or_close(path: Path) -> None:
    log = opened(path, patience=0.1)
    log.append([add(thing("a"))], author=AUTHOR)
    with path.with_name(path.name + "-lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(LogUnavailable):
            log._sqlite_writer.idle()
        assert at_home(path) == 0
        fcntl.flock(lock, fcntl.LOCK_UN)
        log._sqlite_writer.idle()
        assert at_home(path) == 1
        fcntl.flock(lock, fcntl.LOCK_EX)
        log.close()
    again = opened(path)
    assert again.head().revision == 1
    again.close()


def test_vacuuming_does_not_wait_for_readers(log: SQLiteEventLog, path: Path) -> None:
    """A process that is frozen in a transaction would block all writers for as long as it is frozen."""
    for name in ("a", "b"):
        log.append([add(thing(name))], author=AUTHOR)
    writer = log._sqlite_writer
    writer._connection.execute("PRAGMA busy_timeout = 3600000")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM event").fetchone()
        writer.idle()
        assert writer._dirty
    assert writer._connection.execute("PRAGMA busy_timeout").fetchone() == (3600000,)
    writer.idle()
    assert at_home(path) == 2


def test_a_vacuumed_log_is_written_to_its_file(log: SQLiteEventLog, path: Path) -> None:
    """A commit that extends the database file takes longer."""
    wal, sizes = path.with_name(path.name + "-wal"), []
    for name in ("a", "b", "c"):
        log.append([add(thing(name))], author=AUTHOR)
        log._sqlite_writer.idle()
        sizes.append(wal.stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2] > 0


def test_a_large_wal_is_truncated_at_the_next_commit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctrlmgr.eventlog.sqlite.sqlite_writer.CHECKPOINT", 256 * 1024)
    log, wal = opened(path), path.with_name(path.name + "-wal")
    log.append([add(thing(f"a{number}", spec="x" * 1000)) for number in range(1000)], author=AUTHOR)
    assert wal.stat().st_size > 1024 * 1024
    log._sqlite_writer.idle()
    log.append([add(thing("b"))], author=AUTHOR)
    assert 0 < wal.stat().st_size <= 256 * 1024
    log.close()
