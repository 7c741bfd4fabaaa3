"""Forks a log: creates a new log that is a copy of another log up to a revision, for experiments.

Guarantees:
- Up to the fork's revision, both logs contain the same states, histories, causes and leader terms, with the same
  hashes. After the fork's revision, the new log continues as a new incarnation with its own UUID.
- The log that is forked is only read. The new log must be empty. One transaction fills the new log, so it is empty
  after a failed fork.
- The fork contains only recorded states. If a compaction of all resources has passed the fork's revision, the fork
  raises `Expired`. If only one resource was compacted, the fork omits the objects whose state at the fork's revision is
  lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import Connection, Engine, Table, select, update
from sqlalchemy.exc import DBAPIError

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import Expired, LogUnavailable, SettingsError
from ctrlmgr.eventlog.database_schema import new_uuid
from ctrlmgr.eventlog.event import EventType, Head
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.log_tables import (
    compaction_floor,
    event,
    lease_term,
    log_epoch,
    log_head,
    log_import,
    object_,
    reconcile,
    reconcile_trigger,
)

Read = Callable[[str, Mapping[str, Any]], Sequence[Sequence[Any]]]
"""Runs a SQL query on the other log and returns the rows; `:name` marks a parameter."""

_CHUNK = 2_000


def fork(read: Read, url: str, at: Revision, *, clock: Clock, random: Random) -> Head:
    """Copy the log that `read` queries, up to revision `at`, into the empty, migrated log at `url`; return its head.

    Raises `Expired` if compaction has passed `at`, `SettingsError` if the log at `url` is not empty, and
    `LogUnavailable` if a database cannot be used.
    """
    engine = _open_engine(url)
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            head = _Copy(read, connection, at).run(clock.now(), new_uuid(random))
            connection.commit()
    except DBAPIError as error:
        raise LogUnavailable(f"the fork cannot be written: {error.orig}") from error
    finally:
        engine.dispose()
    return head


def _open_engine(url: str) -> Engine:
    if url.startswith("sqlite:///"):
        from ctrlmgr.eventlog.sqlite import sqlite_log as sqlite

        return sqlite.open_engine(Path(url.removeprefix("sqlite:///")))
    from ctrlmgr.eventlog.postgres import postgres_servers

    return postgres_servers.open_engine(url)


class _Copy:
    """Copies one log, table by table."""

    def __init__(self, read: Read, connection: Connection, at: Revision) -> None:
        self._read = read
        self._connection = connection
        self._at = at
        self._places: dict[int, dict[str, Any]] = {}
        self._reconciles: set[int] = set()
        self._hash = GENESIS  # hash of the newest event that was copied

    def run(self, now: int, uuid: str) -> Head:
        own = self._connection.execute(select(log_head).with_for_update()).one()
        if own.revision:
            raise SettingsError(f"the new log is not empty: it is already at revision {own.revision}")
        self._copy_events()
        self._insert(object_, self._objects())
        self._copy_reconciles()
        self._copy_terms()
        self._copy_floors()
        self._copy_imports()
        return self._begin_epoch(own.uuid, uuid, now)

    def _insert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(table.insert(), rows)

    def _rows(self, table: Table, where: str, **parameters: Any) -> list[dict[str, Any]]:
        names = [column.name for column in table.columns]
        found = self._read(f"SELECT {', '.join(names)} FROM {table.name} {where}", {"at": self._at, **parameters})
        return [dict(zip(names, row, strict=True)) for row in found]

    def _copy_events(self) -> None:
        """Copy the events page by page, and keep the last state of each object."""
        after = 0
        where = f"WHERE revision > :after AND revision <= :at ORDER BY revision LIMIT {_CHUNK}"
        while rows := self._rows(event, where, after=after):
            self._insert(event, rows)
            for row in rows:
                self._see(row)
            after, self._hash = rows[-1]["revision"], rows[-1]["hash"]

    def _see(self, row: Mapping[str, Any]) -> None:
        revision, id_ = row["revision"], row["object_id"]
        self._reconciles.add(row["reconcile_id"])
        known = self._places.get(id_)
        born = revision if known is None or row["type"] == EventType.ADDED else known["create_revision"]
        self._places[id_] = {
            "create_revision": born,
            "head_revision": revision,
            "deleted": row["type"] == EventType.DELETED,
            "uid": Object(Resource("", ""), row["body"].encode()).uid,
        }

    def _objects(self) -> list[dict[str, Any]]:
        """Return the object rows as of revision `at`.

        If the creation of an object was compacted, its creation revision is read from the other log.
        """
        rows = []
        for row in self._rows(object_, ""):
            seen = self._places.get(row["id"])
            if seen:
                same = row["create_revision"] <= seen["head_revision"]
                rows.append({**row, **seen, **({"create_revision": row["create_revision"]} if same else {})})
        return rows

    def _copy_reconciles(self) -> None:
        """Copy the reconciles that wrote events, and the triggers of these reconciles."""
        for table, column in ((reconcile, "id"), (reconcile_trigger, "reconcile_id")):
            last = -1
            where = f"WHERE {column} > :last ORDER BY {column} LIMIT {_CHUNK}"
            while rows := self._whole(table, column, self._rows(table, where, last=last)):
                self._insert(table, [row for row in rows if row[column] in self._reconciles])
                last = rows[-1][column]

    def _whole(self, table: Table, column: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a page of triggers with all rows of its last reconcile, including the rows beyond the page's end."""
        if len(rows) < _CHUNK:
            return rows
        last = rows[-1][column]
        return [row for row in rows if row[column] != last] + self._rows(table, f"WHERE {column} = :last", last=last)

    def _copy_terms(self) -> None:
        """Copy the leader terms as of revision `at`; a Lease's term is the greatest term among its events."""
        newest = (
            "SELECT max(e.term) FROM object AS o JOIN event AS e ON e.object_id = o.id"
            " WHERE o.resource = :resource AND o.namespace = :namespace AND o.name = :name AND e.revision <= :at"
        )
        rows = []
        for row in self._rows(lease_term, ""):
            resource, _, place = row["lease"].partition("/")
            namespace, _, name = place.partition("/")
            if resource == str(LEASES):
                found = self._read(newest, {"resource": resource, "namespace": namespace, "name": name, "at": self._at})
                row["term"] = found[0][0] or 0
            rows.append(row)
        self._insert(lease_term, rows)

    def _copy_floors(self) -> None:
        """Copy the compaction floors last, because a concurrent compaction raises floors before it deletes events.

        If a resource was compacted beyond `at`, its floor in the fork is `at`, because the fork has no event of objects
        whose state was lost.
        """
        rows = self._rows(compaction_floor, "")
        for row in rows:
            if row["floor"] > self._at and not row["resource"]:
                raise Expired(self._at, row["floor"])
            row["floor"] = min(row["floor"], self._at)
        self._insert(compaction_floor, rows)

    def _copy_imports(self) -> None:
        """Copy the imported ranges of revisions up to `at`."""
        rows = [row for row in self._rows(log_import, "") if row["after_revision"] < self._at]
        self._insert(log_import, [{**row, "last_revision": min(row["last_revision"], self._at)} for row in rows])

    def _begin_epoch(self, own: str, other: str, now: int) -> Head:
        """Insert the incarnations of the other log, then the new incarnation of the fork.

        The new log keeps its own UUID, unless both logs have the same UUID because they began as copies of one empty
        database.
        """
        past = [row for row in self._rows(log_epoch, "ORDER BY after_revision") if row["after_revision"] < self._at]
        uuid = other if any(row["uuid"] == own for row in past) else own
        origin = past[-1]["uuid"] if past else "an empty log"
        self._connection.execute(log_epoch.delete())
        self._insert(log_epoch, past)
        fields = {"after_revision": self._at, "parent_hash": self._hash, "started_at": now}
        self._insert(log_epoch, [{"uuid": uuid, **fields, "reason": f"forked from {origin} at revision {self._at}"}])
        self._connection.execute(update(log_head).values(uuid=uuid, revision=self._at, hash=self._hash))
        return Head(uuid, self._at, self._hash)
