"""Writes imported events in one SQL transaction, with statements for both SQLite and PostgreSQL.

Guarantees: the transaction holds the lock of the log's head, so no other event can be between the events of a batch.
The transaction writes the whole batch: events with their hashes, object rows, and the imported range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, tuple_, update

from ctrlmgr.api.resource import Revision
from ctrlmgr.eventlog.event import Event, EventType
from ctrlmgr.eventlog.hash_chain import Place
from ctrlmgr.eventlog.imports import Imported, ImportedRange, Placed, extended, place_batch, place_of
from ctrlmgr.eventlog.log_tables import event, log_head, log_import, object_
from ctrlmgr.eventlog.optimistic_concurrency import EMPTY, Slot

_LOOK_UPS = 200
"""The number of objects per SELECT statement."""

_Row = dict[str, Any]
_MOVING = ("head_revision", "deleted", "uid", "create_revision")
_MOVE = (
    update(object_)
    .where(object_.c.id == bindparam("new_id"))
    .values({name: bindparam(f"new_{name}") for name in _MOVING})
)


def write(
    connection: Connection, batch: Sequence[Imported], append_id: int, bodies: Sequence[bytes] | None = None
) -> list[Event]:
    """Add a batch to the log, whose head is locked, and return the events.

    Raises the errors of `place_batch` if a revision is invalid.
    """
    head = connection.execute(select(log_head.c.revision, log_head.c.hash)).one()
    rows = _known(connection, batch)

    def slot_of(at: Place) -> Slot:
        row = rows.get(at)
        return Slot(row["head_revision"], not row["deleted"]) if row else EMPTY

    placed = place_batch(batch, head.revision, bytes(head.hash), slot_of, append_id, bodies)
    if not placed:
        return []
    _write_objects(connection, rows, placed)
    connection.execute(insert(event), [_event_row(each, rows[each.at]["id"]) for each in placed])
    events = [each.event for each in placed]
    last = events[-1]
    _remember(connection, head.revision, last.revision)
    connection.execute(update(log_head).values(revision=last.revision, hash=last.hash))
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify("ctrlmgr", str(last.revision))))
    return events


def stretches(connection: Connection) -> list[ImportedRange]:
    """Return the imported ranges of revisions, oldest first."""
    return [ImportedRange(*row) for row in connection.execute(select(log_import).order_by(log_import.c.after_revision))]


def _known(connection: Connection, batch: Sequence[Imported]) -> dict[Place, _Row]:
    """Return the existing object rows for the objects of a batch."""
    places = list({place_of(each) for each in batch})
    columns = tuple_(object_.c.resource, object_.c.namespace, object_.c.name)
    found: dict[Place, _Row] = {}
    for start in range(0, len(places), _LOOK_UPS):
        query = select(object_).where(columns.in_(places[start : start + _LOOK_UPS]))
        for row in connection.execute(query).mappings():
            found[row["resource"], row["namespace"], row["name"]] = dict(row)
    return found


def _write_objects(connection: Connection, rows: dict[Place, _Row], placed: Sequence[Placed]) -> None:
    """Update the object rows that belong to `placed` events, in `rows` and in the database."""
    known = set(rows)
    newest = connection.execute(select(func.coalesce(func.max(object_.c.id), 0))).scalar_one()
    for at, each, _ in placed:
        if at not in rows:
            newest += 1
            rows[at] = {"id": newest, "resource": at[0], "namespace": at[1], "name": at[2], "create_revision": 0}
        _move(rows[at], each)
    changed = {each.at: rows[each.at] for each in placed}
    if new := [row for at, row in changed.items() if at not in known]:
        connection.execute(insert(object_), new)
    if old := [_moved(row) for at, row in changed.items() if at in known]:
        connection.execute(_MOVE, old)


def _moved(row: _Row) -> Mapping[str, Any]:
    """Return the parameters with which the statement `_MOVE` updates object rows."""
    return {f"new_{name}": row[name] for name in ("id", *_MOVING)}


def _move(row: _Row, each: Event) -> None:
    row["head_revision"] = each.revision
    row["deleted"] = each.type is EventType.DELETED
    row["uid"] = each.object.uid
    if each.type is EventType.ADDED:
        row["create_revision"] = each.revision


def _event_row(placed: Placed, object_id: int) -> Mapping[str, Any]:
    each = placed.event
    return {
        "revision": each.revision,
        "object_id": object_id,
        "previous": each.previous,
        "type": each.type.value,
        "recorded_at": each.recorded_at,
        "actor": each.actor,
        "user_agent": each.user_agent,
        "term": 0,
        "reconcile_id": 0,
        "append_id": each.append_id,
        "hash": each.hash,
        "body": placed.body.decode(),
    }


def _remember(connection: Connection, after: Revision, last: Revision) -> None:
    """Record the imported range from `after` to `last`, or extend the newest range."""
    before = stretches(connection)
    stretch = extended(before, after, last)
    if before and stretch.after == before[-1].after:
        connection.execute(
            update(log_import).where(log_import.c.after_revision == stretch.after).values(last_revision=last)
        )
    else:
        connection.execute(insert(log_import).values(after_revision=stretch.after, last_revision=last))
