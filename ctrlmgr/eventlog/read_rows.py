"""Reads a log with SQL: its head, floors, reconciles and failures.

The module also converts rows to events and objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select
from sqlalchemy.exc import DBAPIError

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import LogCorrupt, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog.event import Cause, Event, EventType, Failure, Head, Outcome, Reconcile
from ctrlmgr.eventlog.log_tables import (
    append_trace,
    compaction_floor,
    event,
    failure,
    log_head,
    object_,
    reconcile,
    reconcile_trigger,
)

_NAMES: Final = 100
"""The number of objects per SELECT statement."""
_SIGNS_OF_DAMAGE: Final = ("Could not decode to UTF-8", "malformed", "not a database")


def read_error(error: DBAPIError) -> LogUnavailable | SchemaOutdated | LogCorrupt:
    """Convert an error of the database during a read to an error of the log."""
    text = str(error.orig)
    if any(sign in text for sign in _SIGNS_OF_DAMAGE):
        return LogCorrupt(f"the database is damaged: {text}")
    if "no such table" in text or "does not exist" in text:
        return SchemaOutdated()
    return LogUnavailable(f"the event log cannot be read: {text}")


def read_head(connection: Connection) -> Head:
    """Return the head of the log; raises `SchemaOutdated` if the database has no head row."""
    row = connection.execute(select(log_head.c.uuid, log_head.c.revision, log_head.c.hash)).first()
    if row is None:
        raise SchemaOutdated
    return Head(*row)


def read_reconcile(connection: Connection, id: int) -> Reconcile | None:
    """Return the recorded reconcile with this id; None if there is none."""
    row = connection.execute(select(reconcile).where(reconcile.c.id == id)).first()
    if row is None:
        return None
    triggers = connection.execute(
        select(reconcile_trigger.c.revision)
        .where(reconcile_trigger.c.reconcile_id == id)
        .order_by(reconcile_trigger.c.revision)
    ).scalars()
    cause = Cause(row.id, row.controller, row.key, row.attempt, row.started_at, tuple(triggers))
    outcome = None if row.outcome is None else Outcome(row.duration, row.outcome, row.message)
    return Reconcile(cause, outcome)


def read_failures(connection: Connection) -> list[Failure]:
    """Return the recorded failures, the most recent first."""
    return [Failure(**row) for row in connection.execute(select(failure).order_by(failure.c.last_at.desc())).mappings()]


def read_traces(connection: Connection, revisions: Collection[Revision]) -> dict[Revision, str]:
    """Return the trace contexts of the events at `revisions` that have one, in the order of the revisions."""
    query = (
        select(event.c.revision, append_trace.c.trace_context)
        .join(append_trace, append_trace.c.append_id == event.c.append_id)
        .where(event.c.revision.in_(revisions))
        .order_by(event.c.revision)
    )
    return {row.revision: row.trace_context for row in connection.execute(query)}


def given(resource: Resource | None) -> tuple[Resource, ...]:
    """Return a tuple of the resource or, for None, an empty tuple, which means all resources."""
    return () if resource is None else (resource,)


def read_floor(connection: Connection, *resources: Resource) -> Revision:
    """Return the highest compaction floor of `resources`.

    If no resource is given, return the highest floor of all resources.
    """
    query = select(func.max(compaction_floor.c.floor))
    if resources:
        query = query.where(compaction_floor.c.resource.in_(["", *map(str, resources)]))
    return connection.execute(query).scalar() or 0


def narrowed(query: Select[Any], keys: Iterable[Key]) -> Iterator[Select[Any]]:
    """Yield the query for each namespace and chunk of names in `keys`, so that the database can use its index."""
    selected: dict[str, list[str]] = {}
    for namespace, name in keys:
        selected.setdefault(namespace, []).append(name)
    for namespace, names in selected.items():
        of_namespace = query.where(object_.c.namespace == namespace)
        for first in range(0, len(names), _NAMES):
            yield of_namespace.where(object_.c.name.in_(names[first : first + _NAMES]))


def as_event(row: Row[Any]) -> Event:
    """Convert a row of the event table to an `Event`; raises `LogCorrupt` if the row is damaged."""
    values: tuple[Any, ...] = tuple(row)
    revision, previous, type_, recorded_at, actor, user_agent, term, cause, append_id, chain, body, resource = values[
        :12
    ]
    obj = Object(Resource.parse(resource), body, revision)
    try:
        type_ = EventType(type_)
    except ValueError as error:
        raise LogCorrupt(f"revision {revision} is damaged: {error}", revision=revision) from error
    return Event(revision, previous, type_, obj, recorded_at, actor, user_agent, term, cause, append_id, chain)


def as_object(row: Row[Any]) -> Object:
    """Convert a row of revision, resource and body to an `Object`."""
    return Object(Resource.parse(row.resource), row.body, row.revision)
