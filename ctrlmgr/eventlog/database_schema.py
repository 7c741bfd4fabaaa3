"""Manages the schema of a database: checks its version, and applies missing migrations.

For a new SQLite database, `migrations/sqlite.sql` creates the schema that results from all migrations. Therefore the
first start need not load Alembic, which takes as long as the rest of the start. Alembic only upgrades databases with an
older schema.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from uuid import UUID

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from ctrlmgr.clock import Clock
from ctrlmgr.errors import CopyUnfinished, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.log_tables import log_epoch, log_head

LATEST = "0007"
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
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(found) if found is not None else None


def require_latest(engine: Engine) -> None:
    """Raise `SchemaOutdated` unless the database has the newest schema, and `LogUnavailable` if it cannot be read."""
    try:
        with engine.connect() as connection:
            found = version(connection)
    except DBAPIError as error:
        raise LogUnavailable(f"the database cannot be opened: {error.orig}") from error
    require_version(found)


def require_version(found: str | None) -> None:
    """Raise `SchemaOutdated` unless `found` is the newest schema; `found` is None if there is no schema.

    Raises `CopyUnfinished` if the database holds an unfinished copy.
    """
    if found == LATEST:
        return
    if found is None:
        raise SchemaOutdated("the database has no event log yet; run `ctrlmgr migrate`")
    if found == UNFINISHED:
        raise CopyUnfinished
    if found > LATEST:
        raise SchemaOutdated(f"the database is at schema {found}, newer than this ctrlmgr's {LATEST}; upgrade ctrlmgr")
    raise SchemaOutdated(f"the database is at schema {found}, this ctrlmgr needs {LATEST}; run `ctrlmgr migrate`")


def upgrade(engine: Engine, *, clock: Clock, random: Random) -> str | None:
    """Apply the missing migrations, and initialize a new log; return the earlier schema version.

    All changes of the schema are in one transaction, so a process that dies during the update leaves the database
    unchanged. Several processes may call this function at the same time. Raises `SchemaOutdated` if the database is
    newer than this ctrlmgr.
    """
    with engine.connect() as connection:
        found = version(connection)
    if found == LATEST:
        return found
    if found is not None and found > LATEST:
        require_latest(engine)
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
