"""The event log in a PostgreSQL database: any number of processes append to it and follow it, from any host.

Guarantees beyond the protocol's:
- An append is one round trip (`postgres_writer`), so a client stopped anywhere holds up no other; compaction, which
  needs several, is thrown out by the server when it stands still for a second.
- A dropped connection or a restarted server costs time, not an append and not a read: within `patience` seconds
  everything is tried again, and what an interrupted append has done is found out, never guessed.
- The primary may change: reads, appends and following go on with the new one, whose log is made sure to be the same
  one (`postgres_servers`); nothing is acknowledged, and nothing new is read, from one that was replaced.
- A server that does not answer is given up on: reading has no more than `pool_size` connections, and who finds none
  free is told so within seconds.
- Following others needs no luck with notifications: LISTEN is a hint, the head is looked at regularly anyway, and
  where a self-test shows that hints do not arrive (a pooler in transaction mode) it is looked at often.
- How durable "durable" is, is the database's setting: with a synchronous standby an acknowledged append survives
  the loss of the primary, without one it survives what the primary's disk survives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import psycopg
import structlog
from sqlalchemy import Connection, LargeBinary, func, select, true
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import FromClause

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock, pause
from ctrlmgr.errors import LogClosed, LogCorrupt, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog.anchor import Anchor
from ctrlmgr.eventlog.event import Event, Head
from ctrlmgr.eventlog.postgres.connection import BoundedConnection, read_failure
from ctrlmgr.eventlog.postgres.servers import POOL_SIZE, Servers, open_engine
from ctrlmgr.eventlog.postgres.writer import PostgresWriter
from ctrlmgr.eventlog.read_rows import read_head
from ctrlmgr.eventlog.schema import require_latest
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.eventlog.tables import event, object_

__all__ = ["PostgresEventLog", "open_engine"]

log = structlog.get_logger(__name__)

_POLL_WITH_HINTS = 1.0
_POLL_WITHOUT_HINTS = 0.03
_ECHO_PATIENCE = 1.0
_SLICE = 0.2
_HEAD_PATIENCE = 4.0
"""Seconds: between looks at the head with and without hints, for the self-test's echo, between looks at `closed`, for
the answer to where the log ends."""

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 2.0
_OWNER = (
    "SELECT tableowner FROM pg_tables WHERE tablename = 'event' AND schemaname = current_schema()"
    " AND NOT pg_has_role(current_user, tableowner, 'USAGE')"
)
_STANDSTILL = "SET LOCAL idle_in_transaction_session_timeout = "


class HeadWatch:
    """A connection that looks at the log's head and listens for hints that it has moved; for one thread at a time."""

    def __init__(self, connect: Callable[[], BoundedConnection]) -> None:
        """Connect with `connect` on first use, and again whenever the connection is lost."""
        self._connect = connect
        self._connection: BoundedConnection | None = None
        self.poll = _POLL_WITHOUT_HINTS  # seconds; how long a look at the head stays good without a hint

    def revision(self) -> Revision:
        """Return the log's head revision; raises psycopg.Error, after which the next call connects again."""
        try:
            if self._connection is not None and self._connection.is_former():
                self.close()
            connection = self._connection or self._listen()
            row = connection.execute("SELECT revision FROM log_head WHERE id = 1").fetchone()
        except psycopg.Error:
            self.close()
            raise
        return int(row[0]) if row else 0

    def _listen(self) -> BoundedConnection:
        """Connect, listen, and find out whether what is sent is heard."""
        self._connection = connection = self._connect()
        if connection.is_pooled:  # what it listens to there, others would hear
            self.poll = _POLL_WITHOUT_HINTS
            return connection
        connection.execute("LISTEN ctrlmgr")
        connection.execute("SELECT pg_notify('ctrlmgr', '0')")
        heard = next(connection.notifies(timeout=_ECHO_PATIENCE, stop_after=1), None)
        self.poll = _POLL_WITH_HINTS if heard else _POLL_WITHOUT_HINTS
        return connection

    def hint(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for a hint; False if none came. Raises psycopg.Error."""
        if self._connection is None or self._connection.is_pooled:
            return False
        try:
            return next(self._connection.notifies(timeout=timeout, stop_after=1), None) is not None
        except psycopg.Error:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PostgresEventLog(SQLLog):
    """An `EventLog` in a PostgreSQL database."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        random: Random,
        patience: float = 10.0,
        anchor: Anchor | None = None,
        pool_size: int = POOL_SIZE,
    ) -> None:
        """Open a migrated database with up to `pool_size` connections for reading; see `SQLLog`."""
        self._servers = Servers(url)
        for place in self._servers.unverified:
            log.warning("the database's certificate is not verified", server=str(place), better="sslmode=verify-full")
        connect = partial(self._servers.connect, patience=patience)
        engine = self._servers.engine(pool_size)
        self._autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._watch = HeadWatch(partial(connect, "watch"))
        self._watcher = threading.Lock()  # one thread at a time waits on _watch
        self._postgres_writer = PostgresWriter(partial(connect, "append"), known=0)
        try:
            require_latest(engine)
            super().__init__(
                engine,
                self._postgres_writer,
                clock=clock,
                random=random,
                patience=patience,
                anchor=anchor,
            )
        except DBAPIError as error:
            engine.dispose()
            raise read_failure(error.orig) from error
        except BaseException:
            engine.dispose()
            raise
        head = self.head()
        self._uuid = head.uuid
        self._postgres_writer.saw(head.revision)
        self.observe(self._saw)

    def _saw(self, events: Sequence[Event]) -> None:
        self._servers.saw(Head(self._uuid, events[-1].revision, events[-1].hash))

    def _body(self, events: FromClause) -> ColumnElement[bytes]:
        return func.convert_to(events.c.body, "UTF8", type_=LargeBinary)

    def _nearest(self, at: ColumnElement[int]) -> tuple[FromClause, ColumnElement[bool]]:
        # As a join with a condition it is planned for many objects as a hash of every event there is.
        nearest = (
            select(event.c.revision, event.c.previous)
            .where(event.c.object_id == object_.c.id, event.c.previous <= at)
            .order_by(event.c.previous.desc())
            .limit(1)
        )
        return nearest.correlate(object_).lateral("nearest"), true()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        connection = self._lend()
        try:
            with connection:
                yield connection
        except DBAPIError as error:
            raise self._translated(error) from error

    def _lend(self) -> Connection:
        """Take a connection from the pool, waiting up to `patience` seconds for a server that answers."""
        deadline = self._clock.monotonic() + self._patience
        delay = _FIRST_DELAY
        while not self._closed:
            try:
                return self._autocommit.connect()
            except PoolTimeout as error:
                raise LogUnavailable(f"all connections for reading are busy ({error})") from error
            except DBAPIError as error:
                if self._clock.monotonic() + delay > deadline:
                    raise self._translated(error) from error
            delay = self._back_off(delay)
        raise LogClosed

    def head(self) -> Head:
        """Return where the log ends; given up on after a few seconds, which is what tells that a database hangs."""
        with self._read() as connection:
            _be_quick(connection)
            head = read_head(connection)
        self._servers.saw(head)
        return head

    def begin_epoch(self, reason: str, *, above: Revision) -> Head:
        """Start a new incarnation; see `SQLLog`."""
        head = super().begin_epoch(reason, above=above)
        self._uuid = head.uuid
        self._servers.saw(head)
        return head

    def _back_off(self, delay: float) -> float:
        """Sleep about `delay` seconds and return the next, longer delay; jitter keeps a crowd from coming at once."""
        pause(self._clock, delay * self._random.uniform(0.5, 1.0))
        return min(delay * 2, _LONGEST_DELAY)

    def _translated(self, error: DBAPIError) -> LogUnavailable | SchemaOutdated | LogCorrupt:
        return read_failure(error.orig)

    @contextmanager
    def _consistent_read(self) -> Iterator[Connection]:
        with self._read() as connection, _transaction(connection, "REPEATABLE READ READ ONLY", standstill="60s"):
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        with self._read() as connection, _transaction(connection, "READ COMMITTED", standstill="1s"):
            # What is removed must not be what an append under way builds on.
            connection.exec_driver_sql("SELECT revision FROM log_head WHERE id = 1 FOR UPDATE")
            yield connection

    def _scrub(self) -> None:
        """Write the table anew; its owner alone may. Archives of the server's journal and standbys are not ours."""
        with self._read() as connection:
            owner = connection.exec_driver_sql(_OWNER).scalar()
            if owner is not None:
                raise LogUnavailable(f"what was removed is still in dead rows: run VACUUM (FULL) event as {owner}")
            connection.exec_driver_sql("VACUUM (FULL) event")

    def peek(self) -> None:
        """Return None: what other processes have committed takes a round trip to know."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is beyond `after` or `timeout` seconds have passed; return the head.

        A lost connection is opened again, with backoff; raises `LogUnavailable` if the database is still away
        when the time is up, `LogClosed` when the log is closed meanwhile.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        delay = _FIRST_DELAY
        with self._watcher:
            while not self._closed:
                try:
                    revision = self._watch.revision()
                    if revision > after or self._is_over(deadline):
                        self._postgres_writer.saw(revision)
                        return revision
                    self._await_hint(deadline)
                    delay = _FIRST_DELAY
                except psycopg.Error as error:
                    if self._is_over(deadline):
                        raise LogUnavailable(f"the event log cannot be read: {str(error).strip()}") from error
                    delay = self._back_off(delay)
        raise LogClosed

    def _is_over(self, deadline: float | None) -> bool:
        return deadline is not None and self._clock.monotonic() >= deadline

    def _await_hint(self, deadline: float | None) -> None:
        """Return when the head is worth another look."""
        look = self._clock.monotonic() + self._watch.poll
        until = look if deadline is None else min(look, deadline)
        while not self._closed and (left := until - self._clock.monotonic()) > 0:
            if self._watch.hint(min(left, _SLICE)):
                return

    def _release(self) -> None:
        with self._watcher:
            self._watch.close()
        self._postgres_writer.disconnect()


def _be_quick(connection: Connection) -> None:
    """Have the next answer awaited for a short time only, until the connection goes back to the pool."""
    borrowed: Any = connection.connection.dbapi_connection
    borrowed.patience = _HEAD_PATIENCE


@contextmanager
def _transaction(connection: Connection, mode: str, *, standstill: str) -> Iterator[None]:
    """Run a transaction on an autocommit connection; the server ends it when it idles for `standstill`."""
    connection.exec_driver_sql(f"BEGIN ISOLATION LEVEL {mode}; {_STANDSTILL}'{standstill}'")
    try:
        yield
    except BaseException:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
