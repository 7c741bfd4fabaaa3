"""Tests that docs/sql.md describes all SQL views and all ready-made queries, and describes no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctrlmgr.eventlog.sql_views import VIEWS
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.queries import Question, questions

PAGE = (Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title!r}"
    return found[1]


def documented(title: str) -> set[str]:
    rows = re.findall(r"^\| (`.*?) \|", section(title), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_describes_exactly_the_existing_columns(database: Database, view: str) -> None:
    columns = set(database.relations()[view])
    inherited = documented("timeline") - {"triggers"} if view == "history" else set()
    assert documented(view) | inherited == columns


def test_objects_at_has_the_documented_columns(database: Database) -> None:
    then = set(database.query("SELECT * FROM objects_at(1) AS o").columns)
    assert then == set(database.relations()["objects"]) - {"create_revision"}


@pytest.mark.parametrize("question", questions().values(), ids=lambda question: question.name)
def test_every_predefined_query_is_listed_with_its_parameters_and_defaults(question: Question) -> None:
    parameters = " ".join(f"{each.name}={each.default or '…'}" for each in question.parameters)
    assert f"| `{question.name} {parameters}".rstrip() + "` |" in PAGE


def test_no_removed_query_is_listed() -> None:
    listed = PAGE.split("## The ready-made queries")[1]
    assert set(re.findall(r"^\| `(\w+)[^`]*` \|", listed, re.MULTILINE)) == set(questions())
