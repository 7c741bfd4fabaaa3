"""Creates Datasette's metadata for a log: titles, descriptions of views and columns, units, predefined queries.

Guarantees: the metadata contains every view and every predefined query. A parameter with a default may be left empty.
Numbers and names are used as the user types them. A point in time is a revision or `head`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlmgr.eventlog import sql_views
from ctrlmgr.inspection.queries import Parameter, Question, questions

HEAD = "(SELECT revision FROM log_head)"

COLUMNS: Mapping[str, str] = {
    "revision": "The event's revision in the log",
    "previous": "The revision of the object's previous event, 0 if there is none",
    "time": "The time in UTC, by the writer's clock",
    "recorded_at": "The time in microseconds since 1970, by the writer's clock",
    "type": "ADDED, MODIFIED or DELETED; for allocations ClusterIP or NodePort",
    "resource": "The resource, as in kubectl: pods, leases.coordination.k8s.io",
    "namespace": "The object's namespace; empty for cluster-scoped objects",
    "name": "The object's name",
    "uid": "The object's UID, which differs after the object is created again",
    "kind": "The object's kind",
    "api_version": "The object's apiVersion",
    "created_at": "The object's creationTimestamp",
    "labels": "The object's labels, JSON",
    "body": "The object, JSON; for a deletion its last state",
    "changes": "The changes since the previous event, JSON; null for ADDED",
    "create_revision": "The revision of the event that created the object",
    "head_revision": "The revision of the object's newest event",
    "existing": "1 if the object exists, 0 if it is deleted",
    "actor": "The user that wrote the event",
    "user_agent": "The user agent of the program that wrote the event",
    "term": "The leader's term in which the event was written, 0 for none",
    "reconcile_id": "The reconcile that wrote the event, 0 for none",
    "id": "The reconcile's number, as in reconcile_id of other views",
    "controller": "The controller's name",
    "key": "The key that the controller reconciled",
    "attempt": "The number of the attempt; 1 is the first",
    "started_at": "The start of the reconcile, in microseconds since 1970",
    "duration": "The duration of the reconcile",
    "outcome": "ok, requeued, error or terminal; null while it runs, or if its process ended before",
    "message": "The error",
    "triggers": "All revisions that triggered the reconcile, JSON",
    "trigger_count": "The number of revisions that triggered the reconcile",
    "last_trigger": "The newest revision that triggered the reconcile",
    "writes": "The number of written events",
    "first_write": "The first revision that the reconcile wrote",
    "last_write": "The last revision that the reconcile wrote",
    "cause_revision": "The revision of a change that triggered the reconcile",
    "cause_time": "The time of that change",
    "cause_type": "The type of that change: ADDED, MODIFIED or DELETED",
    "cause_resource": "The resource of the changed object",
    "cause_namespace": "The namespace of the changed object",
    "cause_name": "The name of the changed object",
    "cause_actor": "The user that made that change",
    "cause_user_agent": "The user agent of the program that made that change",
    "cause_reconcile_id": "The reconcile that made that change, 0 for none",
    "lease": "The Lease of the leader election",
    "holder": "The identity of the leader",
    "first_revision": "The revision of the term's first event",
    "last_revision": "The revision of the term's last event",
    "from_time": "The time of the term's first event",
    "to_time": "The time of the term's last event",
    "value": "The address or port",
    "owner_resource": "The resource of the object that has the allocation",
    "owner_namespace": "The namespace of the object that has the allocation",
    "owner_name": "The name of the object that has the allocation",
    "service": "The Service",
    "address": "The address",
    "ready": "1 if the address is ready, else 0",
    "target_kind": "The kind of the endpoint's target, such as Pod",
    "target_name": "The name of the endpoint's target",
    "node": "The node of the endpoint",
    "ports": "The ports, JSON",
}
"""Descriptions of the views' columns."""

UNITS: Mapping[str, str] = {"recorded_at": "µs", "started_at": "µs", "duration": "µs"}

_OBJECTS_AT = re.compile(r"objects_at\(:(\w+)\)")
_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")


def metadata(name: str, relations: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return Datasette's metadata for the database `name`, which is the name of the database file without `.db`.

    `relations` contains the tables and views of the database with their columns.
    """
    tables = {view: _view(view, relations[view]) for view in sql_views.VIEWS}
    canned = {question.name: _canned(question) for question in questions().values()}
    hidden = {table: {"hidden": True} for table in ("alembic_version",) if table in relations}
    return {
        "title": "ctrlmgr's event log",
        "description": "Every change of a control plane, with its author and its cause.",
        "databases": {name: {"title": "The log", "tables": {**tables, **hidden}, "queries": canned}},
    }


def _view(name: str, columns: list[str]) -> dict[str, Any]:
    newest = {"sort_desc": "revision"} if "revision" in columns else {}
    return {
        "title": name.replace("_", " "),
        "description": sql_views.description(name),
        "columns": {column: COLUMNS[column] for column in columns},
        "units": {column: UNITS[column] for column in columns if column in UNITS},
        **newest,
    }


def _canned(question: Question) -> dict[str, Any]:
    values = {each.name: _value(each) for each in question.parameters}
    at = sql_views.select("objects_at", "sqlite")
    statement = _OBJECTS_AT.sub(lambda call: f"({at.replace(':revision', f':{call[1]}')}\n)", question.statement)
    parameters = "; ".join(f"{each.name}: {each.description.strip()}{_otherwise(each)}" for each in question.parameters)
    return {
        "title": question.name.replace("_", " "),
        "description": question.description + (f" ({parameters})" if parameters else ""),
        "sql": _NAME.sub(lambda found: values.get(found[1], found[0]), statement),
        "params": list(values),
    }


def _otherwise(parameter: Parameter) -> str:
    return "" if parameter.default is None else f" [{parameter.default}]"


def _value(parameter: Parameter) -> str:
    """Return the SQL expression for the value of a form field.

    The value is a string, empty if the user typed nothing.
    """
    typed = f":{parameter.name}"
    if parameter.type == "text":
        # `-` stands for the empty string, as on the command line, because a form sends the empty string for an empty
        # field.
        return f"CASE {typed} WHEN '-' THEN '' WHEN '' THEN '{_plain(parameter)}' ELSE {typed} END"
    default = HEAD if parameter.type == "revision" else str(parameter.default)
    return f"CAST(coalesce(nullif(nullif({typed}, ''), 'head'), {default}) AS INTEGER)"


def _plain(parameter: Parameter) -> str:
    return "" if parameter.default in (None, "-") else str(parameter.default)
