"""The event log in a SQLite file: embedded and durable, with one committer thread per process.

Guarantees, in addition to those of the protocol:
- The database uses a WAL with `synchronous=FULL`, so an acknowledged append survives even a power failure.
- Several processes on one host may append to the log. A process holds an advisory lock on `<database>-lock` while it
  writes a group. With this lock, all processes make progress; with SQLite's own busy handler, a writer can starve. Two
  processes never write or checkpoint at the same time, because that can corrupt the WAL in SQLite before 3.51.3.
- Readers never wait for writers. A process that is stopped between BEGIN and COMMIT blocks other writers until the
  process continues or dies. In PostgreSQL, a stopped process blocks no other process.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from typing import cast as cast_type
from urllib.parse import quote

from sqlalchemy import Connection, Engine, LargeBinary, cast, create_engine, func, select
from sqlalchemy import event as engine_events
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import FromClause

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogClosed, LogUnavailable
from ctrlmgr.eventlog.anchor import Anchor
from ctrlmgr.eventlog.compaction import Write
from ctrlmgr.eventlog.database_schema import require_usable
from ctrlmgr.eventlog.log_tables import event, object_
from ctrlmgr.eventlog.sqlite.file_lock import FileLock
from ctrlmgr.eventlog.sqlite.sqlite_writer import CHECKPOINT, SQLiteWriter
from ctrlmgr.eventlog.sqllog import SQLLog

if TYPE_CHECKING:
    from ctrlmgr.encryption.key_providers import KeyProviders

_POLL = 0.01
"""The number of seconds between reads of the head in shared memory."""
_READ = 0.5
"""The maximum number of seconds between reads of the database file."""

_BUSY_MILLISECONDS = 2_000

PAGE = 8_192
"""The page size of a new database file, in bytes.

A pod needs more than half of a page of SQLite's default size (4,096), so nearly half of each page would be empty.
Larger pages (16,384) are not faster, and cause more bytes to be written. An existing file keeps its page size.
"""

_CACHE_KIB = 4_096
"""The size, in KiB, of the page cache of each connection for reads.

Most reads are of ranges, and the operating system caches the file as well.
"""
_MUCH_KIB = 32_768
"""The size, in KiB, of the page cache of a connection that writes in all parts of the file, and so uses index pages
repeatedly.
"""


def open_engine(path: Path) -> Engine:
    """Return an engine for a SQLite file, with explicit transactions; the file is created if it is missing."""
    engine = create_engine(
        f"sqlite:///{path}",
        connect_args={"isolation_level": None, "check_same_thread": False, "cached_statements": 128},
    )

    @engine_events.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        connection.execute(f"PRAGMA page_size = {PAGE}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # SQLiteWriter makes the checkpoints, holding the lock
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA secure_delete = ON")  # overwrites deleted data

    return engine


def open_read_only(path: Path) -> Engine:
    """Return a read-only engine for a SQLite file; a missing file is not created."""
    engine = create_engine(
        f"sqlite:///file:{quote(str(path.absolute()))}?mode=ro&uri=true",
        connect_args={"isolation_level": None, "check_same_thread": False},
    )

    @engine_events.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")

    return engine


def _configure(connection: Connection, *, pages: int, kib: int) -> None:
    """Let a connection checkpoint the WAL at `pages` pages (0 means never), and cache up to `kib` KiB of pages."""
    connection.exec_driver_sql(f"PRAGMA wal_autocheckpoint = {pages}")
    connection.exec_driver_sql(f"PRAGMA cache_size = -{kib}")


def own_connection(engine: Engine) -> sqlite3.Connection:
    """Return a connection outside the pool, with the configuration of the pool's connections.

    The caller must close the connection.
    """
    pooled = engine.raw_connection()
    connection = pooled.dbapi_connection
    pooled.detach()
    return cast_type(sqlite3.Connection, connection)


class SQLiteEventLog(SQLLog):
    """An `EventLog` in a SQLite file."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        random: Random,
        patience: float = 10.0,
        anchor: Anchor | None = None,
        providers: KeyProviders | None = None,
    ) -> None:
        """Open a file that has the newest schema; `SQLLog` documents the arguments."""
        with ExitStack() as undo:  # closes the opened connections if a later step fails
            engine = open_engine(path)
            undo.callback(engine.dispose)
            require_usable(engine)
            self._lock = FileLock(path.with_name(path.name + "-lock"), clock=clock, patience=patience)
            self._sqlite_writer = SQLiteWriter(own_connection(engine), self._lock)
            undo.callback(self._sqlite_writer.close)
            # Waiting threads read on their own connection; only one thread uses it at a time.
            self._waiting = own_connection(engine)
            undo.callback(self._waiting.close)
            self._waiter = threading.Lock()
            self._closing = threading.Condition()
            super().__init__(
                engine,
                self._sqlite_writer,
                clock=clock,
                random=random,
                patience=patience,
                anchor=anchor,
                providers=providers,
            )
            undo.pop_all()

    def _body(self, events: FromClause) -> ColumnElement[bytes]:
        return cast(events.c.body, LargeBinary)

    def _nearest(self, at: ColumnElement[int]) -> tuple[FromClause, ColumnElement[bool]]:
        probe, nearest = event.alias("probe"), event.alias("nearest")
        newest = select(func.max(probe.c.previous)).where(probe.c.object_id == object_.c.id, probe.c.previous <= at)
        return nearest, (nearest.c.object_id == object_.c.id) & (nearest.c.previous == newest.scalar_subquery())

    def _since(self, revision: Revision) -> tuple[ColumnElement[bool], ...]:
        """Select events by `previous`, which the index of each object's events contains.

        A selection by revision would read all events.
        """
        probe = event.alias("probe")
        newest = select(func.max(probe.c.previous)).where(
            probe.c.object_id == object_.c.id, probe.c.previous <= revision
        )
        from_there = event.c.previous >= func.coalesce(newest.correlate(object_).scalar_subquery(), 0)
        return object_.c.head_revision > revision, from_there

    @contextmanager
    def _consistent_read(self) -> Iterator[Connection]:
        with self._read() as connection:
            connection.exec_driver_sql("BEGIN")
            yield connection
            connection.exec_driver_sql("COMMIT")

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._read() as connection, self._write_on(connection):
            yield connection

    @contextmanager
    def _write_much(self) -> Iterator[Write]:
        """Yield a function that opens write transactions on one connection, configured like the writer's connection.

        If the connection had other settings, the WAL would grow with every write, and reads of a large WAL are slow.
        """
        with self._read() as connection:
            # An older file may have another page size.
            page = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
            _configure(connection, pages=CHECKPOINT // page, kib=_MUCH_KIB)
            try:
                yield partial(self._write_on, connection)
            finally:
                _configure(connection, pages=0, kib=_CACHE_KIB)

    @contextmanager
    def _write_on(self, connection: Connection) -> Iterator[Connection]:
        """Yield a connection in a write transaction, which ends before the lock is released."""
        if self._closed:
            raise LogClosed
        with self._lock:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
            self._lock.head = connection.exec_driver_sql("SELECT revision FROM log_head").scalar_one()

    def _scrub(self) -> None:
        """Rewrite the file and empty its journal, so that no free page or unused space contains removed data."""
        try:
            with self._lock, self._engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        except DBAPIError as error:
            raise self._translated(error) from error
        if busy:
            raise LogUnavailable("the journal could not be truncated, because another process reads it; try again")

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head.

        The waiting thread reads the head in shared memory every 10 ms, because waking up a thread for each commit would
        take as long as the commit itself. Callers that need this process's commits immediately must use `observe`. The
        thread also reads the file twice a second and before a timeout, because a process may have died after a commit
        and before it updated the head. Raises `LogUnavailable` if the file cannot be read, and `LogClosed` if the log
        is closed meanwhile.
        """
        now = self._clock.monotonic
        deadline = now() + (math.inf if timeout is None else timeout)
        reading = min(deadline, now() + _READ)
        with self._waiter:
            while not self._closed:
                if (head := self._look()) > after:
                    return head
                if now() >= reading:
                    head = self._read_head()
                    if head > after or now() >= deadline:
                        return head
                    reading = min(deadline, now() + _READ)
                with self._closing:
                    if not self._closed:
                        self._clock.wait(self._closing, max(min(_POLL, reading - now()), 0.0))
        raise LogClosed

    def _look(self) -> Revision:
        """Return the head without a system call; only one thread at a time may call this method."""
        return self._lock.head

    def _read_head(self) -> Revision:
        try:
            head: Revision = self._waiting.execute("SELECT revision FROM log_head").fetchone()[0]
        except sqlite3.Error as error:
            raise LogUnavailable(f"the event log cannot be read: {error}") from error
        return head

    def peek(self) -> Revision:
        """Return the newest revision from the memory that all processes share."""
        if self._closed:
            raise LogClosed
        return self._lock.head

    def _release(self) -> None:
        with self._closing:
            self._closing.notify_all()
        with self._waiter:
            self._waiting.close()
        self._sqlite_writer.close()
