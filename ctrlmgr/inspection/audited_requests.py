"""Stores audited requests, including refused requests and reads, for some time so that they can be queried.

Guarantees:

- Audited requests are stored in a separate SQLite database, `audit.db`, in the directory of the log. The log and the
  storing of requests do not delay each other. The file `audit.db` may be deleted at any time.
- The bodies of requests and responses are not stored. For a Secret, only the name is stored.
- Stored requests are deleted after the time in the settings. If the database cannot be written, the error is logged,
  and only audited requests are lost.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import structlog

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.errors import SettingsError
from ctrlmgr.inspection.database import SQLiteDatabase

log = structlog.get_logger(__name__)

FILE: Final = "audit.db"
"""The name of the database file in data_dir."""

_BETWEEN_PRUNINGS = 60.0
"""Minimum seconds between two deletions of old requests."""

_encode = msgspec.json.Encoder().encode


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An audited request, as stored in the database."""

    id: str
    """The id of the request in the audit log, which is also the response's Audit-Id."""
    received_at: int
    """The time at which the request arrived, in microseconds since 1970."""
    seconds: float
    """The time from the request to its response, in microseconds."""
    username: str | None
    """The user name, None if the credentials were invalid."""
    acts_for: str | None
    """The impersonated user; None if the request does not impersonate a user."""
    verb: str
    api_group: str | None
    """The API group of the requested resource. `api_group` and `resource` are None if the request is not for a
    resource.
    """
    resource: str | None
    subresource: str
    namespace: str
    name: str
    uri: str
    code: int
    reason: str
    message: str
    """The reason why the request was refused or failed."""
    decision: str | None
    """The authorization decision, `allow` or `forbid`; None if no authorizer was called."""
    because: str | None
    """The reason for the authorization decision, for example the binding and role that allow the request."""
    source: str
    agent: str
    revision: Revision | None
    """The revision that the request wrote; None if the revision is not known, as for a deletion."""


_TEXT = {"received_at": "strftime('%Y-%m-%dT%H:%M:%S.', {0} / 1000000, 'unixepoch') || printf('%06dZ', {0} % 1000000)"}
"""For each field that is shown in another form than it is stored, the SQL expression that formats the field."""
_COLUMNS = ", ".join(
    f"{_TEXT.get(name, '{0}').format(f'(value ->> {place})')} AS {name}"
    for place, name in enumerate(Row.__struct_fields__)
)
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS bundle
    (noted_at TEXT NOT NULL, first_revision INTEGER, last_revision INTEGER, said TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS bundle_by_time ON bundle (noted_at);
CREATE INDEX IF NOT EXISTS bundle_by_revision ON bundle (last_revision, first_revision) WHERE last_revision IS NOT NULL;
DROP VIEW IF EXISTS requests;
CREATE VIEW requests AS SELECT {_COLUMNS}, noted_at FROM bundle, json_each(said);
CREATE TABLE IF NOT EXISTS noted (received_at TEXT, revision INTEGER, said TEXT);
INSERT INTO bundle SELECT max(received_at), min(revision), max(revision), json_group_array(json(said))
    FROM noted GROUP BY rowid / 256;
DROP TABLE noted;
COMMIT;
"""
"""The table of stored requests. Each row contains all requests that were stored together, as an array of arrays.
Additional columns of the row are for searches.

The table has few rows, because requests are written often and read rarely. The table `noted` of an earlier version has
a row for each request.
"""

_INSERT = "INSERT INTO bundle VALUES (?, ?, ?, ?)"
_PRUNE = "DELETE FROM bundle WHERE noted_at < ?"


class Store:
    """Writes audited requests; after `open` was called, only one thread at a time may use an instance."""

    def __init__(self, path: Path, keep_for: float, *, clock: Clock) -> None:
        """Open or create the database file; requests are stored for `keep_for` seconds. Raises `SettingsError`."""
        self._path = path
        self._keep_for = round(keep_for * 1_000_000)
        self._clock = clock
        self._pruned_at = float("-inf")
        self._fails = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(f"audit.keep_for: {path} cannot be written: {error}") from error

    def write(self, rows: Sequence[Row]) -> bool:
        """Store requests, and periodically delete old requests; return whether the requests were stored."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._insert(rows)
            self._prune()
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if not self._fails:
                log.error("audited requests lost", file=str(self._path), error=str(error))
            self._fails = True
            return False
        self._fails = False
        return True

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _insert(self, rows: Sequence[Row]) -> None:
        revisions = [row.revision for row in rows if row.revision is not None]
        bounds = (min(revisions), max(revisions)) if revisions else (None, None)
        self._connection.execute(_INSERT, (format_time(self._clock.now()), *bounds, _encode(rows).decode()))

    def _prune(self) -> None:
        now = self._clock.monotonic()
        if now - self._pruned_at >= _BETWEEN_PRUNINGS:
            self._pruned_at = now
            self._connection.execute(_PRUNE, (format_time(self._clock.now() - self._keep_for),))


class AuditDatabase(SQLiteDatabase):
    """The stored requests, in a database that is opened read-only."""

    def _require_schema(self) -> None:
        """Check nothing, because the process that writes requests creates the table."""


def open_requests(data_path: Path) -> AuditDatabase:
    """Open the requests of the process with this data_dir; raises `SettingsError` if no requests are stored."""
    path = data_path / FILE
    if not path.exists():
        raise SettingsError(f"there is no {path}: requests are stored only if audit.policy_file names a policy")
    return AuditDatabase(path)


@contextmanager
def requests_if_kept(data_path: Path) -> Iterator[AuditDatabase | None]:
    """Open the stored requests while the block runs; yield None if the file does not exist."""
    if not (data_path / FILE).exists():
        yield None
        return
    database = open_requests(data_path)
    try:
        yield database
    finally:
        database.close()


class Request(NamedTuple):
    """The audited request that wrote a revision."""

    id: str
    received_at: str
    username: str
    acts_for: str
    verb: str
    uri: str
    code: int
    source: str
    agent: str


_SELECT = "SELECT id, received_at, coalesce(username, ''), coalesce(acts_for, ''), verb, uri, code, source, agent"
_BY_REVISION = f"""{_SELECT}
 FROM (SELECT {_COLUMNS} FROM bundle, json_each(said) WHERE last_revision >= :revision AND first_revision <= :revision)
 WHERE revision = :revision AND resource = :resource ORDER BY received_at DESC LIMIT 1"""
_BY_MOMENT = f"""{_SELECT} FROM requests
 WHERE noted_at BETWEEN :since AND :noted_until AND received_at BETWEEN :since AND :until
   AND resource = :resource AND api_group = :api_group AND namespace = :namespace AND name IN (:name, '')
   AND verb IN ('create', 'update', 'patch', 'delete', 'deletecollection') AND code < 300 AND revision IS NULL
   AND coalesce(acts_for, username) = :username
 ORDER BY name DESC, received_at DESC LIMIT 1"""

_LONGEST = 60_000_000
"""Maximum microseconds between a request and the event that it writes, and between the event and the storing of the
request.
"""


def request_of(
    database: AuditDatabase, revision: Revision, resource: Resource, key: Key, username: str, recorded_at: int
) -> Request | None:
    """Return the request that wrote a revision; None if the request is not stored or a controller wrote the revision.

    The request of a deletion is found by its object, user and time, because the revision of a deletion is not stored.
    """
    rows = database.query(_BY_REVISION, {"revision": revision, "resource": resource.plural}).rows
    if not rows:
        values = {
            "resource": resource.plural,
            "api_group": resource.group,
            "namespace": key.namespace,
            "name": key.name,
            "username": username,
            "since": format_time(recorded_at - _LONGEST),
            "until": format_time(recorded_at),
            "noted_until": format_time(recorded_at + _LONGEST),
        }
        rows = database.query(_BY_MOMENT, values).rows
    return Request(*rows[0]) if rows else None
