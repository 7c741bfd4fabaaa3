"""Connections to PostgreSQL, and what their failures mean.

Guarantees:
- A call on a connection that nobody answers any more ends: dead peers are noticed by the network's timeouts within
  about 10 seconds, a server that is alive but stuck by the call's own.
- A failure is definite (`LogUnavailable` and the errors that stop us: nothing was written) only if the server itself
  has said so. Everything else is `OutcomeUnknown`.
- Behind a pooler that hands its sessions around, nothing that lives in a session is relied on.
"""

from __future__ import annotations

import select
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from sqlalchemy import URL, Engine, create_engine, event, make_url

from ctrlmgr.errors import LogCorrupt, LogError, LogRolledBack, LogUnavailable, OutcomeUnknown, SchemaOutdated
from ctrlmgr.eventlog import postgres_arrays

_DRIVER = "postgresql+psycopg"
_DEFAULTS: dict[str, str | int] = {
    "application_name": "ctrlmgr",
    "connect_timeout": 5,  # seconds
    "keepalives": 1,
    "keepalives_idle": 5,  # seconds until the first probe
    "keepalives_interval": 2,  # seconds between probes
    "keepalives_count": 3,  # probes lost until the peer counts as dead
    "tcp_user_timeout": 8000,  # milliseconds that sent data may stay unacknowledged
}
"""Connection parameters that a URL may set otherwise."""

OLDER_THAN_WRITER = "CM001"
COMPACTED = "CM002"
"""SQLSTATEs of the append function, see migrations/postgres/append.sql."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection whose every wait for the server ends after `patience` seconds, with OperationalError."""

    patience: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """Wait for the server; see psycopg."""
        return super().wait(gen, interval, self.patience if timeout is None else timeout)


def parse_url(url: str) -> URL:
    """Read `postgresql://…`, `postgres://…` or SQLAlchemy's own form of it; the driver is always psycopg."""
    return make_url(f"{_DRIVER}://{url.partition('://')[2]}")


def open_engine(url: str) -> Engine:
    """Return an engine whose pool checks a connection before it lends it."""
    parsed = parse_url(url)
    engine = create_engine(parsed, connect_args=_defaults(parsed), pool_pre_ping=True)

    @event.listens_for(engine, "connect")
    def configure(connection: psycopg.Connection[Any], _: object) -> None:
        if is_pooled(connection):
            connection.prepare_threshold = None

    return engine


def _defaults(url: URL) -> dict[str, str | int]:
    return {name: value for name, value in _DEFAULTS.items() if name not in url.query}


def connect(engine: Engine, *, patience: float, role: str, writable: bool) -> BoundedConnection:
    """Open an autocommit connection of its own to the engine's database.

    `patience` (seconds) bounds each wait for an answer, `role` is added to the application name, `writable` asks
    for a server that accepts writes when the URL names several. Raises psycopg.OperationalError.
    """
    _, arguments = engine.dialect.create_connect_args(engine.url)
    arguments = {**_defaults(engine.url), **arguments}
    arguments["application_name"] = f"{arguments['application_name']} {role}"
    if writable:
        arguments.setdefault("target_session_attrs", "read-write")
    connection = BoundedConnection.connect(**arguments, autocommit=True)
    connection.patience = patience
    connection.prepare_threshold = None if is_pooled(connection) else 0
    postgres_arrays.register(connection)
    return connection


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether the session at the other end is not the one that was greeted: a pooler stands between.

    PgBouncer greets with a process id of its own making, and in transaction mode breaks prepared statements.
    """
    autocommit, connection.autocommit = connection.autocommit, True
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.autocommit = autocommit
    return row is None or row[0] != connection.info.backend_pid


def is_open(connection: psycopg.Connection[Any]) -> bool:
    """Whether an idle connection still leads somewhere, as far as can be told without asking the server."""
    if connection.closed:
        return False
    try:
        while select.select([connection.fileno()], [], [], 0)[0]:
            connection.pgconn.consume_input()  # raises at the end of the stream
            connection.pgconn.is_busy()
    except psycopg.OperationalError:
        return False
    return True


def append_failure(error: psycopg.Error, connection: psycopg.Connection[Any]) -> LogError:
    """Return what a failed call of the append function means for what it was to write."""
    state = error.sqlstate or ""
    text = str(error).strip()
    if not state or connection.closed or state.startswith(("08", "57P")):
        return OutcomeUnknown(f"the connection failed during an append: {text}")
    if state in _NO_SCHEMA:
        return SchemaOutdated()
    if state == OLDER_THAN_WRITER:
        return LogRolledBack("the database does not know the newest events this process has seen: it was restored "
                             "from a backup, or a standby took over that had not received them")  # fmt: skip
    if state == COMPACTED:
        return OutcomeUnknown("compaction has removed what would tell whether the append was committed")
    if state.startswith(("23", "XX")):
        return LogCorrupt(f"the database contradicts itself: {text}")
    return LogUnavailable(f"the database refused to write: {text}")


def read_failure(error: BaseException | None) -> LogUnavailable | SchemaOutdated | LogCorrupt:
    """Return what a failed read means."""
    state = (error.sqlstate or "") if isinstance(error, psycopg.Error) else ""
    if state in _NO_SCHEMA:
        return SchemaOutdated()
    if state.startswith("XX"):
        return LogCorrupt(f"the database is damaged: {str(error).strip()}")
    return LogUnavailable(f"the event log cannot be read: {str(error).strip()}")


_NO_SCHEMA = frozenset({"42P01", "42883", "42703", "3F000", "P0002"})
"""Undefined table, function, column or schema; no head row."""
