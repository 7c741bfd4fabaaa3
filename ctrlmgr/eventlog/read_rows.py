"""What is read of a log in SQL: where it ends, how far it is compacted, reconciles, and rows as events and objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import LogCorrupt, SchemaOutdated
from ctrlmgr.eventlog.event import Cause, Event, EventType, Failure, Head, Outcome, Reconcile
from ctrlmgr.eventlog.tables import compaction_floor, failure, log_head, object_, reconcile, reconcile_trigger

_NAMES: Final = 100
"""Objects asked for in one statement."""


def read_head(connection: Connection) -> Head:
    """Return where the log ends; raises `SchemaOutdated` when there is none."""
    row = connection.execute(select(log_head.c.uuid, log_head.c.revision, log_head.c.hash)).first()
    if row is None:
        raise SchemaOutdated
    return Head(*row)


def read_reconcile(connection: Connection, id: int) -> Reconcile | None:
    """Return what is known of a reconcile."""
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
    """Return the recorded failures, the one that failed last first."""
    return [Failure(**row) for row in connection.execute(select(failure).order_by(failure.c.last_at.desc())).mappings()]


def given(resource: Resource | None) -> tuple[Resource, ...]:
    """Return the resources that one, or none for all, stands for where several may be asked for."""
    return () if resource is None else (resource,)


def read_floor(connection: Connection, *resources: Resource) -> Revision:
    """Return up to where any of `resources` (none: of all) has been compacted."""
    query = select(func.max(compaction_floor.c.floor))
    if resources:
        query = query.where(compaction_floor.c.resource.in_(["", *map(str, resources)]))
    return connection.execute(query).scalar() or 0


def narrowed(query: Select[Any], keys: Iterable[Key]) -> Iterator[Select[Any]]:
    """Narrow a query over objects to some of them: by namespace, as every database looks up by its index."""
    wanted: dict[str, list[str]] = {}
    for namespace, name in keys:
        wanted.setdefault(namespace, []).append(name)
    for namespace, names in wanted.items():
        of_namespace = query.where(object_.c.namespace == namespace)
        for first in range(0, len(names), _NAMES):
            yield of_namespace.where(object_.c.name.in_(names[first : first + _NAMES]))


def as_event(row: Row[Any]) -> Event:
    """Return a row of everything that is known of an event; raises `LogCorrupt`."""
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
    """Return a row of a revision, a resource and a body."""
    return Object(Resource.parse(row.resource), row.body, row.revision)
