"""What is read of a log in SQL: where it ends, how far it is compacted, and rows as events and objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import LogCorrupt, SchemaOutdated
from ctrlmgr.eventlog.event import Event, EventType, Head
from ctrlmgr.eventlog.tables import compaction_floor, log_head, object_

_NAMES: Final = 100
"""Objects asked for in one statement."""


def read_head(connection: Connection) -> Head:
    """Return where the log ends; raises `SchemaOutdated` when there is none."""
    row = connection.execute(select(log_head.c.uuid, log_head.c.revision, log_head.c.hash)).first()
    if row is None:
        raise SchemaOutdated
    return Head(*row)


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
