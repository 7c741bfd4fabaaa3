"""The event log in a SQLite file: embedded, durable, one committer thread a process.

Guarantees beyond the protocol's:
- WAL with `synchronous=FULL`: an acknowledged append survives a power cut, not only a killed process.
- Within a host several processes may append: an advisory lock on `<database>-lock` is held for each group, so they
  take turns fairly (SQLite's own busy handler lets writers starve) and no two of them ever write or checkpoint at
  the same time (SQLite before 3.51.3 can corrupt a WAL then).
- Readers never wait for writers. A process that is stopped exactly between BEGIN and COMMIT keeps the others from
  writing until it goes on or dies: that is what one file can promise; PostgreSQL promises more.
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
from ctrlmgr.eventlog.schema import require_latest
from ctrlmgr.eventlog.sqlite.file_lock import FileLock
from ctrlmgr.eventlog.sqlite.writer import CHECKPOINT, SQLiteWriter
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.eventlog.tables import event, object_

_POLL = 0.01
"""Seconds between looks at the head that processes share."""
_READ = 0.5
"""Seconds after which the file is read all the same."""

_BUSY_MILLISECONDS = 2_000

PAGE = 8_192
"""Bytes of a page of a new file. With SQLite's 4,096 a pod, somewhat larger than half of that, has a page of its own:
half of the file is empty, and a create takes an eighth more of the processor. 16,384 are no quicker, and a third more
is written to the disk. A file that was made before keeps its own."""

_CACHE_KIB = 4_096
"""Pages that each connection which reads keeps: it reads ranges, and the system has the file in memory as well."""
_MUCH_KIB = 32_768
"""Pages that a connection keeps which writes all over the file: those of the index come up again and again."""


def open_engine(path: Path) -> Engine:
    """Return an engine for a SQLite file, transactions under our control; the file is made when missing."""
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
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # checkpoints happen under the lock, see SQLiteWriter
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten

    return engine


def open_read_only(path: Path) -> Engine:
    """Return an engine for a SQLite file that cannot be written through it; nothing is made when it is missing."""
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
    """Have commits checkpoint a WAL of so many pages (0: never), and keep so many KiB of pages in memory."""
    connection.exec_driver_sql(f"PRAGMA wal_autocheckpoint = {pages}")
    connection.exec_driver_sql(f"PRAGMA cache_size = -{kib}")


def own_connection(engine: Engine) -> sqlite3.Connection:
    """Return a connection configured like the pool's but not in it: ours to keep open and to close."""
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
    ) -> None:
        """Open a migrated file; see `SQLLog`."""
        with ExitStack() as undo:  # of what was opened, should something after it fail
            engine = open_engine(path)
            undo.callback(engine.dispose)
            require_latest(engine)
            self._lock = FileLock(path.with_name(path.name + "-lock"), clock=clock, patience=patience)
            self._sqlite_writer = SQLiteWriter(own_connection(engine), self._lock)
            undo.callback(self._sqlite_writer.close)
            # Who waits reads on a connection of its own; one thread at a time does.
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
            )
            undo.pop_all()

    def _body(self, events: FromClause) -> ColumnElement[bytes]:
        return cast(events.c.body, LargeBinary)

    def _nearest(self, at: ColumnElement[int]) -> tuple[FromClause, ColumnElement[bool]]:
        probe, nearest = event.alias("probe"), event.alias("nearest")
        newest = select(func.max(probe.c.previous)).where(probe.c.object_id == object_.c.id, probe.c.previous <= at)
        return nearest, (nearest.c.object_id == object_.c.id) & (nearest.c.previous == newest.scalar_subquery())

    def _since(self, revision: Revision) -> tuple[ColumnElement[bool], ...]:
        """Say it by `previous`, by which SQLite finds events of an object: by revision it looked at all there are."""
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
        """Yield what begins transactions on one connection, which keeps pages and checkpoints as the writer's does.

        Without that the WAL would grow as large as all that is written, and what is read as slow as a large WAL is.
        """
        with self._read() as connection:
            page = connection.exec_driver_sql("PRAGMA page_size").scalar_one()  # that of an older file may be another
            _configure(connection, pages=CHECKPOINT // page, kib=_MUCH_KIB)
            try:
                yield partial(self._write_on, connection)
            finally:
                _configure(connection, pages=0, kib=_CACHE_KIB)

    @contextmanager
    def _write_on(self, connection: Connection) -> Iterator[Connection]:
        """Yield a connection in a transaction that ends, one way or the other, before others have their turn."""
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
        """Write the file anew and empty its journal: nothing is left in free pages, nor in what pages no longer use."""
        try:
            with self._lock, self._engine.connect() as connection:
                connection.exec_driver_sql("VACUUM")
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        except DBAPIError as error:
            raise self._translated(error) from error
        if busy:
            raise LogUnavailable("the journal could not be emptied, because it is being read: try again")

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is beyond `after` or `timeout` seconds have passed; return the head.

        It looks every 10 ms at the memory that all processes share, for this process's commits, too: who has to know of
        them at once observes them, and waking a thread for each would take as long as the commit. It reads the file
        twice a second, and before it says that nothing has come: a process may have died after its commit, before it
        told of it. Raises `LogUnavailable` when the file cannot be read, `LogClosed` when the log is closed meanwhile.
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
        """Return the head as it is known for next to nothing; called by one thread at a time."""
        return self._lock.head

    def _read_head(self) -> Revision:
        try:
            head: Revision = self._waiting.execute("SELECT revision FROM log_head").fetchone()[0]
        except sqlite3.Error as error:
            raise LogUnavailable(f"the event log cannot be read: {error}") from error
        return head

    def peek(self) -> Revision:
        """Return the newest revision: a look at memory that all processes share."""
        if self._closed:
            raise LogClosed
        return self._lock.head

    def _release(self) -> None:
        with self._closing:
            self._closing.notify_all()
        with self._waiter:
            self._waiting.close()
        self._sqlite_writer.close()
