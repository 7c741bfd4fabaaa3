"""Purges an object: removes its content from the log, but keeps the revision, time and author of each change.

Guarantees:
- The payload of a purged event contains only the object's kind and name, and the digest that the hash chain needs.
  `verify` checks the chain across purged events, and detects any other payload in place of a purged payload.
- The resource's floor (its oldest readable revision) is raised first, in its own transaction, as in compaction. A
  reader of a purged revision gets `Expired`, never an incomplete state.
- An existing object that is purged keeps its current state.
- Failure records of keys with the object's name are deleted, because an error message may quote the object.

SQLite and PostgreSQL keep copies of overwritten data (free pages, dead rows). The log of each database also removes
copies of the payloads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select, update

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.eventlog.compaction import Write, raise_floor
from ctrlmgr.eventlog.hash_chain import Stamp, content_digest
from ctrlmgr.eventlog.log_tables import event, failure, object_
from ctrlmgr.eventlog.purged_payload import purged_digest, remains

_CHUNK = 200


class Purged(NamedTuple):
    """The result of a purge: the number of purged events, which are all at or before `revision`."""

    events: int
    revision: Revision


def purge(write: Write, body: Any, resource: Resource, key: Key, *, superseded: bool = False) -> Purged:
    """Remove an object's payloads from the log; the argument `body` is the SQL expression for the body column as bytes.

    Raises `NotFound` if the object never existed, and `Conflict` if the object still exists. If `superseded` is set, an
    existing object keeps its current state, and only its older states are removed.
    """
    with write() as connection:
        place = _place(connection, resource, key)
        if place is None:
            raise NotFound(f'{resource} "{key}" has never existed, or all its events have been removed')
        if not place.deleted and not superseded:
            raise Conflict(f'{resource} "{key}" exists: delete it first, or purge its superseded states (--superseded)')
        raise_floor(connection, str(resource), place.head_revision)
        # An error message may quote the object. The kind of a failure's key is not always known, so delete the failures
        # of all keys with this name.
        connection.execute(delete(failure).where(failure.c.key == str(key)))
    last = place.head_revision if place.deleted else place.head_revision - 1
    after = events = 0
    while True:
        with write() as connection:
            rows = connection.execute(_payloads(body, place, after, last).limit(_CHUNK)).all()
            events += sum(_bury(connection, row, place) for row in rows)
        if not rows:
            return Purged(events, last)
        after = rows[-1].revision


def _place(connection: Connection, resource: Resource, key: Key) -> Any:
    here = (object_.c.resource == str(resource), object_.c.namespace == key.namespace, object_.c.name == key.name)
    return connection.execute(select(object_).where(*here)).first()


def _payloads(body: Any, place: Any, after: Revision, last: Revision) -> Any:
    """Select an object's events after one revision and up to another revision, with all fields that a digest covers."""
    return (
        select(
            event.c.revision,
            event.c.type,
            event.c.recorded_at,
            event.c.actor,
            event.c.user_agent,
            event.c.term,
            event.c.reconcile_id,
            event.c.append_id,
            body.label("body"),
        )
        .where(event.c.object_id == place.id, event.c.revision > after, event.c.revision <= last)
        .order_by(event.c.revision)
    )


def _bury(connection: Connection, row: Any, place: Any) -> bool:
    """Overwrite the payload of one event; return False if it was purged earlier."""
    if purged_digest(row.body, Key(place.namespace, place.name)) is not None:
        return False
    stamp = Stamp(row.recorded_at, row.actor, row.user_agent, row.term, row.reconcile_id, row.append_id)
    digest = content_digest((place.resource, place.namespace, place.name), row.body, row.type, stamp)
    left = remains(row.body, digest).decode()
    connection.execute(update(event).where(event.c.revision == row.revision).values(body=left))
    return True
