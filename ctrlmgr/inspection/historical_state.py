"""Reads earlier states from the log: all objects at a revision, and the history of one object.

Guarantees: compaction never causes a wrong result. Reading a state before the oldest readable revision raises
`Expired`. If the beginning of a history was compacted, the first remaining change has `before` None although its `type`
is not ADDED.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import Expired
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.moment_parser import EVERYTHING, floors_above, refuse_expired


class Author(NamedTuple):
    """The author of an event.

    If a controller is the author, its reconcile is included; otherwise `controller` is empty.
    """

    actor: str
    user_agent: str
    term: int
    reconcile: int
    controller: str
    key: str
    attempt: int


class Change(NamedTuple):
    """One event of an object, with the state that the event replaced."""

    revision: Revision
    type: EventType
    recorded_at: int
    """The time of the event, in microseconds since 1970."""
    author: Author
    object: Object
    before: Object | None
    """The previous state of the object; None if the object did not exist or the state was compacted."""


def objects(
    database: Database,
    resource: Resource,
    *,
    namespace: str | None = None,
    name: str | None = None,
    at: Revision | None = None,
) -> list[Object]:
    """Return all objects of a resource, or only those in a namespace or with a name.

    The objects are sorted by namespace and name.

    `at` is a revision; None means the newest revision. Raises `Expired` if the revision `at` was compacted.
    """
    given = {"resource": str(resource), "namespace": namespace, "name": name}
    filters = {column: value for column, value in given.items() if value is not None}
    where = " AND ".join(f"{column} = :{column}" for column in filters)
    source = "objects" if at is None else "objects_at(:at) AS o"
    parameters: dict[str, Any] = filters if at is None else {**filters, "at": at}
    rows = database.query(
        f"SELECT revision, body FROM {source} WHERE {where} ORDER BY resource, namespace, name", parameters
    ).rows
    if at is not None:
        refuse_expired(database, at, resource)
    return [Object(resource, body.encode(), revision) for revision, body in rows]


_HISTORY = """
SELECT h.revision, h.previous, e.type, h.recorded_at, h.actor, h.user_agent, h.term,
    h.reconcile_id, h.controller, h.key, h.attempt, h.body
FROM history AS h JOIN event AS e ON e.revision = h.revision
WHERE h.resource = :resource AND h.namespace = :namespace AND h.name = :name AND h.revision <= :until
ORDER BY h.revision"""


def history(database: Database, resource: Resource, key: Key, *, until: Revision) -> list[Change]:
    """Return every event of one object up to revision `until`, oldest first; empty if the object never existed."""
    place = {"resource": str(resource), "namespace": key.namespace, "name": key.name, "until": until}
    changes: list[Change] = []
    last: Change | None = None
    for revision, previous, number, recorded_at, *author, body in database.query(_HISTORY, place).rows:
        before = last.object if last and last.revision == previous and number != EventType.ADDED else None
        obj = Object(resource, body.encode(), revision)
        last = Change(revision, EventType(number), recorded_at, author_of(author), obj, before)
        changes.append(last)
    return changes


def author_of(row: list[Any]) -> Author:
    """Return the author, given the columns actor, user_agent, term, reconcile_id, controller, key and attempt."""
    actor, user_agent, term, reconcile, controller, key, attempt = row
    return Author(actor, user_agent, term, reconcile, controller or "", key or "", attempt or 0)


class Pair(NamedTuple):
    """The states of an object at two revisions; a state is None if the object did not exist at that revision."""

    resource: Resource
    key: Key
    before: Object | None
    after: Object | None


_TOUCHED = """
SELECT t.resource, t.namespace, t.name, o.revision, o.body
FROM (
    SELECT DISTINCT p.resource, p.namespace, p.name
    FROM event AS e JOIN object AS p ON p.id = e.object_id
    WHERE e.revision > :first AND e.revision <= :last {more}
) AS t
JOIN objects_at(:at) AS o ON o.resource = t.resource AND o.namespace = t.namespace AND o.name = t.name"""


def between(
    database: Database,
    first: Revision,
    last: Revision,
    *,
    resource: Resource | None = None,
    namespace: str | None = None,
    name: str | None = None,
) -> list[Pair]:
    """Return the objects that differ between the revisions `first` and `last`, by resource, namespace and name.

    An object that was changed, and later changed back to its first state, is not included. Raises `Expired` if the
    revision `first` was compacted for all resources or for `resource`. If `resource` is not given, resources that were
    compacted individually are omitted (see `floors_above`).
    """
    given = {"resource": resource and str(resource), "namespace": namespace, "name": name}
    filters = {column: value for column, value in given.items() if value is not None}
    query = _TOUCHED.format(more="".join(f" AND p.{column} = :{column}" for column in filters))
    states: list[dict[tuple[str, str, str], Object]] = []
    for at in (first, last):
        rows = database.query(query, {**filters, "first": first, "last": last, "at": at}).rows
        states.append(
            {
                (kind, in_namespace, called): Object(Resource.parse(kind), body.encode(), revision)
                for kind, in_namespace, called, revision, body in rows
            }
        )
    before, after = states
    lost = floors_above(database, first)
    for each in {EVERYTHING, str(resource or EVERYTHING)} & lost.keys():
        raise Expired(first, lost[each])
    return [
        Pair(Resource.parse(place[0]), Key(place[1], place[2]), before.get(place), after.get(place))
        for place in sorted(before.keys() | after.keys())
        if place[0] not in lost
        if place not in before or place not in after or before[place].body != after[place].body
    ]
