"""Copies the part of a server's log that the user may read to a local SQLite file, which can be queried like the log.

The server sends its log in pages (`ui.log_pages`); only missing pages are requested.

Guarantees:

- After `bring_up`, the copy ends at the head that the server's log had at the first request, and contains all events
  that the user may read and no others. The whole copy is replaced if, since the last update, the log was replaced, the
  user's rights changed, or events of the copy were compacted. If a single resource was compacted, only this resource is
  copied again.
- A page and the copy's position are written in one transaction, so an interrupted copy is continued.
- Only the local user that made the copy can read the file. A process locks the copy while it updates the copy.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogError, LogUnavailable, ServiceUnavailable
from ctrlmgr.eventlog import Failure
from ctrlmgr.eventlog.opening import migrate_log

Fetch = Callable[[Mapping[str, str]], bytes]
"""A function that fetches a page from the server; its argument contains the parameters of the request."""
Tell = Callable[[Revision, Revision], None]
"""A callback for progress: it is called with the copy's revision, and the revision at which the copy will end."""

_ATTEMPTS: Final = 3
_UNFINISHED: Final = 50
"""The maximum number of unfinished reconciles whose outcomes are requested; the newest reconciles are requested first.
"""
_BUSY_MILLISECONDS: Final = 60_000

_FAILURE_FIELDS: Final = Failure.__struct_fields__
_COPIED = """
CREATE TABLE IF NOT EXISTS copied (id INTEGER PRIMARY KEY CHECK (id = 1), rights TEXT NOT NULL, hidden INTEGER NOT NULL)
"""
_EVENT = """
INSERT OR REPLACE INTO event (revision, object_id, previous, type, recorded_at, actor, user_agent, term, reconcile_id,
    append_id, parent_hash, hash, body)
VALUES (:revision, :object_id, :previous, :type, :recorded_at, :actor, :user_agent, :term, :reconcile_id,
    :append_id, :parent_hash, :hash, :body)"""
_OBJECT = """
INSERT INTO object (id, resource, namespace, name, uid, create_revision, head_revision, deleted)
VALUES (:id, :resource, :namespace, :name, '', :create_revision, 0, 0)
ON CONFLICT (id) DO UPDATE SET create_revision = excluded.create_revision"""
_SETTLE = """
UPDATE object SET head_revision = e.revision, deleted = e.type = 3,
    uid = coalesce(json_extract(e.body, '$.metadata.uid'), ''),
    create_revision = coalesce(
        (SELECT max(born.revision) FROM event AS born WHERE born.object_id = :id AND born.type = 1), create_revision)
FROM (SELECT * FROM event WHERE object_id = :id ORDER BY revision DESC LIMIT 1) AS e
WHERE object.id = :id"""
_RECONCILE = """
INSERT OR REPLACE INTO reconcile (id, controller, key, attempt, started_at, duration, outcome, message)
VALUES (:id, :controller, :key, :attempt, :started_at, :duration, :outcome, :message)"""
_FLOOR = "INSERT OR REPLACE INTO compaction_floor (resource, floor) VALUES (?, ?)"
_FORGET = (
    "DELETE FROM event WHERE revision <= :floor AND object_id IN (SELECT id FROM object WHERE resource = :resource)",
    "DELETE FROM object WHERE resource = :resource AND id NOT IN (SELECT object_id FROM event)",
)
_FORGET_RECONCILES = (
    "DELETE FROM reconcile WHERE id NOT IN (SELECT reconcile_id FROM event WHERE reconcile_id <> 0)",
    "DELETE FROM reconcile_trigger WHERE reconcile_id NOT IN (SELECT id FROM reconcile)",
)
_EPOCHS = (
    "DELETE FROM log_epoch",
    """INSERT INTO log_epoch (uuid, after_revision, parent_hash, started_at, reason)
    VALUES (:uuid, :after_revision, :parent_hash, :started_at, :reason)""",
)
_IMPORTS = (
    "DELETE FROM log_import",
    "INSERT INTO log_import (after_revision, last_revision) VALUES (:after_revision, :last_revision)",
)
_TERMS = ("DELETE FROM lease_term", "INSERT INTO lease_term (lease, term) VALUES (:lease, :term)")
_FAILURES = (
    "DELETE FROM failure",
    f"INSERT INTO failure ({', '.join(_FAILURE_FIELDS)}) VALUES ({', '.join(f':{each}' for each in _FAILURE_FIELDS)})",
)
_UNENDED = "SELECT id FROM reconcile WHERE outcome IS NULL ORDER BY started_at DESC LIMIT ?"


class _Place(msgspec.Struct):
    """The first line of a page: its position in the log."""

    uuid: str
    head: Revision
    next: Revision
    rights: str
    hidden: int
    hash: str


class _Page(NamedTuple):
    place: _Place
    rows: Mapping[str, list[dict[str, Any]]]

    @property
    def floors(self) -> dict[str, Revision]:
        return {row["resource"]: row["floor"] for row in self.rows.get("floor", ())}


class _Outdated(Exception):
    """Raised if the copy does not match the server's log any more and must be replaced."""


def bring_up(path: Path, fetch: Fetch, *, clock: Clock, random: Random, tell: Tell) -> int:
    """Update the copy at `path`; return the number of the log's events that the user may not read.

    Raises `LogUnavailable` if the file cannot be written. Raises `ServiceUnavailable` if the server does not send a
    log, or if the log or the user's rights change too fast to copy the log. Raises the errors that `fetch` raises.
    """
    try:
        with _alone(path):
            for _ in range(_ATTEMPTS):
                try:
                    with _opened(path, clock, random) as connection:
                        return _Copy(connection, fetch, tell).bring_up()
                except (_Outdated, sqlite3.DatabaseError, LogError):  # replace a damaged copy
                    _remove(path)
    except OSError as error:
        raise LogUnavailable(f"no copy of the log can be kept at {path}: {error.strerror}") from error
    raise ServiceUnavailable("the server's log, or your rights, changed during the copy; try again")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lock the copy, so that no other process updates the copy at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.with_name(path.name + "-lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path, clock: Clock, random: Random) -> Iterator[sqlite3.Connection]:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    migrate_log(f"sqlite:///{path}", clock=clock, random=random)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in (f"busy_timeout = {_BUSY_MILLISECONDS}", "journal_mode = WAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute(_COPIED)
        yield connection


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class _Copy:
    """A copy that is being updated."""

    def __init__(self, connection: sqlite3.Connection, fetch: Fetch, tell: Tell) -> None:
        self._connection = connection
        self._fetch = fetch
        self._tell = tell

    def bring_up(self) -> int:
        is_new = self._one("SELECT count(*) FROM copied") == 0
        after = 0 if is_new else self._one("SELECT revision FROM log_head")
        unended = self._connection.execute(_UNENDED, (_UNFINISHED,)).fetchall()
        page = self._page(after=after, reconciles=",".join(str(id_) for (id_,) in unended))
        target = page.place.head
        while True:
            if not is_new:
                self._check(page, after)
            moved = {} if is_new else self._moved(page)
            self._write(page, page.floors if is_new else {})
            is_new, after = False, page.place.next
            for resource, floor in moved.items():
                self._copy_again(resource, floor, min(floor, after))
            self._tell(after, target)
            if after >= target:
                return int(self._one("SELECT hidden FROM copied"))
            page = self._page(after=after)

    def _one(self, statement: str) -> Any:
        return self._connection.execute(statement).fetchone()[0]

    def _page(self, **parameters: object) -> _Page:
        query = {name: str(value) for name, value in parameters.items() if value != ""}
        rows: dict[str, list[dict[str, Any]]] = {}
        try:
            first, *lines = self._fetch(query).splitlines()
            place = msgspec.json.decode(first, type=dict[str, _Place])["log"]
            for line in lines:
                [(name, row)] = msgspec.json.decode(line).items()
                rows.setdefault(name, []).append(row)
        except (ValueError, KeyError, AttributeError, msgspec.MsgspecError) as error:
            raise ServiceUnavailable("the response of the server is not a log; is it a ctrlmgr server?") from error
        return _Page(place, rows)

    def _check(self, page: _Page, after: Revision) -> None:
        """Raise `_Outdated` if a page does not continue the copy."""
        uuid, rights = self._one("SELECT uuid FROM log_head"), self._one("SELECT rights FROM copied")
        if (uuid, rights) != (page.place.uuid, page.place.rights) or page.place.head < after:
            raise _Outdated

    def _moved(self, page: _Page) -> dict[str, Revision]:
        """Return the resources that were compacted since they were copied.

        Raises `_Outdated` if the whole log was compacted.
        """
        known = dict(self._connection.execute("SELECT resource, floor FROM compaction_floor").fetchall())
        moved = {resource: floor for resource, floor in page.floors.items() if known.get(resource) != floor}
        if "" in moved or known.keys() - page.floors.keys():
            raise _Outdated
        return moved

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _write(self, page: _Page, floors: Mapping[str, Revision]) -> None:
        """Write a page that continues the copy, and the copy's new position."""
        place = page.place
        with self._transaction():
            self._put(page)
            self._connection.executemany(_FLOOR, floors.items())
            epochs = page.rows.get("epoch", [])
            self._replace(_EPOCHS, [{**row, "parent_hash": bytes.fromhex(row["parent_hash"])} for row in epochs])
            self._replace(_IMPORTS, page.rows.get("import", []))
            self._replace(_TERMS, page.rows.get("term", []))
            if place.next >= place.head:  # only the last page contains these rows
                self._replace(_FAILURES, page.rows.get("failure", []))
            end = (place.uuid, place.next, bytes.fromhex(place.hash))
            self._connection.execute("UPDATE log_head SET uuid = ?, revision = ?, hash = ?", end)
            rights_and_hidden = (place.rights, place.hidden)
            more = "INSERT INTO copied VALUES (1, ?, ?) ON CONFLICT DO UPDATE SET hidden = hidden + excluded.hidden"
            self._connection.execute(more, rights_and_hidden)

    def _replace(self, statements: tuple[str, str], rows: list[dict[str, Any]]) -> None:
        empty, fill = statements
        self._connection.execute(empty)
        self._connection.executemany(fill, rows)

    def _put(self, page: _Page) -> None:
        objects = {row["id"]: row for row in page.rows.get("object", ())}
        self._connection.executemany(_OBJECT, objects.values())
        self._connection.executemany(_EVENT, map(_stored, page.rows.get("event", ())))
        self._connection.executemany(_SETTLE, [{"id": id_} for id_ in objects])
        reconciles = page.rows.get("reconcile", [])
        self._connection.executemany(_RECONCILE, reconciles)
        pairs = [(row["id"], revision) for row in reconciles for revision in row["triggers"]]
        self._connection.executemany("INSERT OR IGNORE INTO reconcile_trigger VALUES (?, ?)", pairs)

    def _copy_again(self, resource: str, floor: Revision, until: Revision) -> None:
        """Replace the copied events of a compacted resource, up to the revision at which the copy will end."""
        with self._transaction():
            for statement in _FORGET:
                self._connection.execute(statement, {"resource": resource, "floor": floor})
            after = 0
            while after < until:
                page = self._page(after=after, resource=resource, until=until)
                self._put(page)
                after = page.place.next
            for statement in _FORGET_RECONCILES:
                self._connection.execute(statement)
            self._connection.execute(_FLOOR, (resource, floor))


def _stored(row: Mapping[str, Any]) -> dict[str, Any]:
    parent = row["parent_hash"]
    return {
        **row,
        "hash": bytes.fromhex(row["hash"]),
        "parent_hash": None if parent is None else bytes.fromhex(parent),
    }
