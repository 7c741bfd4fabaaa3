"""The event log in a PostgreSQL database: any number of processes on any hosts append to it and follow it.

Guarantees, in addition to those of the protocol:
- An append is one round trip (`postgres_writer`), so a client that is stopped never blocks other appends. Compaction
  needs several round trips; if the compacting process stops for a second, the server aborts the transaction.
- A lost connection or a restarted server delays calls but does not fail them, because reads and appends are retried for
  `patience` seconds. The log looks up whether an interrupted append was committed.
- The primary server may change. Reads, appends and waits continue with a new primary, after a check that the new
  primary has the same log (`postgres_servers`). Appends and new reads never use a replaced primary.
- Reads use at most `pool_size` connections. If a hanging server occupies all connections for reads, a further read
  fails within seconds.
- The log detects the appends of other processes even without notifications (LISTEN), because it also polls the head. If
  a self-test shows that notifications do not arrive, as behind a pooler in transaction mode, the log polls the head
  more often.
- The settings of the database determine how durable an append is. If there is a synchronous standby, an acknowledged
  append survives the loss of the primary. If there is no synchronous standby, appends are lost if the primary's disk is
  lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

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
from ctrlmgr.eventlog.database_schema import require_usable
from ctrlmgr.eventlog.event import Event, Head
from ctrlmgr.eventlog.log_tables import event, object_
from ctrlmgr.eventlog.postgres.postgres_connection import BoundedConnection, read_failure
from ctrlmgr.eventlog.postgres.postgres_servers import POOL_SIZE, Servers, open_engine
from ctrlmgr.eventlog.postgres.postgres_writer import PostgresWriter
from ctrlmgr.eventlog.read_rows import read_head
from ctrlmgr.eventlog.sqllog import SQLLog

if TYPE_CHECKING:
    from ctrlmgr.encryption.key_providers import KeyProviders

__all__ = ["PostgresEventLog", "open_engine"]

log = structlog.get_logger(__name__)

_POLL_WITH_HINTS = 1.0
_POLL_WITHOUT_HINTS = 0.03
_ECHO_PATIENCE = 1.0
_SLICE = 0.2
_HEAD_PATIENCE = 4.0
"""Timeouts and intervals of the log, in seconds.

In this order: the interval of head polls with notifications and without notifications, the wait for the self-test's
notification, the interval of checks of `closed`, the maximum time to read the head.
"""

_FIRST_DELAY = 0.05
_LONGEST_DELAY = 2.0
_OWNER = (
    "SELECT tableowner FROM pg_tables WHERE tablename = 'event' AND schemaname = current_schema()"
    " AND NOT pg_has_role(current_user, tableowner, 'USAGE')"
)
_STANDSTILL = "SET LOCAL idle_in_transaction_session_timeout = "


class HeadWatch:
    """Reads the log's head and listens for notifications of a new head; only one thread at a time may use it."""

    def __init__(self, connect: Callable[[], BoundedConnection]) -> None:
        """Create an instance that uses `connect` to connect on first use, and again after a lost connection."""
        self._connect = connect
        self._connection: BoundedConnection | None = None
        self.poll = _POLL_WITHOUT_HINTS  # seconds until the head is read even without a hint

    def revision(self) -> Revision:
        """Return the log's head revision.

        Raises psycopg.Error if the connection fails; the next call then connects again.
        """
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
        """Connect to the server, listen for notifications, and test whether notifications arrive."""
        self._connection = connection = self._connect()
        if connection.is_pooled:  # other clients of the pooler would receive the notifications
            self.poll = _POLL_WITHOUT_HINTS
            return connection
        connection.execute("LISTEN ctrlmgr")
        connection.execute("SELECT pg_notify('ctrlmgr', '0')")
        notification = next(connection.notifies(timeout=_ECHO_PATIENCE, stop_after=1), None)
        self.poll = _POLL_WITH_HINTS if notification else _POLL_WITHOUT_HINTS
        return connection

    def hint(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for a notification; return False if none arrived. Raises psycopg.Error."""
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
        providers: KeyProviders | None = None,
        pool_size: int = POOL_SIZE,
    ) -> None:
        """Open a migrated database with up to `pool_size` connections that serve reads.

        The class `SQLLog` documents the other arguments and the errors.
        """
        self._servers = Servers(url)
        for place in self._servers.unverified:
            log.warning("database certificate not verified", server=str(place), better="sslmode=verify-full")
        connect = partial(self._servers.connect, patience=patience)
        engine = self._servers.engine(pool_size)
        self._autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._watch = HeadWatch(partial(connect, "watch"))
        self._watcher = threading.Lock()  # one thread at a time waits on _watch
        self._postgres_writer = PostgresWriter(partial(connect, "append"), known=0)
        try:
            require_usable(engine)
            super().__init__(
                engine,
                self._postgres_writer,
                clock=clock,
                random=random,
                patience=patience,
                anchor=anchor,
                providers=providers,
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
        # The query has a subquery for each object, because PostgreSQL would hash all events for a join of many objects.
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
        """Return a connection from the pool; wait up to `patience` seconds until a server answers."""
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
        """Return the head of the log; if the database hangs, raise an error after a few seconds."""
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
        """Sleep for about `delay` seconds; random jitter spreads the retries of many clients.

        Return the delay before the next retry, in seconds.
        """
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
            # Lock the head, so that no concurrent append reads a row that this transaction removes.
            connection.exec_driver_sql("SELECT revision FROM log_head WHERE id = 1 FOR UPDATE")
            yield connection

    def _scrub(self) -> None:
        """Rewrite the event table, which only its owner may do.

        After the rewrite, removed data still remains in WAL archives and standbys.
        """
        with self._read() as connection:
            owner = connection.exec_driver_sql(_OWNER).scalar()
            if owner is not None:
                raise LogUnavailable(f"the removed data is still in dead rows: run VACUUM (FULL) event as {owner}")
            connection.exec_driver_sql("VACUUM (FULL) event")

    def peek(self) -> None:
        """Return None, because reading the newest revision of other processes needs a round trip."""

    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head.

        The log reopens a lost connection, with backoff. Raises `LogUnavailable` if the database is still
        unavailable at the deadline, and `LogClosed` if the log is closed meanwhile.
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
        """Wait for a notification, or until the next poll of the head."""
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
    """Limit the wait for each response of the server to a few seconds, until the connection returns to the pool."""
    borrowed: Any = connection.connection.dbapi_connection
    borrowed.patience = _HEAD_PATIENCE


@contextmanager
def _transaction(connection: Connection, mode: str, *, standstill: str) -> Iterator[None]:
    """Run a transaction on an autocommit connection.

    The server aborts the transaction if it is idle for `standstill`.
    """
    connection.exec_driver_sql(f"BEGIN ISOLATION LEVEL {mode}; {_STANDSTILL}'{standstill}'")
    try:
        yield
    except BaseException:
        if not connection.invalidated:
            connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
