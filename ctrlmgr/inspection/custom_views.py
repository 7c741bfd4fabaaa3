"""Makes custom kinds available in SQL; each established kind is a view.

Guarantees:

- An established kind can be queried by the name of its resource, such as `"widgets.example.com"`. The kind's plural can
  also be used if no other kind, table or view has this name. A kind without a CustomResourceDefinition has no view.
- The columns of a view are `spec`, `status`, the kind's printer columns, and those columns of `objects` that differ
  between objects of one kind. The views return the same values on SQLite and PostgreSQL.
- Nothing is created in the database: the views that a query uses are prepended to the query. Queries without custom
  kinds are not changed, so they are not slower.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ctrlmgr.api.resource import DEFINITIONS
from ctrlmgr.errors import QueryRefused, UnknownRelation
from ctrlmgr.eventlog.sql_views import render
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.inspection.database import Database, Rows
from ctrlmgr.inspection.query_checks import names_and_places

_OWN = ("namespace", "name", "uid", "create_revision", "revision", "time", "recorded_at", "actor", "user_agent")
_TOLD = ("created_at", "labels")
_LAST = ("spec", "status", "body")
_DEFINITIONS = f"SELECT body FROM objects WHERE resource = '{DEFINITIONS}' ORDER BY name"
_SIMPLE = re.compile(r"(?:\.[A-Za-z_][\w-]*)+")
"""Matches the paths of printer columns that SQL supports: paths of nested fields."""

_QUERIES = ("select", "with", "values", "table")
_TYPED = {
    "sqlite": {
        "integer": "CASE WHEN json_type(o.body, '{0}') IN ('integer', 'real')"
        " THEN CAST(json_extract(o.body, '{0}') AS INTEGER) END",
        "number": "CASE WHEN json_type(o.body, '{0}') IN ('integer', 'real')"
        " THEN CAST(json_extract(o.body, '{0}') AS REAL) END",
        "boolean": "CASE json_type(o.body, '{0}') WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    },
    "postgresql": {
        "integer": "CASE json_typeof(log_json(o.body::text) #> '{0}') WHEN 'number'"
        " THEN trunc((log_json(o.body::text) #>> '{0}')::numeric)::bigint END",
        "number": "CASE json_typeof(log_json(o.body::text) #> '{0}') WHEN 'number'"
        " THEN (log_json(o.body::text) #>> '{0}')::double precision END",
        "boolean": "CASE log_json(o.body::text) #>> '{0}' WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    },
}
_TEXT = "CAST({{text:o.body:{0}}} AS TEXT)"


class View(NamedTuple):
    """A custom kind as a SQL view."""

    columns: tuple[str, ...]
    select: str


def query(database: Database, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
    """Run a query that may use custom kinds; arguments and results are those of `Database.query`."""
    try:
        return database.query(statement, parameters)
    except UnknownRelation:
        written = _with_views(statement, _found(database))
        if written == statement:
            raise
    return database.query(written, parameters)


def views(database: Database) -> dict[str, View]:
    """Return the established custom kinds, by each name under which a query can use them."""
    found = _found(database)
    taken = database.relations()
    return {name: view for name, view in found.items() if name not in taken}


def _found(database: Database) -> dict[str, View]:
    try:
        rows = database.query(_DEFINITIONS).rows
    except QueryRefused:  # this is not a log
        return {}
    definitions = [Definition(json.loads(body)) for (body,) in rows]
    served = [each for each in definitions if each.has_condition("Established")]
    plurals = Counter(each.accepted.plural for each in served)
    found: dict[str, View] = {}
    for each in served:
        plural = each.accepted.plural
        view = view_of(each, database.dialect)
        found[f"{plural}.{each.group}"] = view
        if plurals[plural] == 1:
            found[plural] = view
    return found


def view_of(definition: Definition, dialect: str) -> View:
    """Return the SQL of a kind's view, for the dialect `sqlite` or `postgresql`."""
    named = {name: f"o.{name}" for name in (*_OWN, *_TOLD)}
    for name, value in _printed(definition, dialect):
        if name not in (*named, *_LAST):
            named[name] = value
    named |= {name: render(f"{{json:o.body:$.{name}}}", dialect) for name in _LAST[:-1]}
    named["body"] = "o.body"
    listed = ", ".join(f'{value} AS "{name}"' for name, value in named.items())
    resource = f"{definition.accepted.plural}.{definition.group}"
    return View(tuple(named), f"SELECT {listed} FROM objects AS o WHERE o.resource = '{resource}'")


def _printed(definition: Definition, dialect: str) -> Iterator[tuple[str, str]]:
    """Yield the printer columns of the stored version whose paths SQL supports."""
    versions: Sequence[Mapping[str, Any]] = definition.raw["spec"]["versions"]
    stored = next(each for each in versions if each.get("storage"))
    for column in stored.get("additionalPrinterColumns") or ():
        path, type_ = column.get("jsonPath") or "", column.get("type") or ""
        name = re.sub(r"\W+", "_", (column.get("name") or "").lower(), flags=re.ASCII).strip("_")
        if not name or not _SIMPLE.fullmatch(path):
            continue
        steps = path[1:].split(".")
        if type_ not in _TYPED[dialect]:
            yield name, render(_TEXT.format("$." + ".".join(f'"{step}"' for step in steps)), dialect)
            continue
        quoted = ",".join(f'"{step}"' for step in steps)
        where = "{" + quoted + "}" if dialect == "postgresql" else "$." + quoted.replace(",", ".")
        yield name, _TYPED[dialect][type_].format(where)


def _with_views(statement: str, known: Mapping[str, View]) -> str:
    """Return an SQL statement with the views of its custom kinds prepended.

    If the log has no custom kinds, return the SQL unchanged.
    """
    words = [*names_and_places(statement)]
    mentioned = {name: known[name] for name, _, _ in words if name in known}
    begin = next(((name, start, end) for name, start, end in words if name in _QUERIES), None)
    if not mentioned or begin is None:
        return statement
    put = ", ".join(f'"{name}" AS ({view.select})' for name, view in mentioned.items())
    name, start, end = begin
    if name != "with":
        while statement[:start].rstrip().endswith("("):
            start = len(statement[:start].rstrip()) - 1
        return f"{statement[:start]}WITH {put} {statement[start:]}"
    following = next((word for word in words if word[1] >= end), None)
    if following is not None and following[0] == "recursive":
        end = following[2]
    return f"{statement[:end]} {put}, {statement[end:]}"
