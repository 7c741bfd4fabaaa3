"""Opens the event log at a database URL; only this module chooses the implementation of the log.

The module imports SQLAlchemy and a driver only if the requested database needs them.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable, SettingsError
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.eventlog.session import FileSessions, NoSessions, Sessions

if TYPE_CHECKING:
    from ctrlmgr.encryption.key_providers import KeyProviders
    from ctrlmgr.eventlog.anchor_signing import Sealing
    from ctrlmgr.eventlog.sqllog import SQLLog

MEMORY = "memory:"
_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")


def open_log(
    url: str,
    *,
    clock: Clock,
    random: Random,
    migrate: bool = False,
    patience: float = 10.0,
    anchor: Path | None = None,
    sealing: Sealing | None = None,
    pool_size: int = 8,
    providers: KeyProviders | None = None,
) -> SQLLog | MemoryEventLog:
    """Open the log at `url`: `sqlite:///PATH`, `postgresql://USER@HOST/DATABASE` (see `postgres.url`) or `memory:`.

    If `migrate` is set, the schema is upgraded first. `patience` is the number of seconds for which calls to a failing
    database are retried. `pool_size` is the maximum number of concurrent connections for reads from PostgreSQL.
    `anchor` is the path of the anchor file; for SQLite, the default is beside the database. The argument `sealing`
    specifies how the anchor is signed and shipped. The ciphers of `providers` encrypt the log (except a log in memory).
    Raises `SettingsError` if the URL has an unknown form, and the
    errors of `SQLLog`.
    """
    if url == MEMORY:
        return MemoryEventLog(clock=clock, random=random)
    if migrate:
        migrate_log(url, clock=clock, random=random)
    if url.startswith(_SQLITE):
        from ctrlmgr.eventlog.anchor import Anchor
        from ctrlmgr.eventlog.sqlite.sqlite_log import SQLiteEventLog

        path = _sqlite_path(url)
        kept = Anchor(anchor or path.with_name(path.name + "-anchor"), clock, sealing)
        return SQLiteEventLog(path, clock=clock, random=random, patience=patience, anchor=kept, providers=providers)
    if url.startswith(_POSTGRES):
        from ctrlmgr.eventlog.anchor import Anchor
        from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog

        there = Anchor(anchor, clock, sealing) if anchor else None
        return PostgresEventLog(
            url,
            clock=clock,
            random=random,
            patience=patience,
            anchor=there,
            pool_size=pool_size,
            providers=providers,
        )
    raise _unknown(url)


def open_log_for_reading(
    url: str, *, clock: Clock, random: Random, patience: float = 10.0, providers: KeyProviders | None = None
) -> SQLLog:
    """Open the log at `url` read-only, without creating, migrating or writing anything, and without using its anchor.

    If the log is a SQLite file, the file is opened read-only. Raises `SettingsError` if the URL names a log in memory,
    which other processes cannot read. The function also raises the errors of `SQLLog`.
    """
    if url.startswith(_SQLITE):
        from ctrlmgr.eventlog.sqlite.read_only_log import SQLiteReading

        return SQLiteReading(_sqlite_path(url), clock=clock, random=random, providers=providers)
    if url.startswith(_POSTGRES):
        from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog

        # The returned log opens a connection for writes only when a write needs a connection.
        return PostgresEventLog(url, clock=clock, random=random, patience=patience, providers=providers)
    raise _unknown(url)


def open_sessions(url: str, *, clock: Clock) -> Sessions:
    """Return the sessions of the processes that have opened the log at `url`."""
    if url.startswith(_SQLITE):
        path = _sqlite_path(url)
        return FileSessions(path.with_name(path.name + "-sessions"))
    if url.startswith(_POSTGRES):
        from ctrlmgr.eventlog.postgres.postgres_session import postgres_sessions

        return postgres_sessions(url, clock=clock)
    return NoSessions()


def migrate_log(url: str, *, clock: Clock, random: Random) -> str | None:
    """Upgrade the schema of the log at `url`; return the previous schema version; None if the database is new.

    Raises `LogUnavailable` if the database does not exist or cannot be reached, and `SchemaOutdated` if it is newer
    than this ctrlmgr.
    """
    from sqlalchemy.exc import DBAPIError

    from ctrlmgr.eventlog import database_schema

    path = None
    if url.startswith(_SQLITE):
        from ctrlmgr.eventlog.sqlite.sqlite_log import open_engine

        path = _sqlite_path(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        engine = open_engine(path)
    elif url.startswith(_POSTGRES):
        from ctrlmgr.eventlog.postgres.postgres_log import open_engine as open_postgres

        engine = open_postgres(url)
    else:
        raise _unknown(url)
    try:
        return database_schema.upgrade(engine, clock=clock, random=random)
    except DBAPIError as error:
        reason = f"the database cannot be migrated: {error.orig}"
        raise LogUnavailable(_refused(path, reason) if path else reason) from error
    finally:
        engine.dispose()


def _refused(path: Path, reason: str) -> str:
    """Return the reason why SQLite cannot use a file, with the file's path and the operating system's error."""
    try:
        with path.open("ab"):  # SQLite does not report this reason
            return f"{reason} ({path})"
    except OSError as error:
        return f"{reason} ({path}: {error.strerror})"


def _sqlite_path(url: str) -> Path:
    return Path(url.removeprefix(_SQLITE))


def _unknown(url: str) -> SettingsError:
    scheme = url.split(":", 1)[0]
    return SettingsError(
        f"database.url: {scheme!r} is no database ctrlmgr knows; "
        "use sqlite:///PATH, postgresql://HOST/DATABASE or memory:"
    )
