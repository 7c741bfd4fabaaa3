"""A read-only connection to a log's database, which runs SQL queries.

Guarantees:

- No query can change the database. On SQLite, the file is opened read-only, and the authorizer rejects all statements
  except queries. On PostgreSQL, only statements that `query_checks` accepts are run, each in a read-only transaction
  that is rolled back, with the role `ctrlmgr_reader` if it exists.
- `objects_at(REVISION)` can be queried like a table on both databases. On SQLite, which has no functions that return
  tables, `objects_at` is replaced by a subquery.
- A query reads one consistent state of the log. After a query, no transaction stays open.
- If the connection has a time limit, a query that exceeds the limit raises `RequestTimeout`. Any thread may use a
  connection, but only one thread at a time.
- The database must have the schema of this version of ctrlmgr; otherwise `SchemaOutdated` is raised.
"""

from __future__ import annotations

import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from ctrlmgr.clock import Clock, SystemClock
from ctrlmgr.errors import LogUnavailable, QueryRefused, RequestTimeout, SchemaOutdated, SettingsError, UnknownRelation
from ctrlmgr.eventlog import database_schema, sql_views
from ctrlmgr.inspection.query_checks import require_question

if TYPE_CHECKING:
    import psycopg

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")
_VERSION = "SELECT version_num FROM alembic_version"
_OLDEST = "SELECT oldest FROM schema_support"
_TABLES = {
    "sqlite": "SELECT m.name AS relation, c.name AS column_name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
    " WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    " ORDER BY table_name, ordinal_position",
}


class Rows(NamedTuple):
    """The result of a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Database(ABC):
    """A log's database, opened read-only."""

    dialect: str
    """The SQL dialect: `sqlite` or `postgresql`."""

    @abstractmethod
    def query(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Run one statement and return all its rows; `parameters` are the values for placeholders such as `:name`.

        If `parameters` are not given, a colon has no special meaning. Raises `QueryRefused` if the statement is not a
        valid query, `LogUnavailable` if the database does not respond, and `RequestTimeout` if the query takes too
        long.
        """

    @abstractmethod
    def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    def refuse_power(self) -> None:
        """Raise `SettingsError` if the database role has unrestricted access to the database server."""

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def relations(self) -> dict[str, list[str]]:
        """Return the tables and views with their columns."""
        found: dict[str, list[str]] = {}
        for relation, column in self.query(_TABLES[self.dialect]).rows:
            found.setdefault(relation, []).append(column)
        return found

    def _require_schema(self) -> None:
        try:
            database_schema.require_version(self._value(_VERSION), self._value(_OLDEST))
        except SchemaOutdated:
            self.close()
            raise

    def _value(self, query: str) -> str | None:
        """Return the value of a table that has one column and one row; None if the table does not exist."""
        try:
            rows = self.query(query).rows
        except QueryRefused:
            return None
        return str(rows[0][0]) if rows else None


def open_database(url: str, *, patience: float | None = None) -> Database:
    """Open the log's database at `url` for reading, without creating it; queries time out after `patience` seconds.

    Raises `SettingsError` if the URL is not that of a database on disk, and `LogUnavailable` if the database cannot be
    reached. Raises `SchemaOutdated` if the database does not contain a log with this version's schema.
    """
    if url.startswith(_SQLITE):
        return SQLiteDatabase(Path(url.removeprefix(_SQLITE)), patience=patience)
    if url.startswith(_POSTGRES):
        return PostgresDatabase(url, patience=patience)
    raise SettingsError(
        f"database.url: {url.split(':', 1)[0]!r} cannot be queried; use sqlite:///PATH or postgresql://…"
    )


_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_PRAGMAS = frozenset({"table_info", "table_xinfo", "table_list", "index_list", "index_info", "data_version"})
_OBJECTS_AT = re.compile(r"\bobjects_at\s*\(\s*(:\w+|\d+)\s*\)", re.IGNORECASE)
_SETTINGS = ("busy_timeout = 2000", "cache_size = -65536", "mmap_size = 1073741824", "temp_store = MEMORY")
"""Connection settings.

Settings of the SQLite connection: lock timeout (ms), cache (KiB), bytes of the file mapped into memory, storage for
sorting.
"""

_STEPS = 100_000
"""Steps of SQLite's virtual machine between checks for Ctrl-C and the time limit."""


class SQLiteDatabase(Database):
    """A log in a SQLite file."""

    dialect = "sqlite"

    def __init__(self, path: Path, *, patience: float | None = None, clock: Clock | None = None) -> None:
        """Open the file; `open_database` describes the arguments and errors."""
        self._patience = patience
        self._clock = clock or SystemClock()
        self._ends_at = 0.0
        if not path.exists():
            raise SchemaOutdated(f"there is no database at {path}; --database names another")
        self._objects_at = sql_views.select("objects_at", self.dialect)
        try:
            uri = f"file:{quote(str(path.absolute()))}?mode=ro"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            for setting in (*_SETTINGS, "schema_version"):  # the last statement reads the file
                self._connection.execute(f"PRAGMA {setting}")
        except sqlite3.Error as error:
            raise LogUnavailable(f"the database cannot be opened: {error}") from error
        self._connection.set_authorizer(_authorize)
        self._connection.set_progress_handler(self._is_late, _STEPS)
        self._require_schema()

    def query(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Run one SQL statement, and return its result."""
        statement = _OBJECTS_AT.sub(lambda call: f"({self._objects_at.replace(':revision', call[1])}\n)", statement)
        self._ends_at = self._clock.monotonic() + (self._patience or 0.0)
        try:
            cursor = self._connection.execute(statement, parameters or {})
            rows = cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning) as error:
            if str(error) == "interrupted" and self._patience is not None and self._is_late():
                raise _too_long(self._patience) from error
            raise _sqlite_failure(error) from error
        return Rows(tuple(column[0] for column in cursor.description or ()), rows)

    def refuse_power(self) -> None:
        """Do nothing, because SQLite has no roles."""

    def _is_late(self) -> bool:
        return self._patience is not None and self._clock.monotonic() > self._ends_at

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _authorize(action: int, first: str | None, *_: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS):
        return sqlite3.SQLITE_OK
    # SQLite reports this action when it loads a table-valued function; the table itself cannot be changed.
    if action == sqlite3.SQLITE_UPDATE and first in ("sqlite_master", "sqlite_schema"):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _too_long(patience: float) -> RequestTimeout:
    return RequestTimeout(f"the query was canceled after {patience:g} s; query less at a time")


def _sqlite_failure(error: Exception) -> BaseException:
    """Return the error to raise for a SQLite error. After Ctrl-C, SQLite reports that the query was interrupted."""
    text = str(error)
    if text == "interrupted":
        return KeyboardInterrupt()
    if any(sign in text for sign in ("not authorized", "authorization denied", "readonly")):
        return QueryRefused(f"only queries are allowed ({text})")
    if isinstance(error, sqlite3.OperationalError) and ("locked" in text or "unable to open" in text):
        return LogUnavailable(f"the event log cannot be read: {text}")
    return UnknownRelation(text) if text.startswith("no such table") else QueryRefused(text)


_PATIENCE = 10.0
"""Maximum seconds to connect."""

_CANCELLED = "57014"
"""PostgreSQL's error code for a statement that was cancelled after its `statement_timeout`."""

_NO_RELATION = "42P01"
"""PostgreSQL's error code for a missing table or view."""

_IS_READER = (
    "SELECT 1 FROM pg_roles WHERE rolname = 'ctrlmgr_reader' AND rolname <> current_user"
    " AND pg_has_role(current_user, oid, 'MEMBER') AND has_schema_privilege(oid, current_schema(), 'USAGE')"
    " AND has_table_privilege(oid, 'event', 'SELECT')"
)
_IS_POWERFUL = (
    "SELECT asking.rolname FROM pg_roles AS asking WHERE asking.rolname = current_user AND (asking.rolsuper OR EXISTS"
    " (SELECT 1 FROM pg_auth_members AS m JOIN pg_roles AS power ON power.oid = m.roleid WHERE m.member = asking.oid"
    " AND power.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')))"
)

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


class PostgresDatabase(Database):
    """A log in a PostgreSQL database."""

    dialect = "postgresql"

    def __init__(self, url: str, *, patience: float | None = None) -> None:
        """Connect to the database; `open_database` describes the arguments and errors."""
        self._patience = patience
        import psycopg

        from ctrlmgr.eventlog.postgres.postgres_servers import Servers

        try:
            self._connection = Servers(url).connect("inspect", patience=_PATIENCE, standby=True)
        except psycopg.Error as error:
            raise LogUnavailable(f"the database cannot be opened: {str(error).strip()}") from error
        self._connection.patience = None  # a query may take long; Ctrl-C ends the query
        # behind a connection pooler, the setting would remain for other clients of the pooler
        if self._connection.prepare_threshold is not None:
            self._connection.execute("SET jit = off")  # JIT compilation takes longer than the time that it saves
        self._become_reader()
        self._connection.autocommit = False
        self._connection.read_only = True
        self._require_schema()

    def _become_reader(self) -> None:
        """Set the role `ctrlmgr_reader` if allowed.

        Behind a connection pooler, do not set the role, because it would remain set for other clients.
        """
        if self._connection.prepare_threshold is not None and self._connection.execute(_IS_READER).fetchone():
            self._connection.execute("SET ROLE ctrlmgr_reader")

    def refuse_power(self) -> None:
        """Raise `SettingsError` if the database role has unrestricted access to the database server."""
        rows = self.query(_IS_POWERFUL).rows
        if rows:
            raise SettingsError(
                f"database.url: {rows[0][0]} can access the server's files or programs, so queries as it are refused; "
                "create a reader: psql --file examples/postgresql/roles.sql and grants.sql, then use ctrlmgr_reader"
            )

    def query(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Run one SQL statement, and return its result."""
        import psycopg

        require_question(statement)
        # Prepare the statement, because the server refuses to prepare several statements at once.
        prepare = True if self._connection.prepare_threshold is not None else None
        if parameters:
            statement = _PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
        try:
            if self._patience is not None:  # set the limit only for this transaction, so that a pooler may be used
                self._connection.execute(f"SET LOCAL statement_timeout = {round(self._patience * 1000)}".encode())
            cursor = self._connection.execute(statement.encode(), parameters or None, prepare=prepare)
            rows = cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            if error.sqlstate == _CANCELLED and self._patience is not None:
                raise _too_long(self._patience) from error
            raise _postgres_failure(error, self._connection) from error
        finally:
            if not self._connection.closed:
                self._connection.rollback()
        return Rows(tuple(column.name for column in cursor.description or ()), rows)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


def _postgres_failure(error: psycopg.Error, connection: psycopg.Connection[Any]) -> QueryRefused | LogUnavailable:
    text = str(error).strip()
    if connection.closed or (error.sqlstate or "").startswith(("08", "57P", "53")):
        return LogUnavailable(f"the event log cannot be read: {text}")
    if error.sqlstate == "25006":
        return QueryRefused(f"only queries are allowed ({text})")
    return UnknownRelation(text) if error.sqlstate == _NO_RELATION else QueryRefused(text)
