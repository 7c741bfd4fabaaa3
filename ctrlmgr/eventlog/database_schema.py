"""Manages the schema of a database: checks its version, and applies missing migrations.

A database may have a newer schema than this ctrlmgr knows, so that servers of two versions can run together during an
upgrade. The table `schema_support` contains the oldest schema version that a ctrlmgr must know. A migration that only
adds tables, columns or indexes leaves this version unchanged.

For a new SQLite database, `migrations/sqlite.sql` creates the schema that results from all migrations. Therefore the
first start need not load Alembic, which takes as long as the rest of the start. Alembic only upgrades databases with an
older schema.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

from sqlalchemy import Connection, Engine, column, inspect, select, table
from sqlalchemy.exc import DBAPIError

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CopyUnfinished, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.log_tables import log_epoch, log_head, schema_support

LATEST = "0009"
"""The name of the newest migration; a test compares it with the migrations folder."""
UNFINISHED = f"unfinished copy {LATEST}"
"""The version that marks an unfinished copy of a log; only the copy command uses such a database."""
SQLITE_SCHEMA = "sqlite.sql"
"""The file in the migrations folder with the newest SQLite schema; scripts/generate writes it from the migrations."""
BETWEEN_STATEMENTS = ";\n\n"


def migrations_folder() -> Path:
    """Return the folder of migrations: inside the installed package, or next to the package in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def version(connection: Connection) -> str | None:
    """Return the newest migration that was applied to the database; None if the database has no event log."""
    return _value(connection, "alembic_version", "version_num")


def oldest_supported(connection: Connection) -> str | None:
    """Return the oldest schema version that a ctrlmgr must know; None if the database is older than schema 0008."""
    return _value(connection, schema_support.name, schema_support.c.oldest.name)


def _value(connection: Connection, relation: str, name: str) -> str | None:
    """Return the value in column `name` of a table with one row; None if the table or the row is missing."""
    if not inspect(connection).has_table(relation):
        return None
    found = connection.execute(select(column(name)).select_from(table(relation))).scalar()
    return str(found) if found is not None else None


def require_usable(engine: Engine) -> None:
    """Raise `SchemaOutdated` unless this ctrlmgr can use the database, and `LogUnavailable` if it cannot be read."""
    try:
        with engine.connect() as connection:
            found, oldest = version(connection), oldest_supported(connection)
    except DBAPIError as error:
        raise LogUnavailable(f"the database cannot be opened: {error.orig}") from error
    require_version(found, oldest)


def require_version(found: str | None, oldest: str | None = None) -> None:
    """Raise `SchemaOutdated` unless this ctrlmgr can use a database with schema version `found`.

    The argument `found` is None if there is no schema. The argument `oldest` is the oldest schema version that the
    database supports; if it is None, only the schema version `LATEST` is accepted. Raises `CopyUnfinished` if the
    database holds an unfinished copy.
    """
    if found == LATEST or (found and _is_supported(found, oldest)):
        return
    if found is None:
        raise SchemaOutdated("the database has no event log yet; run `ctrlmgr migrate`")
    if found == UNFINISHED:
        raise CopyUnfinished
    if found > LATEST:
        raise SchemaOutdated(f"the database is at schema {found}, newer than this ctrlmgr's {LATEST}; upgrade ctrlmgr")
    raise SchemaOutdated(f"the database is at schema {found}, this ctrlmgr needs {LATEST}; run `ctrlmgr migrate`")


def _is_supported(found: str, oldest: str | None) -> bool:
    """Return whether the schema `found` is newer than `LATEST`, and supports a ctrlmgr that knows `LATEST`."""
    return oldest is not None and oldest <= LATEST < found and found != UNFINISHED


def upgrade(engine: Engine, *, clock: Clock, random: Random) -> str | None:
    """Apply the missing migrations, and initialize a new log; return the earlier schema version.

    All changes of the schema are in one transaction, so a process that dies during the update leaves the database
    unchanged. Several processes may call this function at the same time. A newer schema that supports this ctrlmgr
    stays unchanged. Raises `SchemaOutdated` if a newer schema does not support this ctrlmgr.
    """
    with engine.connect() as connection:
        found = version(connection)
    if found is not None and found >= LATEST:
        require_usable(engine)
        return found
    with engine.connect() as connection:
        _lock(connection)
        if (now := version(connection)) != LATEST:
            make = _make if now is None and connection.dialect.name == "sqlite" else run_migrations
            make(connection)
            _found(connection, clock=clock, random=random)
        connection.commit()
    return found


_BUSY_MILLISECONDS = 60_000
"""The number of milliseconds to wait for another process that migrates the same file."""


def _lock(connection: Connection) -> None:
    """Lock the database until the commit of the transaction, so that only one process migrates it."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('ctrlmgr migrations'))")


def _make(connection: Connection) -> None:
    """Create the newest schema in an empty SQLite database."""
    for statement in (migrations_folder() / SQLITE_SCHEMA).read_text(encoding="utf-8").split(BETWEEN_STATEMENTS):
        connection.exec_driver_sql(statement)


def run_migrations(connection: Connection) -> None:
    """Apply the migrations that a database lacks, in the transaction of `connection`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _found(connection: Connection, *, clock: Clock, random: Random) -> None:
    """Insert the rows that identify a new log."""
    if connection.execute(log_head.select()).first() is not None:
        return
    uuid = new_uuid(random)
    connection.execute(
        log_epoch.insert().values(
            uuid=uuid, after_revision=0, parent_hash=GENESIS, started_at=clock.now(), reason="created"
        )
    )
    connection.execute(log_head.insert().values(id=1, uuid=uuid, revision=0, hash=GENESIS))


def new_uuid(random: Random) -> str:
    """Return a version 4 UUID from `random`."""
    return str(UUID(int=random.getrandbits(128), version=4))
