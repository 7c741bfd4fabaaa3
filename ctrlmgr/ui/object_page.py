"""Returns one object at a revision, with the change that set each line, and the object's history.

Guarantees: the change that set a line is searched only among the newest `_BLAMED` changes. If an older change set the
line, the line's field `certain` is False. Values of Secrets are hidden (`secrecy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.causes import newest_event
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.differences import ABSENT, Difference, content, differences
from ctrlmgr.inspection.field_authors import blame
from ctrlmgr.inspection.historical_state import Author, Change, author_of
from ctrlmgr.inspection.secret_redaction import CHANGED, HIDDEN, masked, masked_sides
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.yaml_lines import lines

_BLAMED = 200
_CHANGES = 100

_CHANGE = """
SELECT o.resource, e.revision, e.type, e.recorded_at, e.actor, e.user_agent, e.term, e.reconcile_id,
    r.controller, r.key, r.attempt, e.body, before.body AS was
FROM object AS o
JOIN event AS e ON e.object_id = o.id
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id
LEFT JOIN event AS before ON before.revision = e.previous
WHERE """
_OF_ONE = """o.resource = :resource AND o.namespace = :namespace AND o.name = :name
    AND e.revision > :after AND e.revision <= :until
ORDER BY e.previous DESC LIMIT :limit"""


class Objects:
    """Reads objects and their histories from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def object(self, parameters: Parameters) -> dict[str, Any]:
        """Return the lines of the object at the revision `at`; raises `NotFound` if the object never existed."""

        def answer(database: Database) -> dict[str, Any]:
            resource, key = place_of(parameters)
            parameters.visibility.check(resource, key)
            head, at = self._reader.head(database), self._reader.moment(database, parameters)
            after = parameters.visibility.past(database).object_hidden_until(resource, key)
            newest_event(database, resource, key, after=after, until=at)
            history = newest(database, resource, key, after=after, until=at, limit=_BLAMED)[::-1]
            moment_parser.refuse_expired(database, at, resource)
            last = newest_event(database, resource, key, after=after, until=head)
            return {"at": at, "head": head, "newest": last, **_described(history)}

        return self._reader.ask(answer)

    def history(self, parameters: Parameters) -> dict[str, Any]:
        """Return the newest `limit` changes of the object before the revision `before`, newest first."""
        limit = parameters.number("limit", 40, low=1, high=_CHANGES)

        def answer(database: Database) -> dict[str, Any]:
            resource, key = place_of(parameters)
            parameters.visibility.check(resource, key)
            head = self._reader.head(database)
            before = min(parameters.number("before", head + 1, low=1), head + 1)
            after = parameters.visibility.past(database).object_hidden_until(resource, key)
            found = newest(database, resource, key, after=after, until=before - 1, limit=limit + 1)
            return {
                "head": head,
                "changes": [change_to_json(each) for each in found[:limit]],
                "more": len(found) > limit,
            }

        return self._reader.ask(answer)


def place_of(parameters: Parameters) -> tuple[Resource, Key]:
    """Return the resource and the key of the requested object."""
    key = Key(parameters.text("namespace", ""), parameters.text("name"))
    return Resource.parse(parameters.text("resource")), key


def newest(
    database: Database, resource: Resource, key: Key, *, after: Revision, until: Revision, limit: int
) -> list[Change]:
    """Return the newest `limit` changes of one object, between the revisions `after` and `until`, newest first."""
    place = {"resource": str(resource), "namespace": key.namespace, "name": key.name}
    rows = database.query(_CHANGE + _OF_ONE, {**place, "after": after, "until": until, "limit": limit}).rows
    return [_change(row) for row in rows]


def change_at(database: Database, revision: Revision) -> Change | None:
    """Return the change at a revision; None if the revision is not a change of the object."""
    rows = database.query(_CHANGE + "e.revision = :revision", {"revision": revision}).rows
    return _change(rows[0]) if rows else None


def _change(row: tuple[Any, ...]) -> Change:
    kind, revision, number, recorded_at, *author, body, was = row
    resource = Resource.parse(kind)
    before = Object(resource, was.encode()) if was and number != EventType.ADDED else None
    obj = Object(resource, body.encode(), revision)
    return Change(revision, EventType(number), recorded_at, author_of(author), obj, before)


def _described(history: Sequence[Change]) -> dict[str, Any]:
    change = history[-1]
    obj = change.object
    setters = {each.path: each for each in blame(history)}
    fields = masked(obj.resource, content(obj))
    return {
        "exists": change.type is not EventType.DELETED,
        "revision": change.revision,
        "uid": fields["metadata"].get("uid", ""),
        "kind": fields.get("kind", ""),
        "apiVersion": fields.get("apiVersion", ""),
        "lines": [
            [
                line.depth,
                line.text,
                *([each.change.revision, each.certain] if (each := setters.get(line.path)) is not None else []),
            ]
            for line in lines(fields)
        ],
        "changes": {each.change.revision: head_of(each.change) for each in setters.values()},
    }


def head_of(change: Change) -> dict[str, Any]:
    """Return the author and time of a change as plain JSON values."""
    return {
        "revision": change.revision,
        "type": change.type.name,
        "recordedAt": change.recorded_at,
        **author(change.author),
    }


def author(author: Author) -> dict[str, Any]:
    """Return an author as plain JSON values."""
    return {
        "actor": author.actor,
        "userAgent": author.user_agent,
        "term": author.term,
        "reconcile": author.reconcile,
        "controller": author.controller,
        "key": author.key,
        "attempt": author.attempt,
    }


def change_to_json(change: Change) -> dict[str, Any]:
    """Return a change with its differences as plain JSON values.

    `lost` says whether the state before the change was compacted.
    """
    resource = change.object.resource
    sides = masked_sides(resource, content(change.before), content(change.object))
    found = [] if change.before is None else differences(*sides)
    is_lost = change.before is None and change.type is not EventType.ADDED
    return {**head_of(change), "lost": is_lost, "changes": [plain(each) for each in found]}


def plain(difference: Difference) -> dict[str, Any]:
    """Return a difference as plain JSON values, without the values of Secrets."""
    sides = {"from": difference.before, "to": difference.after}
    shown = {side: HIDDEN if value == CHANGED else value for side, value in sides.items() if value is not ABSENT}
    return {"path": difference.path, **shown}
