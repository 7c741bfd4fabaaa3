"""Builds trees of the causes or effects of an event; the links between events are the reconciles.

Guarantees:

- If a reconcile wrote an event, the event's causes are all changes that triggered the reconcile, including changes that
  the work queue merged. The last user edit of the workload (`user_edits`) is also a cause of the event.
- A tree is finite: if an event is in the tree more than once, its links are shown only once; the depth is also limited.
  If links are omitted, the node of the tree names the reason.
- For a compacted event, the tree shows only the revision.
- If events were imported without their reconciles, their causes are inferred, and marked as inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import format_time
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog import EventType
from ctrlmgr.inspection.audited_requests import AuditDatabase, Request, request_of
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.historical_state import Change, author_of
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.inferring.rule_application import Inferring
from ctrlmgr.inspection.user_edits import latest_user_edit

ADMISSION = "admission"
"""The name that replaces the controller in a cause that is a change by admission (`engine.writes.attempts`)."""
DEEPEST = 100
"""Maximum depth of a tree of causes or effects."""


class Run(NamedTuple):
    """A reconcile, with the columns of the view `reconciles`.

    `duration` is in microseconds, None while the reconcile runs.
    """

    id: int
    controller: str
    key: str
    attempt: int
    started_at: int
    duration: int | None
    outcome: str | None
    message: str


class Node(NamedTuple):
    """An event in a tree of causes or effects."""

    revision: Revision
    change: Change | None
    """The event; None if the log has compacted the event."""
    run: Run | None
    """The reconcile that wrote the event; None if no reconcile wrote the event."""
    links: tuple[Node, ...]
    """The causes or the effects of the event, sorted by revision."""
    request: Request | None = None
    """The request that wrote the event; None if the request was not audited or is no longer stored."""
    cut: str = ""
    """The reason why links are omitted, `repeated` or `too deep`; empty if no links are omitted."""
    inferred: Inference | None = None
    """The inferred author and the reason, if no reconcile is recorded; the links of the node are then uncertain."""
    because: str = ""
    """The reason why the event is considered a cause; empty unless the cause is inferred."""


Follow = Callable[[Database, Revision, Run | None], Sequence[Revision]]
_Infer = Callable[[Revision], Inference | None]


def why(database: Database, revision: Revision, *, depth: int = DEEPEST, requests: AuditDatabase | None = None) -> Node:
    """Return the causes of an event, including stored `requests`; raises `NotFound` if no event has this revision."""
    return _tree(database, revision, _triggers, depth, requests, Inferring(database).of)


def effects(database: Database, revision: Revision, *, depth: int = DEEPEST) -> Node:
    """Return the effects of an event; raises `NotFound` if no event has this revision."""
    return _tree(database, revision, _answers, depth)


def _tree(
    database: Database,
    revision: Revision,
    follow: Follow,
    depth: int,
    requests: AuditDatabase | None = None,
    infer: _Infer = lambda revision: None,
) -> Node:
    root = _TreeBuilder(database, follow, requests, infer).node(revision, min(depth, DEEPEST))
    if root.change is None:
        raise NotFound(f"there is no event at revision {revision}; it may have been compacted")
    return root


class _TreeBuilder:
    """A tree while it is built, and the events that it already contains."""

    def __init__(self, database: Database, follow: Follow, requests: AuditDatabase | None, infer: _Infer) -> None:
        self._database = database
        self._infer = infer
        self._requests = requests
        self._follow = follow
        self._seen: set[Revision] = set()

    def node(self, revision: Revision, depth: int, because: str = "") -> Node:
        change = _change_at(self._database, revision)
        run = _run(self._database, change.author.reconcile) if change else None
        inferred = self._infer(revision) if change is not None and run is None else None
        reasons = {each.revision: each.reason for each in inferred.causes} if inferred else {}
        onward = [*reasons] or self._follow(self._database, revision, run)
        cut = "" if not onward else "repeated" if revision in self._seen else "too deep" if depth <= 0 else ""
        self._seen.add(revision)
        links = () if cut else tuple(self.node(each, depth - 1, reasons.get(each, "")) for each in onward)
        request = self._request(change) if run is None else None
        return Node(revision, change, run, links, request, cut, inferred, because)

    def _request(self, change: Change | None) -> Request | None:
        if self._requests is None or change is None:
            return None
        obj = change.object
        actor = change.author.actor
        return request_of(self._requests, change.revision, obj.resource, obj.key, actor, change.recorded_at)


def _triggers(database: Database, revision: Revision, run: Run | None) -> Sequence[Revision]:
    if run is None:
        return ()
    statement = "SELECT revision FROM reconcile_trigger WHERE reconcile_id = :id ORDER BY revision"
    answered = [row[0] for row in database.query(statement, {"id": run.id}).rows if row[0] < revision]
    edit = latest_user_edit(database, run.controller, run.key, before=revision)
    return sorted({*answered, *([edit] if edit is not None else [])})


def _answers(database: Database, revision: Revision, run: Run | None) -> Sequence[Revision]:
    statement = "SELECT revision FROM causes WHERE cause_revision = :revision ORDER BY revision"
    return [row[0] for row in database.query(statement, {"revision": revision}).rows if row[0] > revision]


_CHANGE = """
SELECT o.resource, e.type, e.recorded_at, e.actor, e.user_agent, e.term, e.reconcile_id, r.controller, r.key, r.attempt,
    e.body, before.body AS was
FROM event AS e
JOIN object AS o ON o.id = e.object_id
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id
LEFT JOIN event AS before ON before.revision = e.previous
WHERE e.revision = :revision"""


def _change_at(database: Database, revision: Revision) -> Change | None:
    rows = database.query(_CHANGE, {"revision": revision}).rows
    if not rows:
        return None
    kind, number, recorded_at, *author, body, was = rows[0]
    resource = Resource.parse(kind)
    before = Object(resource, was.encode()) if was and number != EventType.ADDED else None
    obj = Object(resource, body.encode(), revision)
    return Change(revision, EventType(number), recorded_at, author_of(author), obj, before)


def _run(database: Database, id: int) -> Run | None:
    columns = ", ".join(Run._fields)
    rows: list[Any] = database.query(f"SELECT {columns} FROM reconciles WHERE id = :id", {"id": id}).rows if id else []
    return Run(*rows[0]) if rows else None


def newest_event(database: Database, resource: Resource, key: Key, *, until: Revision, after: Revision = 0) -> Revision:
    """Return the revision of an object's newest event after `after` up to `until`.

    Raises `NotFound` if there is no such event.
    """
    statement = (
        "SELECT max(revision) FROM history"
        " WHERE resource = :resource AND namespace = :namespace AND name = :name"
        " AND revision > :after AND revision <= :until"
    )
    place = {"resource": str(resource), "namespace": key.namespace, "name": key.name}
    newest = database.query(statement, {**place, "after": after, "until": until}).rows[0][0]
    if newest is None:
        raise NotFound(f"no events for {resource} {key} up to revision {until}")
    return int(newest)


def count(node: Node) -> int:
    """Return the number of events in a tree, including the root."""
    return 1 + sum(map(count, node.links))


def as_json(node: Node) -> dict[str, Any]:
    """Return a tree as plain JSON values."""
    fields: dict[str, Any] = {"revision": node.revision}
    if change := node.change:
        fields |= {
            "type": change.type.name,
            "resource": str(change.object.resource),
            "namespace": change.object.namespace,
            "name": change.object.name,
            "recordedAt": format_time(change.recorded_at),
            "actor": change.author.actor,
            "userAgent": change.author.user_agent,
            "term": change.author.term,
        }
    if run := node.run:
        fields["reconcile"] = {
            "controller": run.controller,
            "key": run.key,
            "attempt": run.attempt,
            "startedAt": format_time(run.started_at),
            "duration": None if run.duration is None else run.duration / 1_000_000,
            "result": run.outcome,
            "message": run.message,
        }
    if node.request:
        fields["request"] = node.request._asdict()
    if node.inferred:
        fields["inferred"] = node.inferred.as_json()
    if node.because:
        fields["because"] = node.because
    if node.cut:
        fields["cut"] = node.cut
    fields["links"] = [as_json(each) for each in node.links]
    return fields
