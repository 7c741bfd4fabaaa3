"""Tests of custom kinds as SQL views: a view exists as long as the CustomResourceDefinition, and has equal rows in both
types of database.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr.errors import QueryRefused
from ctrlmgr.eventlog import open_log
from ctrlmgr.inspection import custom_views
from ctrlmgr.inspection.database import Rows, open_database
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.stage import Stage
from tests.inspection import widgets
from tests.inspection.widgets import DEFINITIONS, MERGE, WIDGETS

COLUMNS = [
    {"name": "Shape", "type": "string", "jsonPath": ".spec.shape"},
    {"name": "Size of it", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Weight", "type": "number", "jsonPath": ".spec.weight"},
    {"name": "Good", "type": "boolean", "jsonPath": ".spec.is-good"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Spec", "type": "string", "jsonPath": ".spec.shape"},
]
"""The last two printer columns have no SQL column: one has no simple path, and the name of the
other is already used.
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a log with the history that `widgets.py` writes."""
    found = f"sqlite:///{tmp_path / 'log.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    return widgets.write(found).url


def change(url: str, method: str, path: str, body: Any = None) -> None:
    """Send a request to an API server on this log."""
    with closing(open_log(url, clock=FakeClock(), random=Random(2))) as log:
        answer = Stage(log=log).send(method, path, body, media_type=MERGE if method == "PATCH" else "application/json")
        assert answer.code in (200, 201), answer


def ask(url: str, statement: str) -> Rows:
    with open_database(url) as database:
        return custom_views.query(database, statement)


def undefine(url: str) -> None:
    """Delete the CustomResourceDefinition; in this test, no controller removes its finalizer."""
    change(url, "DELETE", f"{DEFINITIONS}/widgets.example.com")
    change(url, "PATCH", f"{DEFINITIONS}/widgets.example.com", {"metadata": {"finalizers": None}})


def print_more(url: str) -> None:
    """Change the printer columns of the kind, and create an object with values for these columns."""
    fields = {"shape": "string", "size": "integer", "weight": "number", "is-good": "boolean"}
    spec = {"type": "object", "properties": {name: {"type": type_} for name, type_ in fields.items()}}
    version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": COLUMNS}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    change(url, "PATCH", f"{DEFINITIONS}/widgets.example.com", {"spec": {"versions": [version]}})
    filled = {"shape": "flat", "size": 3, "weight": 1.5, "is-good": True}
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": filled}
    change(url, "POST", WIDGETS, widget)


@pytest.mark.parametrize("name", ["widgets", '"widgets.example.com"', '"widgets"', "WIDGETS"])
def test_a_kind_is_a_table_named_by_its_plural_or_its_resource(url: str, name: str) -> None:
    found = ask(url, f"SELECT namespace, name, shape FROM {name}")
    assert (found.columns, found.rows) == (("namespace", "name", "shape"), [("shop", "a", None)])


def test_a_printed_column_is_a_column_of_its_type(url: str) -> None:
    print_more(url)
    found = ask(url, "SELECT * FROM widgets ORDER BY name DESC LIMIT 1")
    row = dict(zip(found.columns, found.rows[0], strict=True))
    assert [row[each] for each in ("name", "shape", "size_of_it", "weight", "good")] == ["b", "flat", 3, 1.5, 1]
    assert json.loads(row["spec"]) == {"shape": "flat", "size": 3, "weight": 1.5, "is-good": True}
    assert json.loads(row["body"])["kind"] == "Widget"
    assert (row["status"], "ready" in row, found.columns.count("spec")) == (None, False, 1)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM widgets AS w JOIN objects AS o ON o.uid = w.uid",
        "WITH mine AS (SELECT * FROM widgets) SELECT count(*) FROM mine",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 1) SELECT count(*) FROM widgets, n",
        "-- how many\nSELECT count(*) FROM widgets WHERE name = 'a' AND 'widgets' <> ''",
        "SELECT (SELECT count(*) FROM widgets)",
    ],
)
def test_a_custom_view_works_everywhere_like_a_table(url: str, statement: str) -> None:
    assert ask(url, statement).rows == [(1,)]


def test_a_query_of_a_custom_view_can_be_explained(url: str) -> None:
    explain = "EXPLAIN QUERY PLAN" if url.startswith("sqlite") else "EXPLAIN"
    assert ask(url, f"{explain} SELECT * FROM widgets").rows


def test_existing_custom_views_are_listed(url: str) -> None:
    with open_database(url) as database:
        views = custom_views.views(database)
    assert set(views) == {"widgets", "widgets.example.com"}
    assert "shape" in views["widgets"].columns
    undefine(url)
    with open_database(url) as database:
        assert custom_views.views(database) == {}


def test_a_kind_without_a_definition_has_no_table(url: str) -> None:
    undefine(url)
    with pytest.raises(QueryRefused, match="widgets"):
        ask(url, "SELECT * FROM widgets")


def test_unknown_tables_and_writes_are_refused(url: str) -> None:
    with pytest.raises(QueryRefused, match="gadgets"):
        ask(url, "SELECT * FROM widgets, gadgets")
    with pytest.raises(QueryRefused):
        ask(url, "DELETE FROM widgets")
    with pytest.raises(QueryRefused):
        ask(url, "WITH x AS (SELECT 1) DELETE FROM widgets")


def test_a_plural_of_two_groups_requires_its_group(url: str) -> None:
    names = {**widgets.NAMES, "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "other.example.com", "scope": "Cluster", "names": names, "versions": [version]}
    change(url, "POST", DEFINITIONS, {"metadata": {"name": "widgets.other.example.com"}, "spec": spec})
    condition = {"type": "Established", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": None}
    status = {"status": {"acceptedNames": names, "conditions": [condition]}}
    change(url, "PATCH", f"{DEFINITIONS}/widgets.other.example.com/status", status)
    with pytest.raises(QueryRefused, match="widgets"):
        ask(url, "SELECT * FROM widgets")
    assert len(ask(url, 'SELECT * FROM "widgets.example.com"').rows) == 1
    assert ask(url, 'SELECT * FROM "widgets.other.example.com"').rows == []
