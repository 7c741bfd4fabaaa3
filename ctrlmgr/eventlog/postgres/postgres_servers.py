"""Connects to the servers of one PostgreSQL URL, finds the primary, and checks that the primary has the expected log.

Guarantees:
- Only a primary is used, unless the URL allows standbys, because a standby may lack acknowledged appends.
- After a failover, the old primary may still be running. If there are several primaries, the primary with the newest
  timeline is used. After this process has seen a timeline, it never uses a primary with an older timeline.
- A primary with another log is refused (`LogRolledBack`). A log counts as another log if it has another incarnation,
  ends earlier, or has another event at a revision that this process has seen.
- After the primary has changed, connections to the former primary are no longer used, and calls that wait for the
  former primary end.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.errors import UndefinedColumn, UndefinedTable
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import InvalidatePoolError

from ctrlmgr.errors import LogRolledBack, SettingsError
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.postgres import arrays as postgres_arrays
from ctrlmgr.eventlog.postgres.postgres_connection import BoundedConnection
from ctrlmgr.eventlog.postgres.url import Place, parse_url

POOL_SIZE: Final = 8
"""The default maximum number of connections for reads."""

_POOL_PATIENCE: Final = 3.0
_LOCK_PATIENCE: Final = "4s"
_SILENCE: Final = 60.0
_CENSUS_PATIENCE: Final = 3
"""The maximum waits, in seconds.

In this order: the waits for a free pooled connection, for a lock, for the next bytes of a read, and for a connection to
one of several servers.
"""

_ENCODING: Final = "UTF8"
_PREPARE_AFTER: Final = 5
"""The number of uses after which a pooled connection prepares a statement.

A connection outside the pool prepares every statement on its first use.
"""

_WHO: Final = """
    SELECT pg_backend_pid(), pg_is_in_recovery(), (SELECT system_identifier FROM pg_control_system()),
           CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_insert_lsn()) END
"""
_WHO_AT_LEAST: Final = "SELECT pg_backend_pid(), pg_is_in_recovery(), 0, ''"
_WHERE_LOG_IS: Final = """
    SELECT h.uuid, h.revision, (SELECT e.hash FROM event e WHERE e.revision = %s) FROM log_head h WHERE h.id = 1
"""


class WrongServer(psycopg.OperationalError):
    """Raised for a server that must not be used: a standby, or a replaced primary."""


class Identity(NamedTuple):
    """The identity of a server: the system identifier of its cluster, and its timeline (0 if unknown)."""

    system: int
    timeline: int
    is_standby: bool
    is_pooled: bool
    """Whether a connection pooler is between this process and the server.

    Behind a pooler, the PID of the session differs from the PID that was sent when the connection was opened.
    """


class Servers:
    """Connects to the primary server that a URL names; an instance is thread-safe."""

    def __init__(self, url: str) -> None:
        """Parse a URL, without connecting; raises `SettingsError` if the URL is invalid."""
        self._target = target = parse_url(url)
        self.unverified = target.unverified()
        self._guard = threading.Lock()
        self._primary: Place | None = None  # the address of the primary that was found last
        self._timelines: dict[int, int] = {}  # the newest timeline seen of each cluster
        self._known: Head | None = None
        self._dialect = target.url.get_dialect()()

    def saw(self, head: Head) -> None:
        """Record a head of the log; every later primary must have a log that contains this head."""
        with self._guard:
            if self._known is None or self._known.uuid != head.uuid or self._known.revision < head.revision:
                self._known = head

    def engine(self, pool_size: int = POOL_SIZE) -> Engine:
        """Return an engine with a pool of up to `pool_size` connections, each checked before it is used."""
        engine = create_engine(
            self._target.url,
            creator=self._pool_connection,
            pool_pre_ping=True,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=_POOL_PATIENCE,
        )

        @event.listens_for(engine, "checkout")
        def lend(connection: BoundedConnection, *_: object) -> None:
            if connection.is_former():
                raise InvalidatePoolError("another server has become the primary")
            connection.patience = _SILENCE

        @event.listens_for(engine, "checkin")
        def take_back(connection: BoundedConnection | None, _: object) -> None:
            if connection is not None:
                connection.patience = _POOL_PATIENCE  # limits the check whether the connection still works

        return engine

    def _pool_connection(self) -> BoundedConnection:
        connection = self._connected("", {}, search=False, standby=False)
        connection.prepare_threshold = None if connection.is_pooled else _PREPARE_AFTER
        return connection

    def connect(self, role: str, *, patience: float, standby: bool = False, **defaults: str | int) -> BoundedConnection:
        """Open an autocommit connection to the primary, which the caller keeps until it fails.

        The argument `patience` is the maximum number of seconds that a call waits for a response. The argument `role`
        is added to the application name of the connection. The argument `defaults` contains connection parameters that
        the URL can override. If `standby` is set and there is no primary, a standby is accepted. Raises
        psycopg.OperationalError if no server can be used, and `LogRolledBack` if the primary has another log.
        """
        connection = self._connected(role, defaults, search=True, standby=standby)
        try:
            connection.patience = patience
            connection.autocommit = True
            connection.prepare_threshold = None if connection.is_pooled else 0
            postgres_arrays.register(connection)
            if not connection.is_pooled:
                connection.execute(f"SET lock_timeout = '{_LOCK_PATIENCE}'")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(
        self, role: str, defaults: Mapping[str, str | int], *, search: bool, standby: bool
    ) -> BoundedConnection:
        """Connect to the last known primary; if that fails and there are several servers, search for the primary."""
        standby = standby or not self._target.wants_primary
        places = self._target.places
        if len(places) == 1:
            return self._try(places[0], role, defaults, standby)[0]
        primary = self._primary
        if primary is not None and not search:
            with suppress(psycopg.Error, LogRolledBack):  # then search for another primary
                return self._try(primary, role, defaults, standby)[0]
        return self._best(role, {"connect_timeout": _CENSUS_PATIENCE, **defaults}, standby)

    def _best(self, role: str, defaults: Mapping[str, str | int], standby: bool) -> BoundedConnection:
        """Connect to all servers and return the connection to the primary with the newest timeline."""
        found: list[tuple[int, BoundedConnection]] = []
        problems: list[str] = []
        refusal: LogRolledBack | None = None
        for place in self._target.places:
            try:
                connection, timeline = self._try(place, role, defaults, standby)
            except psycopg.Error as error:
                problems.append(f"{place}: {str(error).strip()}")
            except LogRolledBack as error:
                refusal = error
            else:
                found.append((timeline, connection))
        if not found:
            raise refusal or psycopg.OperationalError("no server takes writes: " + "; ".join(problems))
        found.sort(key=lambda each: each[0])
        _, best = found.pop()
        for _, other in found:
            other.close()
        with self._guard:
            self._primary = best.place
        return best

    def _try(
        self, place: Place, role: str, defaults: Mapping[str, str | int], standby: bool
    ) -> tuple[BoundedConnection, int]:
        """Connect to one server and check that it may be used; return the connection and the server's timeline."""
        connection = self._open(place, role, defaults)
        try:
            identity = identify(connection)
            connection.is_pooled = identity.is_pooled
            if not identity.is_standby:
                self._check(identity, place)
            elif not standby:
                raise WrongServer(f"{place} is a standby: it accepts no writes, and may lag")
            if not standby:
                self._check_log(connection)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection, identity.timeline

    def _open(self, place: Place, role: str, defaults: Mapping[str, str | int]) -> BoundedConnection:
        _, account = self._dialect.create_connect_args(self._target.url)
        arguments: dict[str, Any] = {**account, **self._target.parameters(place, defaults)}
        if role:
            arguments["application_name"] = f"{arguments['application_name']} {role}"
        connection = BoundedConnection.connect(**arguments, autocommit=True)
        # A pooler may not report the encoding.
        encoding = connection.info.parameter_status("server_encoding") or _ENCODING
        if encoding != _ENCODING:
            connection.close()
            raise SettingsError(
                f"the database {self._target.url.database} has the encoding {encoding}, which cannot store every "
                f"string; create one with CREATE DATABASE … ENCODING '{_ENCODING}' TEMPLATE template0"
            )
        connection.patience = float(arguments["connect_timeout"])
        connection.place = place
        connection.is_former = lambda: self._primary not in (None, place)
        return connection

    def _check(self, identity: Identity, place: Place) -> None:
        """Raise `WrongServer` if a server is a replaced primary."""
        with self._guard:
            newest = self._timelines.get(identity.system, 0)
            if 0 < identity.timeline < newest:
                raise WrongServer(
                    f"{place} is on timeline {identity.timeline}, but timeline {newest} has begun: the server was the "
                    "primary before a failover, and must follow the new primary"
                )
            self._timelines[identity.system] = max(identity.timeline, newest)

    def _check_log(self, connection: BoundedConnection) -> None:
        """Raise `LogRolledBack` if the server's log is not the log that this process has used."""
        known = self._known  # read the known head before the query, because the log may be growing
        if known is None:
            return
        try:
            row = connection.execute(_WHERE_LOG_IS, (known.revision,)).fetchone()
        except (UndefinedTable, UndefinedColumn):
            return  # ignore the error: the next read or write reports it
        if row is not None:
            _compare(known, row[0], row[1], row[2])


def _compare(known: Head, uuid: str, revision: int, chain_hash: bytes | None) -> None:
    """Raise `LogRolledBack` unless the log contains the head `known`; if that event was compacted, accept the log."""
    if uuid != known.uuid:
        raise LogRolledBack(
            f"the database contains log {uuid}, but this process has used log {known.uuid}: the database was replaced, "
            "or restored as a new incarnation. Restart this process to use the new log"
        )
    if revision < known.revision:
        raise LogRolledBack(
            f"the database ends at revision {revision}, but this process has read revision {known.revision}: a standby "
            "without the newest events was promoted, or a backup was restored"
        )
    if chain_hash is not None and chain_hash != known.hash:
        raise LogRolledBack(
            f"revision {known.revision} differs from the one that this process has read: the database has "
            "continued from an older state and has lost later events"
        )


def open_engine(url: str, pool_size: int = POOL_SIZE) -> Engine:
    """Return an engine for the primary of `url`; raises `SettingsError` if the URL is invalid."""
    return Servers(url).engine(pool_size)


def identify(connection: psycopg.Connection[Any]) -> Identity:
    """Return the identity of the server of an autocommit connection.

    PgBouncer sends its own PID instead of PostgreSQL's PID. Some managed servers report no timeline.
    """
    try:
        row = connection.execute(_WHO, prepare=False).fetchone()
    except psycopg.OperationalError:
        raise
    except psycopg.Error:
        row = connection.execute(_WHO_AT_LEAST, prepare=False).fetchone()
    if row is None:
        raise psycopg.OperationalError("the server does not report its identity")
    timeline = int(row[3][:8], 16) if row[3] else 0
    return Identity(row[2], timeline, row[1], row[0] != connection.info.backend_pid)
