"""Tests of the SQL views: they have equal rows in both types of database, and do not read more of the log than
necessary.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic import command
from alembic.config import Config

from ctrlmgr.eventlog import database_schema, migrate_log, sql_views
from ctrlmgr.eventlog.postgres import postgres_log as postgres
from ctrlmgr.eventlog.sqlite import sqlite_log as sqlite
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.testing import FakeClock
from tests.inspection import story

WHERE = "resource = 'endpoints' AND namespace = 'shop' AND name = 'web'"


def ask(database: Database, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    found = database.query(statement, parameters)
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def as_text(rows: list[tuple[Any, ...]]) -> list[str]:
    """Normalize the JSON in rows, because the databases format JSON with different white space."""

    def cell(value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value

    return sorted(json.dumps([cell(value) for value in row], sort_keys=True) for row in rows)


@pytest.mark.postgres
@pytest.mark.parametrize("view", [*sql_views.VIEWS, "objects_at(3)", "objects_at(9)", f"objects_at({story.HEAD})"])
def test_a_view_is_equal_on_both_databases(view: str, sqlite_story: str, postgres_story: str) -> None:
    with open_database(sqlite_story) as ours, open_database(postgres_story) as theirs:
        left, right = (each.query(f"SELECT * FROM {view} AS v") for each in (ours, theirs))
    assert left.columns == right.columns
    assert as_text(left.rows) == as_text(right.rows)
    assert left.rows


def test_the_objects_view_contains_existing_objects(database: Database) -> None:
    rows = ask(database, "SELECT * FROM objects WHERE resource = 'pods'")
    assert [(row["name"], row["revision"], row["kind"], row["actor"]) for row in rows] == [
        ("web-1", 10, "Pod", "system:node:node-a")
    ]
    assert json.loads(rows[0]["labels"])["app"] == "web"
    assert rows[0]["time"] == "2026-01-02T03:04:12.000001Z"


@pytest.mark.parametrize(
    ("revision", "pods"),
    [
        pytest.param(3, [], id="before it existed"),
        pytest.param(4, [("web-0", 4)], id="at its creation"),
        pytest.param(9, [("web-0", 5)], id="between two events"),
        pytest.param(10, [("web-0", 5), ("web-1", 10)], id="two of them"),
        pytest.param(13, [("web-1", 10)], id="after the deletion of one"),
    ],
)
def test_objects_at_contains_the_objects_of_that_revision(
    database: Database, revision: int, pods: list[tuple[str, int]]
) -> None:
    statement = "SELECT name, revision FROM objects_at(:revision) AS o WHERE resource = 'pods' ORDER BY name"
    assert database.query(statement, {"revision": revision}).rows == pods


def test_history_names_author_change_and_reconcile(database: Database) -> None:
    rows = ask(database, f"SELECT * FROM history WHERE {WHERE} ORDER BY revision")
    assert [(row["revision"], row["previous"], row["type"], row["key"], row["attempt"]) for row in rows] == [
        (8, 0, "ADDED", "shop/web", 1),
        (12, 8, "MODIFIED", "shop/web", 2),
        (14, 12, "MODIFIED", "shop/web", 1),
    ]
    assert rows[0]["changes"] is None
    added = {change["path"]: (change["from"], change["to"]) for change in json.loads(rows[1]["changes"])}
    assert added["$.subsets[0].addresses[1].ip"] == (None, "10.0.0.1")
    assert all(before is None for before, _ in added.values())


def test_changes_are_listed_in_the_order_of_their_paths(database: Database) -> None:
    row = ask(database, "SELECT changes FROM history WHERE revision = 5")[0]
    assert json.loads(row["changes"]) == [{"path": "$.status.conditions[1].status", "from": "False", "to": "True"}]


def test_causes_lists_every_change_that_a_reconcile_handled(database: Database) -> None:
    rows = ask(database, "SELECT * FROM causes WHERE revision = 8 ORDER BY cause_revision")
    assert [(row["cause_revision"], row["cause_resource"], row["cause_actor"]) for row in rows] == [
        (2, "services", "alice"),
        (4, "pods", "system:node:node-a"),
        (5, "pods", "system:node:node-a"),
    ]
    assert ask(database, "SELECT revision FROM causes WHERE cause_revision = 12") == [
        {"revision": 14},
        {"revision": 15},
    ]


def test_leaders_follow_from_their_terms(database: Database) -> None:
    rows = ask(database, "SELECT * FROM leaders ORDER BY term")
    assert [
        (row["term"], row["holder"], row["first_revision"], row["last_revision"], row["writes"]) for row in rows
    ] == [
        (1, "one", 7, 9, 3),
        (2, "two", 11, 15, 4),
    ]


def test_endpoints_by_service_has_a_row_per_address(database: Database) -> None:
    rows = ask(database, "SELECT * FROM endpoints_by_service WHERE service = 'web' AND namespace = 'shop'")
    assert [(row["resource"], row["address"], row["ready"], row["target_name"]) for row in rows] == [
        ("endpoints", "10.0.0.1", 1, "web-1")
    ]


def test_allocations_are_existing_claims(database: Database) -> None:
    rows = ask(database, "SELECT * FROM allocations")
    assert [(row["type"], row["value"], row["owner_resource"], row["owner_name"]) for row in rows] == [
        ("ClusterIP", "10.96.0.7", "services", "web")
    ]


def test_reconciles_lists_triggers_outcome_and_writes(database: Database) -> None:
    rows = ask(database, "SELECT * FROM reconciles ORDER BY first_write")
    assert [(row["triggers"], row["outcome"], row["duration"], row["writes"]) for row in rows] == [
        ("[2,4,5]", "ok", 1500, 2),
        ("[10]", "error", 2500, 1),
        ("[12,13]", None, None, 2),
    ]


def test_hot_objects_count_every_write(database: Database) -> None:
    rows = ask(database, "SELECT name, writes, existing FROM hot_objects WHERE resource = 'pods' ORDER BY writes DESC")
    assert rows == [{"name": "web-0", "writes": 3, "existing": 0}, {"name": "web-1", "writes": 1, "existing": 1}]


ALIASES = ("e", "r", "t", "c", "before", "nearest", "probe", "first", "last", "lease")
"""The aliases that the SQL views use for tables that grow with the log."""

QUESTIONS = {
    "one object": f"SELECT * FROM objects WHERE {WHERE}",
    "objects of a namespace": "SELECT * FROM objects WHERE resource = 'pods' AND namespace = 'shop'",
    "one object in the past": f"SELECT * FROM objects_at(9) AS o WHERE {WHERE}",
    "everything in the past": "SELECT * FROM objects_at(9) AS o WHERE resource = 'pods'",
    "one object's history": f"SELECT * FROM history WHERE {WHERE} ORDER BY revision",
    "a stretch of the timeline": "SELECT * FROM timeline WHERE revision > 5 ORDER BY revision LIMIT 10",
    "the newest of the timeline": "SELECT * FROM timeline ORDER BY revision DESC LIMIT 10",
    "what led to an event": "SELECT * FROM causes WHERE revision = 8",
    "what an event led to": "SELECT * FROM causes WHERE cause_revision = 5",
    "one reconcile": "SELECT * FROM reconciles WHERE id = 71",
    "the leaders": "SELECT * FROM leaders",
    "the allocations": "SELECT * FROM allocations",
    "a service's endpoints": "SELECT * FROM endpoints_by_service WHERE namespace = 'shop'",
    "how often one object was written": f"SELECT * FROM hot_objects WHERE {WHERE}",
}


def scans(plan: Any) -> Iterator[str]:
    """Yield the tables of which a query plan of PostgreSQL reads all rows."""
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for inner in plan.get("Plans", ()):
        yield from scans(inner)


def nodes(plan: Any) -> Iterator[str]:
    """Yield the nodes of a query plan of PostgreSQL."""
    yield plan["Node Type"]
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_sqlite_reads_events_only_by_index(sqlite_story: str, question: str) -> None:
    with open_database(sqlite_story) as database:
        plan = [row[3] for row in database.query(f"EXPLAIN QUERY PLAN {question}").rows]
    whole = [step for step in plan if step.split()[0] == "SCAN" and step.split()[1] in ALIASES]
    newest_first = [step for step in whole if "LIMIT" in question and step == "SCAN e"]  # a few rows, found by the key
    assert [step for step in whole if "USING COVERING INDEX" not in step] == newest_first, plan


@pytest.mark.postgres
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_postgres_reads_events_only_by_index(postgres_story: str, question: str) -> None:
    """With few rows, PostgreSQL prefers a full table scan.

    If table scans are disabled, the plan contains a table scan only if there is no alternative.
    """
    url = postgres_story.replace("+psycopg", "")
    with psycopg.connect(url, options="-c enable_seqscan=off") as connection:
        [(plan,)] = connection.execute(f"EXPLAIN (FORMAT JSON) {question}".encode()).fetchall()
    assert not {"event", "object", "reconcile", "reconcile_trigger"} & set(scans(plan[0]["Plan"]))


@pytest.mark.postgres
@pytest.mark.parametrize("relation", ["objects", "objects_at(9) AS o", "endpoints_by_service", "allocations"])
def test_postgres_does_not_join_states_by_reading_every_event(postgres_story: str, relation: str) -> None:
    """With many objects, PostgreSQL prefers a table scan to index look-ups.

    Disabling nested loops, and with them index look-ups, has the same effect with few objects.
    """
    url = postgres_story.replace("+psycopg", "")
    with psycopg.connect(url, options="-c enable_nestloop=off") as connection:
        [(plan,)] = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {relation}".encode()).fetchall()
    assert not {"Hash Join", "Merge Join"} & set(nodes(plan[0]["Plan"]))


# Migration.


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url_of_the_first_schema(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty log with the database schema of the first migration."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url, engine = f"sqlite:///{tmp_path}/log.db", sqlite.open_engine(tmp_path / "log.db")
        else:
            url = stack.enter_context(request.getfixturevalue("cluster").database("old_schema"))
            engine = postgres.open_engine(url)
        config = Config()
        config.set_main_option("script_location", str(database_schema.migrations_folder()))
        config.set_main_option("path_separator", "os")
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.commit()
        engine.dispose()
        yield url


def test_a_database_of_the_first_schema_has_the_views(url_of_the_first_schema: str) -> None:
    url = url_of_the_first_schema
    assert migrate_log(url, clock=FakeClock(), random=random.Random(1)) == "0001"
    story.write(url)
    with open_database(url) as database:
        assert set(sql_views.VIEWS) <= set(database.relations())
        assert database.query("SELECT max(revision) FROM timeline").rows == [(story.HEAD,)]
        assert database.query("SELECT count(*) FROM objects_at(9) AS o").rows == [(8,)]
