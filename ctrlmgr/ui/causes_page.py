"""Returns the causes and effects of a change, as a graph of events and the reconciles between them.

Guarantees: the graph has at most `_MOST` events, which are those closest to the change. If events are omitted, the node
next to them contains their number in the field `hidden`. Similar nodes are merged (`grouping`), and the merged node
lists the changes of each of these nodes as text. Every edge of the graph leads forward in time. An event that was
compacted is still a node of the graph. An event of an object that the user may not see is a node of the graph, but
without details. If a reconcile was not recorded, the graph contains a node `iREVISION` instead, which is marked as
inferred and contains the evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import NotFound
from ctrlmgr.inspection.change_summary import summary
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.differences import content, differences
from ctrlmgr.inspection.historical_state import Change
from ctrlmgr.inspection.inferring.inference import Inference
from ctrlmgr.inspection.inferring.rule_application import Inferring
from ctrlmgr.inspection.secret_redaction import masked_sides
from ctrlmgr.inspection.user_edits import latest_user_edit
from ctrlmgr.ui.grouping import grouped
from ctrlmgr.ui.listing import TYPES
from ctrlmgr.ui.object_page import change_at, change_to_json
from ctrlmgr.ui.parameters import Parameters
from ctrlmgr.ui.reader import Reader
from ctrlmgr.ui.visibility import PastVisibility

_MOST = 100
_LEVELS = 12

_EVENTS = """
SELECT e.revision, e.type, e.recorded_at, o.resource, o.namespace, o.name, e.actor, e.user_agent, e.term, e.reconcile_id
FROM event AS e JOIN object AS o ON o.id = e.object_id WHERE e.revision IN ({marks})"""
_EVENT_FIELDS = ("revision", "type", "recordedAt", "resource", "namespace", "name", "actor", "userAgent", "term", "run")

_STATES = """
SELECT e.revision, o.resource, before.body, e.body FROM event AS e JOIN object AS o ON o.id = e.object_id
JOIN event AS before ON before.revision = e.previous WHERE e.type = 2 AND e.revision IN ({marks})"""

_RUNS = """
SELECT id, controller, key, attempt, started_at, duration, outcome, message FROM reconcile WHERE id IN ({marks})"""
_RUN_FIELDS = ("id", "controller", "key", "attempt", "startedAt", "duration", "outcome", "message")

_TRIGGERS = """
SELECT reconcile_id, revision FROM reconcile_trigger WHERE reconcile_id IN ({marks})
ORDER BY revision DESC LIMIT 2000"""
_ANSWERS = """
SELECT revision, reconcile_id FROM reconcile_trigger WHERE revision IN ({marks})
ORDER BY reconcile_id LIMIT 2000"""
_WRITES = """
SELECT reconcile_id, revision FROM event WHERE reconcile_id IN ({marks}) AND reconcile_id <> 0
ORDER BY revision LIMIT 2000"""


class Graphs:
    """Reads graphs of causes and effects from a log."""

    def __init__(self, reader: Reader) -> None:
        """Create an instance that queries the log with `reader`."""
        self._reader = reader

    def change(self, parameters: Parameters) -> dict[str, Any]:
        """Return the change at `revision`, and the graph around the change.

        Raises `NotFound` if no event has this revision.
        """
        revision = parameters.number("revision")

        def answer(database: Database) -> dict[str, Any]:
            head = self._reader.head(database)
            visibility = parameters.visibility.past(database)
            change = change_at(database, revision) if revision <= head else None
            # The error for an invisible change is the same as for a missing change, because a refusal would reveal the
            # object's name.
            if change is None or not visibility.sees(change.object.resource, change.object.key, revision):
                raise NotFound(f"there is no event at revision {revision}; it may have been compacted")
            place = change.object
            where = {"resource": str(place.resource), "namespace": place.namespace, "name": place.name}
            return {
                **where,
                **change_to_json(change),
                "graph": _GraphBuilder(database, head, visibility).around(change),
            }

        return self._reader.ask(answer)


class _GraphBuilder:
    """Builds a graph level by level, beginning with the change in the middle."""

    def __init__(self, database: Database, head: Revision, visibility: PastVisibility) -> None:
        self._database = database
        self._head = head
        self._visibility = visibility
        # events, each with the reconcile that wrote the event; 0 if no reconcile wrote the event
        self._events: dict[Revision, int] = {}
        self._runs: set[int] = set()
        self._edges: set[tuple[str, str]] = set()
        self._hidden: dict[str, int] = {}
        self._inferring = Inferring(database)
        self._inferred: dict[Revision, Inference] = {}
        self._texts: dict[Revision, list[str]] = {}  # the changes of each event, as text

    def around(self, change: Change) -> dict[str, Any]:
        """Return the graph of causes and effects around a change."""
        middle = change.revision
        self._events[middle] = change.author.reconcile
        causes, effects = [middle], [middle]
        for _ in range(_LEVELS):
            causes = self._back(causes)
            effects = self._forth(effects)
        nodes, edges = grouped(self._nodes(), self._edges, f"e{middle}")
        return {"root": f"e{middle}", "nodes": nodes, "edges": edges}

    def _back(self, revisions: Sequence[Revision]) -> list[Revision]:
        """Add the causes of events to the graph; return the events that are new."""
        writers: dict[int, list[Revision]] = {}
        for revision in revisions:
            if run := self._events[revision]:
                writers.setdefault(run, []).append(revision)
                self._edges.add((f"r{run}", f"e{revision}"))
        self._runs |= writers.keys()
        found: list[Revision] = []
        for run, trigger in self._pairs(_TRIGGERS, writers):
            if trigger < min(writers[run]) and self._take(trigger, found, f"r{run}"):
                self._edges.add((f"e{trigger}", f"r{run}"))
        for controller, key, run in self._whose(writers):
            edit = latest_user_edit(self._database, controller, key, before=min(writers[run]))
            if edit is not None and self._take(edit, found, f"r{run}"):
                self._edges.add((f"e{edit}", f"r{run}"))
        for revision in revisions:
            if not self._events[revision] and (inference := self._inferring.of(revision)) is not None:
                self._infer(revision, inference, found)
        self._learn(found)
        return found

    def _infer(self, revision: Revision, inference: Inference, found: list[Revision]) -> None:
        """Add the inferred causes of an event to the graph."""
        self._inferred[revision] = inference
        self._edges.add((f"i{revision}", f"e{revision}"))
        for cause in inference.causes:
            if self._take(cause.revision, found, f"i{revision}"):
                self._edges.add((f"e{cause.revision}", f"i{revision}"))

    def _whose(self, runs: Iterable[int]) -> list[tuple[str, str, int]]:
        """Return the controller, the key and the ID of each of the given reconciles."""
        return [(each["controller"], each["key"], each["id"]) for each in self._read(_RUNS, _RUN_FIELDS, runs)]

    def _forth(self, revisions: Sequence[Revision]) -> list[Revision]:
        """Add the effects of events to the graph; return the events that are new."""
        answered: dict[int, list[Revision]] = {}
        for revision, run in self._pairs(_ANSWERS, revisions):
            answered.setdefault(run, []).append(revision)
        found: list[Revision] = []
        for run, written in self._pairs(_WRITES, answered):
            causes = [each for each in answered[run] if each < written]
            if written > self._head or not causes:
                continue
            if self._take(written, found, f"r{run}" if run in self._runs else f"e{causes[-1]}"):
                self._runs.add(run)
                self._events[written] = run
                self._edges.add((f"r{run}", f"e{written}"))
                self._edges |= {(f"e{cause}", f"r{run}") for cause in causes}
        return found

    def _take(self, revision: Revision, found: list[Revision], beside: str) -> bool:
        """Add an event as a node if the graph has room; return whether the event is a node of the graph."""
        if revision in self._events:
            return True
        if len(self._events) >= _MOST:
            self._hidden[beside] = self._hidden.get(beside, 0) + 1
            return False
        self._events[revision] = 0
        found.append(revision)
        return True

    def _learn(self, revisions: Sequence[Revision]) -> None:
        """Read the reconciles that wrote these events."""
        if revisions:
            for fields in self._read(_EVENTS, _EVENT_FIELDS, revisions):
                self._events[fields["revision"]] = fields["run"]

    def _nodes(self) -> list[dict[str, Any]]:
        events = {each["revision"]: each for each in self._read(_EVENTS, _EVENT_FIELDS, self._events)}
        self._texts = {row[0]: _words(*row[1:]) for row in self._rows(_STATES, self._events)}
        nodes: list[dict[str, Any]] = [
            {"id": f"e{revision}", **self._described(revision, events.get(revision))}
            for revision in sorted(self._events)
        ]
        unseen = {node["id"] for node in nodes if "forbidden" in node}
        beside = {end for edge in self._edges if unseen & set(edge) for end in edge}
        for run in self._read(_RUNS, _RUN_FIELDS, self._runs):
            run["id"] = f"r{run['id']}"
            nodes.append({**run, "key": "", "message": ""} if run["id"] in beside else run)
        nodes += (_inferred(revision, each, beside) for revision, each in self._inferred.items())
        return [{**node, "hidden": self._hidden.get(node["id"], 0)} for node in nodes]

    def _described(self, revision: Revision, fields: dict[str, Any] | None) -> dict[str, Any]:
        """Return the fields of an event; if the user may not see the event, only its revision."""
        if fields is None:
            return {"revision": revision, "compacted": True}
        key = Key(fields["namespace"], fields["name"])
        if not self._visibility.sees(Resource.parse(fields["resource"]), key, revision):
            return {"revision": revision, "forbidden": True}
        return {**fields, "type": TYPES[fields["type"]], "said": self._texts.get(revision, [])}

    def _read(self, statement: str, names: Sequence[str], keys: Iterable[int]) -> list[dict[str, Any]]:
        return [dict(zip(names, row, strict=True)) for row in self._rows(statement, keys)]

    def _pairs(self, statement: str, keys: Iterable[int]) -> list[tuple[int, int]]:
        return [(row[0], row[1]) for row in self._rows(statement, keys)]

    def _rows(self, statement: str, keys: Iterable[int]) -> list[tuple[Any, ...]]:
        numbers = sorted(keys)
        if not numbers:
            return []
        return self._database.query(statement.format(marks=", ".join(map(str, numbers)))).rows


def _words(kind: str, before: str, after: str) -> list[str]:
    """Return the fields that an event changed, as text, without the values of Secrets."""
    resource = Resource.parse(kind)
    sides = (content(Object(resource, body.encode())) for body in (before, after))
    return summary(differences(*masked_sides(resource, *sides)))


def _inferred(revision: Revision, inference: Inference, beside: set[str]) -> dict[str, Any]:
    """Return the node for an inferred cause.

    Next to an event that the user may not see, the node contains the controller, but not the causes.
    """
    place = f"i{revision}"
    node: dict[str, Any] = {"id": place, "controller": inference.controller, "inferred": True}
    if place in beside:
        return {**node, "reason": "", "because": []}
    return {**node, "reason": inference.reason, "because": [each._asdict() for each in inference.causes]}
