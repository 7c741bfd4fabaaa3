"""Returns the surroundings of an object: its failing reconciles, conditions and Events, its owners and its children.

Guarantees: all parts of the result show the state at one revision. Objects that the user may not see are omitted. A
tree has at most `_MOST` objects; if children of an object are omitted, the object's entry contains their number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import NotFound
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.differences import content
from ctrlmgr.inspection.failing_reconciles import as_json, failures_of
from ctrlmgr.inspection.resource_lookup import Named
from ctrlmgr.ui.failures_page import seen_failures
from ctrlmgr.ui.object_page import place_of
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.tables_page import gvk_of, printers
from ctrlmgr.ui.visibility import PastVisibility

_MOST: Final = 120
_CHILDREN: Final = 25
"""Maximum number of children of an object that are shown."""
_EVENTS: Final = 30
_SCANNED: Final = 5000
"""Maximum number of objects with owners that are searched for children."""
_STATES: Final = ("Status", "Ready", "Phase")
"""The columns that describe the state of an object, beginning with the most informative."""
_GOOD: Final = frozenset(
    [
        "Ready",
        "Available",
        "Initialized",
        "Complete",
        "Established",
        "NamesAccepted",
        "Progressing",
        "PodScheduled",
        "ContainersReady",
    ]
)
"""Types of conditions whose status False means a problem; other types are not interpreted."""

_STATE = """
SELECT o.revision, o.body FROM objects_at(:at) AS o
WHERE o.resource = :resource AND o.namespace = :namespace AND o.name = :name"""
_OWNED = """
SELECT o.resource, o.revision, o.body FROM objects_at(:at) AS o
WHERE {where}o.body LIKE '%"ownerReferences"%' ORDER BY o.resource, o.name LIMIT :limit"""
_BY_UID = """
SELECT o.resource, o.revision, o.body FROM objects_at(:at) AS o
WHERE o.namespace IN (:namespace, '') AND o.name = :name AND o.body LIKE :uid LIMIT 5"""
_ABOUT = """
SELECT o.resource, o.revision, o.body FROM objects_at(:at) AS o
WHERE o.resource IN ('events', 'events.events.k8s.io') AND o.namespace = :namespace AND o.body LIKE :name
ORDER BY o.revision DESC LIMIT :limit"""


class Surroundings:
    """Reads the surroundings of objects from a log."""

    def __init__(self, reader: Reader, *, clock: Clock) -> None:
        """Create an instance that queries the log with `reader`; ages are relative to the time of `clock`."""
        self._reader = reader
        self._clock = clock

    def around(self, parameters: Parameters) -> dict[str, Any]:
        """Return an object's owner, children, Events and conditions at the revision `at`.

        Raises `NotFound` if the object did not exist at this revision.
        """

        def answer(database: Database) -> dict[str, Any]:
            resource, key = place_of(parameters)
            parameters.visibility.check(resource, key)
            at, is_past = self._reader.moment(database, parameters), bool(parameters.number("at", 0))
            past = parameters.visibility.past(database)
            obj = _state(database, at, resource, key)
            moment_parser.refuse_expired(database, at, resource)
            if obj is None or not past.sees(resource, key, obj.revision):
                raise NotFound(f'{resource} "{key}" did not exist at revision {at}')
            moment = moment_parser.recorded_at(database, at) if is_past else None
            found = seen_failures(database, parameters.visibility, at=moment)
            kind = str(content(obj).get("kind") or "")
            return {
                "failures": [
                    {**each, "resource": str(resource)}
                    for each in as_json(failures_of(found, Named(resource, bool(key.namespace), kind.lower()), key))
                ],
                "conditions": [*_conditions(obj)],
                "events": [*_events(database, at, obj, kind, past)],
                "tree": _Tree(database, at, past, self._clock.now()).around(obj),
            }

        return self._reader.ask(answer)


def _state(database: Database, at: Revision, resource: Resource, key: Key) -> Object | None:
    place = {"resource": str(resource), "namespace": key.namespace, "name": key.name}
    rows = database.query(_STATE, {**place, "at": at}).rows
    return Object(resource, rows[0][1].encode(), rows[0][0]) if rows else None


def _conditions(obj: Object) -> Iterator[dict[str, Any]]:
    status = content(obj).get("status")
    for each in (status.get("conditions") if isinstance(status, dict) else None) or ():
        if isinstance(each, dict) and "type" in each:
            fields = {name: str(each.get(name) or "") for name in ("type", "status", "reason", "message")}
            colours = {"True": "good", "False": "bad"} if fields["type"] in _GOOD else {}
            yield {**fields, "state": colours.get(fields["status"], "")}


def _events(database: Database, at: Revision, obj: Object, kind: str, past: PastVisibility) -> Iterator[dict[str, Any]]:
    """Yield the Events about an object, beginning with the newest."""
    namespace = obj.namespace or "default"
    filters = {"at": at, "namespace": namespace, "name": f'%"{_escaped(obj.name)}"%', "limit": 10 * _EVENTS}
    number = 0
    for resource, revision, body in database.query(_ABOUT, filters).rows:
        fields = content(Object(Resource.parse(resource), body.encode(), revision))
        about = fields.get("involvedObject") or fields.get("regarding") or {}
        if (about.get("kind"), about.get("name")) != (kind, obj.name) or number == _EVENTS:
            continue
        if past.lists(EVENTS, namespace, revision):
            number += 1
            yield _event(fields)


def _event(fields: Mapping[str, Any]) -> dict[str, Any]:
    series = fields.get("series") or {}
    at = series.get("lastObservedTime") or fields.get("lastTimestamp") or fields.get("eventTime")
    return {
        "type": fields.get("type") or "Normal",
        "reason": fields.get("reason") or "",
        "message": fields.get("message") or fields.get("note") or "",
        "count": series.get("count") or fields.get("count") or 1,
        "at": at or fields["metadata"].get("creationTimestamp") or "",
    }


def _escaped(name: str) -> str:
    """Return a name as a pattern for SQL's LIKE.

    The name of an object contains no quotation marks. An underscore in the pattern matches any character, so the caller
    checks the results again.
    """
    return name.replace("%", "")


class _Tree:
    """The owners and the children of an object at one revision."""

    def __init__(self, database: Database, at: Revision, past: PastVisibility, now: int) -> None:
        self._database = database
        self._at = at
        self._past = past
        self._now = now
        self._left = _MOST

    def around(self, obj: Object) -> dict[str, Any] | None:
        """Return the tree that contains an object, from its topmost owner down.

        Return None if the object has neither owners nor children.
        """
        top, seen = obj, {obj.uid}
        while (owner := self._owner(top)) is not None and owner.uid not in seen:
            seen.add(owner.uid)
            top = owner
        tree = self._branch(top, self._children(top))
        return tree if tree["children"] or top is not obj else None

    def _owner(self, obj: Object) -> Object | None:
        """Return the owner of an object that is its controller; if there is none, return the first owner."""
        owners = sorted((obj.metadata.owner_references or ()), key=lambda each: not each.controller)
        if not owners:
            return None
        filters = {"at": self._at, "namespace": obj.namespace, "name": owners[0].name, "uid": f'%"{owners[0].uid}"%'}
        found = (_object(*row) for row in self._database.query(_BY_UID, filters).rows)
        return next((each for each in found if each.uid == owners[0].uid and self._sees(each)), None)

    def _children(self, top: Object) -> Mapping[str, Sequence[Object]]:
        """Return the objects that may be below `top` in the tree, by the UID of their owner."""
        where = "o.namespace = :namespace AND " if top.namespace else ""
        filters = {"at": self._at, "limit": _SCANNED} | ({"namespace": top.namespace} if where else {})
        found: defaultdict[str, list[Object]] = defaultdict(list)
        for row in self._database.query(_OWNED.format(where=where), filters).rows:
            obj = _object(*row)
            for owner in obj.metadata.owner_references or ():
                found[owner.uid].append(obj)
        return found

    def _branch(self, obj: Object, children: Mapping[str, Sequence[Object]]) -> dict[str, Any]:
        self._left -= 1
        seen = [each for each in children.get(obj.uid, ()) if self._sees(each)]
        shown = [self._branch(each, children) for each in seen[:_CHILDREN] if self._left > 0]
        return {
            "resource": str(obj.resource),
            "namespace": obj.namespace,
            "name": obj.name,
            "state": _state_of(obj, self._now),
            "children": shown,
            "more": len(seen) - len(shown),
        }

    def _sees(self, obj: Object) -> bool:
        return self._past.sees(obj.resource, obj.key, obj.revision)


def _object(resource: str, revision: Revision, body: str) -> Object:
    return Object(Resource.parse(resource), body.encode(), revision)


def _state_of(obj: Object, now: int) -> str:
    """Return the state of an object in one word, as `kubectl get` prints it.

    The result is empty if the table of the object's kind has no column for the state.
    """
    table = printers().printer_of(gvk_of(obj))
    names = [each.name for each in table.columns]
    column = next((names.index(each) for each in _STATES if each in names), None)
    return "" if column is None else str(table.cells(obj, now)[column] or "")
