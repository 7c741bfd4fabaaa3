"""Tidying a SQLite file: what is in its journal comes home, and the journal keeps its file."""

from __future__ import annotations

import fcntl
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import open_log
from ctrlmgr.eventlog.sqlite.log import SQLiteEventLog
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing


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


def at_home(path: Path) -> int:
    """Return the revision that the database's own file has, whatever is in its journal."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as reader:
        return int(reader.execute("SELECT revision FROM log_head").fetchone()[0])


def test_a_frozen_writer_keeps_nobody_from_tidying_later_nor_from_closing(path: Path) -> None:
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


def test_tidying_waits_for_no_reader(log: SQLiteEventLog, path: Path) -> None:
    """A frozen one would keep everybody from writing for as long."""
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


def test_a_tidied_log_is_written_where_its_journal_was(log: SQLiteEventLog, path: Path) -> None:
    """A commit that makes the file longer takes longer."""
    wal, sizes = path.with_name(path.name + "-wal"), []
    for name in ("a", "b", "c"):
        log.append([add(thing(name))], author=AUTHOR)
        log._sqlite_writer.idle()
        sizes.append(wal.stat().st_size)
    assert sizes[0] == sizes[1] == sizes[2] > 0
