"""Copies the tables of a log into an empty database, up to a revision; used by forks and by whole copies.

Guarantees:
- The log that is read is not changed.
- Every event keeps its revision, content and hash, so the hash chain of the copy is the chain of the original.
- The copy contains only states that the log recorded. If all resources were compacted beyond the revision,
  `copy_floors` raises `Expired`. If only one resource was compacted beyond the revision, the copy omits the objects
  whose state is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, select

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Resource, Revision
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog.database_schema import require_version
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.log_tables import (
    compaction_floor,
    event,
    lease_term,
    log_epoch,
    log_import,
    object_,
    reconcile,
    reconcile_trigger,
)

Read = Callable[[str, Mapping[str, Any]], Sequence[Sequence[Any]]]
"""Runs a SQL query on the other log and returns the rows; `:name` marks a parameter."""

_CHUNK = 2_000


def open_engine(url: str) -> Engine:
    """Return an engine for the database at `url`, which holds the copy."""
    if url.startswith("sqlite:///"):
        from ctrlmgr.eventlog.sqlite import sqlite_log as sqlite

        return sqlite.open_engine(Path(url.removeprefix("sqlite:///")))
    from ctrlmgr.eventlog.postgres import postgres_servers

    return postgres_servers.open_engine(url)


def require_same_schema(read: Read) -> None:
    """Raise `SchemaOutdated` if the other log has a newer schema, whose additional tables a copy would lack."""
    require_version(str(read("SELECT version_num FROM alembic_version", {})[0][0]))


def merge_wal(url: str) -> None:
    """Write a SQLite database's WAL into the database file, which is then the whole database."""
    if url.startswith("sqlite:///"):
        engine = open_engine(url)
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        engine.dispose()


def lock_for_writing(connection: Connection) -> None:
    """Begin a write transaction now; a transaction that begins with a read may be unable to write later."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")


class TableCopy:
    """Copies one log, table by table, up to the revision `at`."""

    def __init__(self, read: Read, connection: Connection, at: Revision) -> None:
        """Copy from the log that `read` queries, into the database of `connection`, in its transaction."""
        self._read = read
        self._connection = connection
        self._at = at
        self._places: dict[int, dict[str, Any]] = {}
        self._reconciles: set[int] = set()

    def insert(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows into a table of the copy."""
        if rows:
            self._connection.execute(table.insert(), rows)

    def rows(self, table: Table, where: str = "", **parameters: Any) -> list[dict[str, Any]]:
        """Return rows of a table of the other log; `:at` is the last revision of the copy."""
        names = [column.name for column in table.columns]
        found = self._read(f"SELECT {', '.join(names)} FROM {table.name} {where}", {"at": self._at, **parameters})
        return [dict(zip(names, row, strict=True)) for row in found]

    def copy_page(self, after: Revision) -> tuple[Revision, bytes, int] | None:
        """Copy the next page of events after a revision.

        Returns the revision and the hash of the page's last event and the number of events; None if there are no more
        events.
        """
        where = f"WHERE revision > :after AND revision <= :at ORDER BY revision LIMIT {_CHUNK}"
        rows = self.rows(event, where, after=after)
        if not rows:
            return None
        self.insert(event, rows)
        for row in rows:
            self._see(row)
        return rows[-1]["revision"], rows[-1]["hash"], len(rows)

    def see_copied(self) -> None:
        """Read the last state of each object from the events that the copy already contains."""
        query = select(event.c.revision, event.c.object_id, event.c.type, event.c.reconcile_id, event.c.body)
        for row in self._connection.execute(query.order_by(event.c.revision)).yield_per(_CHUNK):
            self._see(row._asdict())

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

    def copy_objects(self) -> int:
        """Copy the rows of objects as of the revision; return the number of objects without a row in the other log.

        If the creation of an object was compacted, its creation revision is read from the other log. A compaction
        deletes the row of an object that was deleted, after it has deleted the object's events.
        """
        rows = []
        for row in self.rows(object_):
            seen = self._places.get(row["id"])
            if seen:
                same = row["create_revision"] <= seen["head_revision"]
                rows.append({**row, **seen, **({"create_revision": row["create_revision"]} if same else {})})
        self.insert(object_, rows)
        return len(self._places) - len(rows)

    def copy_reconciles(self, *, without_events: bool = False) -> None:
        """Copy the reconciles that wrote copied events, with their triggers.

        If `without_events` is set, copy all reconciles.
        """
        for table, column in ((reconcile, "id"), (reconcile_trigger, "reconcile_id")):
            last = -1
            where = f"WHERE {column} > :last ORDER BY {column} LIMIT {_CHUNK}"
            while rows := self._whole(table, column, self.rows(table, where, last=last)):
                self.insert(table, [row for row in rows if without_events or row[column] in self._reconciles])
                last = rows[-1][column]

    def _whole(self, table: Table, column: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a page of triggers, extended by the remaining rows of its last reconcile."""
        if len(rows) < _CHUNK:
            return rows
        last = rows[-1][column]
        return [row for row in rows if row[column] != last] + self.rows(table, f"WHERE {column} = :last", last=last)

    def copy_terms(self) -> None:
        """Copy the leader terms as of the revision; the term of a Lease is the greatest term in its copied events."""
        newest = (
            "SELECT max(e.term) FROM object AS o JOIN event AS e ON e.object_id = o.id"
            " WHERE o.resource = :resource AND o.namespace = :namespace AND o.name = :name AND e.revision <= :at"
        )
        rows = []
        for row in self.rows(lease_term):
            resource, _, place = row["lease"].partition("/")
            namespace, _, name = place.partition("/")
            if resource == str(LEASES):
                found = self._read(newest, {"resource": resource, "namespace": namespace, "name": name, "at": self._at})
                row["term"] = found[0][0] or 0
            rows.append(row)
        self.insert(lease_term, rows)

    def copy_floors(self) -> None:
        """Copy the compaction floors; callers do this last, because compaction raises floors before it deletes events.

        If a resource was compacted beyond the revision, the floor in the copy is this revision, because the copy lacks
        the objects whose state was lost.
        """
        rows = self.rows(compaction_floor)
        for row in rows:
            if row["floor"] > self._at and not row["resource"]:
                raise Expired(self._at, row["floor"])
            row["floor"] = min(row["floor"], self._at)
        self.insert(compaction_floor, rows)

    def copy_imports(self) -> None:
        """Copy the imported ranges of revisions up to the revision."""
        rows = [row for row in self.rows(log_import) if row["after_revision"] < self._at]
        self.insert(log_import, [{**row, "last_revision": min(row["last_revision"], self._at)} for row in rows])

    def epochs(self, last: Revision) -> list[dict[str, Any]]:
        """Return the other log's incarnations that begin at or before the revision `last`, oldest first."""
        return [row for row in self.rows(log_epoch, "ORDER BY after_revision") if row["after_revision"] <= last]

    def copy_whole(self, tables: Collection[Table]) -> None:
        """Copy all rows of `tables`."""
        for table in tables:
            self.insert(table, self.rows(table))
