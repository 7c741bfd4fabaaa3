"""Datasette's metadata for a log: titles, descriptions of views and columns, units, and the predefined queries.

Guarantees: it contains every view and every query. Parameters with a default may be omitted; numbers and names are used
as typed into a form; a moment is a revision, or `head`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.eventlog import views
from ctrlmgr.inspection.questions import Parameter, Question, questions

HEAD = "(SELECT revision FROM log_head)"

COLUMNS: Mapping[str, str] = {
    "revision": "The event's position in the log",
    "previous": "The revision of the object's event before, 0 if there is none",
    "time": "When, in UTC; by the writer's clock",
    "recorded_at": "When, in microseconds since 1970; by the writer's clock",
    "type": "ADDED, MODIFIED or DELETED; of allocations ClusterIP or NodePort",
    "resource": "As kubectl writes it: pods, leases.coordination.k8s.io",
    "namespace": "Empty for what is in none",
    "name": "The object's name",
    "uid": "The object's identity: created again, it has another",
    "kind": "The object's kind",
    "api_version": "The object's apiVersion",
    "created_at": "When the object says that it was created",
    "labels": "The object's labels, JSON",
    "body": "The object, JSON; of a deletion its last state",
    "changes": "What changed since the event before, JSON; null for ADDED",
    "create_revision": "The event that created the object",
    "head_revision": "The object's newest event",
    "existing": "1 if the object exists, 0 if it is deleted",
    "actor": "Who wrote it",
    "user_agent": "With which program",
    "term": "In which leader's term, 0 for none",
    "reconcile_id": "The reconcile it comes from, 0 for none",
    "id": "As in reconcile_id elsewhere",
    "controller": "Which controller",
    "key": "What the controller looked at",
    "attempt": "For the how-manieth time in a row",
    "started_at": "When the reconcile began, in microseconds since 1970",
    "duration": "How long the reconcile took",
    "outcome": "ok, requeued, error or terminal; null while it runs, or when its process died in it",
    "message": "What was wrong",
    "triggers": "All the revisions that the reconcile answered, JSON",
    "trigger_count": "How many revisions the reconcile answered",
    "last_trigger": "The newest revision that the reconcile answered",
    "writes": "How many events were written",
    "first_write": "The first revision that the reconcile wrote",
    "last_write": "The last revision that the reconcile wrote",
    "cause_revision": "A change that the reconcile answered",
    "cause_time": "When that change was made",
    "cause_type": "What happened then: ADDED, MODIFIED or DELETED",
    "cause_resource": "The resource of what changed",
    "cause_namespace": "The namespace of what changed",
    "cause_name": "The name of what changed",
    "cause_actor": "Who made that change",
    "cause_user_agent": "With which program that change was made",
    "cause_reconcile_id": "The reconcile that made that change, 0 if none did",
    "lease": "The Lease that the takeover wrote",
    "holder": "Who led",
    "first_revision": "The first event of the term",
    "last_revision": "The last event of the term",
    "from_time": "When the term began",
    "to_time": "When the term's last event was recorded",
    "value": "The address or port",
    "owner_resource": "The resource of what holds it",
    "owner_namespace": "The namespace of what holds it",
    "owner_name": "The name of what holds it",
    "service": "The Service",
    "address": "The address",
    "ready": "1 if the address is ready, else 0",
    "target_kind": "The kind of what is behind the address",
    "target_name": "The name of what is behind the address",
    "node": "The node of what is behind the address",
    "ports": "The ports, JSON",
}
"""Descriptions of the views' columns."""

UNITS: Mapping[str, str] = {"recorded_at": "µs", "started_at": "µs", "duration": "µs"}

_OBJECTS_AT = re.compile(r"objects_at\(:(\w+)\)")
_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")


def metadata(name: str, relations: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return Datasette's metadata for the database that it calls `name`, the file's name without `.db`.

    `relations` are its tables and views with their columns.
    """
    tables = {view: _view(view, relations[view]) for view in views.VIEWS}
    asked = {question.name: _canned(question) for question in questions().values()}
    hidden = {table: {"hidden": True} for table in ("alembic_version",) if table in relations}
    return {
        "title": "ctrlmgr's event log",
        "description": "Every change of a control plane, who made it, and why.",
        "databases": {name: {"title": "The log", "tables": {**tables, **hidden}, "queries": asked}},
    }


def _view(name: str, columns: list[str]) -> dict[str, Any]:
    newest = {"sort_desc": "revision"} if "revision" in columns else {}
    return {
        "title": name.replace("_", " "),
        "description": views.description(name),
        "columns": {column: COLUMNS[column] for column in columns},
        "units": {column: UNITS[column] for column in columns if column in UNITS},
        **newest,
    }


def _canned(question: Question) -> dict[str, Any]:
    values = {each.name: _value(each) for each in question.parameters}
    at = views.select("objects_at", "sqlite")
    statement = _OBJECTS_AT.sub(lambda call: f"({at.replace(':revision', f':{call[1]}')}\n)", question.statement)
    told = "; ".join(f"{each.name}: {each.description.strip()}{_otherwise(each)}" for each in question.parameters)
    return {
        "title": question.name.replace("_", " "),
        "description": question.description + (f" ({told})" if told else ""),
        "sql": _NAME.sub(lambda found: values.get(found[1], found[0]), statement),
        "params": list(values),
    }


def _otherwise(parameter: Parameter) -> str:
    return "" if parameter.default is None else f" [{parameter.default}]"


def _value(parameter: Parameter) -> str:
    """Return SQL for a form field's value: text, empty if nothing was typed."""
    typed = f":{parameter.name}"
    if parameter.type == "text":
        # `-` is the empty text, as on the command line, because a form sends it for an empty field too.
        return f"CASE {typed} WHEN '-' THEN '' WHEN '' THEN '{_plain(parameter)}' ELSE {typed} END"
    default = HEAD if parameter.type == "revision" else str(parameter.default)
    return f"CAST(coalesce(nullif(nullif({typed}, ''), 'head'), {default}) AS INTEGER)"


def _plain(parameter: Parameter) -> str:
    return "" if parameter.default in (None, "-") else str(parameter.default)
