"""Tests of the real Datasette with `ctrlmgr sql --datasette`: queries have the same results as with `ctrlmgr sql`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.eventlog.sql_views import VIEWS
from ctrlmgr.inspection.database import open_database
from ctrlmgr.inspection.datasette import COLUMNS, metadata
from ctrlmgr.inspection.queries import Question, questions

_SCRIPT = """
import asyncio, json, sys
from datasette.app import Datasette

async def main():
    path, told, asked = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    client = Datasette([path], metadata=told).client
    answers = [await client.get(each) for each in asked]
    print(json.dumps([[each.status_code, each.text] for each in answers]))

asyncio.run(main())
"""
GIVEN = {
    "between": {"from": "3"},
    "effects": {"revision": "10"},
    "endpoints": {"service": "web", "namespace": "shop"},
    "allocations": {"namespace": "shop"},
    "history": {"resource": "endpoints", "namespace": "shop", "name": "web"},
    "state": {"resource": "pods", "at": "12"},
    "why": {"revision": "14"},
}


def ask(path: str, paths: list[str]) -> list[tuple[int, str]]:
    """Return the status code and the body of each response of Datasette."""
    with open_database(f"sqlite:///{path}") as database:
        told = metadata("log", database.relations())
    arguments = [sys.executable, "-c", _SCRIPT, path, json.dumps(told), json.dumps(paths)]
    output = subprocess.run(arguments, stdout=subprocess.PIPE, check=True).stdout
    return [(code, text) for code, text in json.loads(output)]


@pytest.fixture(scope="module")
def path(sqlite_story: str) -> str:
    return sqlite_story.removeprefix("sqlite:///")


def test_every_query_returns_the_same_as_the_command_line(path: str) -> None:
    asked = [_path(question, GIVEN.get(question.name, {})) for question in questions().values()]
    answers = ask(path, asked)
    with open_database(f"sqlite:///{path}") as database:
        head = database.query("SELECT revision FROM log_head").rows[0][0]
        for question, (code, text) in zip(questions().values(), answers, strict=True):
            given = GIVEN.get(question.name, {})
            values = question.bind(given, lambda moment: head if moment == "head" else int(moment))
            expected = database.query(question.statement, values)
            assert code == 200, text
            assert json.loads(text) == [dict(zip(expected.columns, row, strict=True)) for row in expected.rows]
    assert sum(text != "[]" for _, text in answers) >= len(answers) - 3


def _path(question: Question, given: Mapping[str, str]) -> str:
    typed = {each.name: given.get(each.name, "") for each in question.parameters}
    return f"/log/{question.name}.json?_shape=array" + "".join(f"&{name}={value}" for name, value in typed.items())


def test_the_empty_namespace_and_the_newest_revision_can_be_typed(path: str) -> None:
    [(_, history), (_, pods)] = ask(
        path,
        [
            "/log/history.json?_shape=array&resource=namespaces&namespace=-&name=shop",
            "/log/state.json?_shape=array&resource=pods&at=head",
        ],
    )
    assert [each["name"] for each in json.loads(pods)] == ["web-1"]
    assert json.loads(history)


def test_pages_describe_views_and_columns(path: str) -> None:
    [(front, index), (_, page)] = ask(path, ["/log", "/log/reconciles"])
    assert front == 200
    assert "/log/hot_objects" in index
    assert "The duration of the reconcile" in page
    assert "The reconciles that wrote something" in page


def test_the_descriptions_name_exactly_the_existing_columns(path: str) -> None:
    with open_database(f"sqlite:///{path}") as database:
        relations = database.relations()
        told: dict[str, Any] = metadata("log", relations)["databases"]["log"]
    assert set(COLUMNS) == {column for view in VIEWS for column in relations[view]}
    assert set(told["queries"]) == set(questions())
    assert told["tables"]["reconciles"]["units"]["duration"] == "µs"


def test_the_command_names_the_database_like_datasette(path: str) -> None:
    command = [sys.executable, "-m", "ctrlmgr", "sql", "--datasette", "--database"]
    said = subprocess.run([*command, f"sqlite:///{path}"], stdout=subprocess.PIPE, check=True).stdout
    assert list(json.loads(said)["databases"]) == [Path(path).stem]
