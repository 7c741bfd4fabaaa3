"""Tests of the read-only database connection, and of ready-made queries."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ctrlmgr.errors import BadRequest, LogUnavailable, QueryRefused, SchemaOutdated, SettingsError
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database, open_database
from ctrlmgr.inspection.queries import Question, questions
from tests.inspection import story

NOW = story.START + 60_000_000


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event",
        "UPDATE log_head SET revision = 0",
        "CREATE TABLE mine (a int)",
        "CREATE TEMPORARY TABLE mine (a int)",
        "DROP VIEW objects",
        "SELECT 1; DELETE FROM event",
        "COMMIT; DELETE FROM event",
        "SELEC 1",
        "SELECT nothing FROM objects",
    ],
)
def test_only_a_single_query_is_accepted(database: Database, statement: str) -> None:
    with pytest.raises(QueryRefused):
        database.query(statement)
    assert database.query("SELECT count(*) FROM event").rows == [(story.HEAD,)]


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = DELETE",
        "ATTACH 'file:other.db?mode=rwc' AS other",
        "VACUUM INTO 'copy.db'",
        "BEGIN",
    ],
)
def test_sqlite_prevents_writes(
    sqlite_story: str, statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_database(sqlite_story) as database, pytest.raises(QueryRefused, match="only queries"):
        database.query(statement)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.postgres
@pytest.mark.parametrize(
    "way", ["SET default_transaction_read_only = off", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"]
)
def test_postgres_prevents_writes(postgres_story: str, way: str) -> None:
    with open_database(postgres_story) as database:
        for statement in (way, "DELETE FROM event", "WITH a AS (DELETE FROM event RETURNING 1) SELECT * FROM a"):
            with pytest.raises(QueryRefused, match="only queries"):
                database.query(statement)


@pytest.mark.postgres
def test_queries_never_run_as_a_superuser(postgres_story: str) -> None:
    with (
        open_database(postgres_story) as database,
        pytest.raises(SettingsError, match=r"create a reader: psql --file examples/postgresql/roles\.sql"),
    ):
        database.refuse_power()


def test_a_query_file_grants_no_rights(sqlite_story: str) -> None:
    with open_database(sqlite_story) as database:
        database.refuse_power()


def test_a_query_can_contain_colons_and_percent_signs(database: Database) -> None:
    assert database.query("SELECT 'a :b %s %' AS text").rows == [("a :b %s %",)]


def test_parameters_are_only_values(database: Database) -> None:
    statement = "SELECT count(*) FROM objects WHERE name = :name AND name LIKE '%'"
    assert database.query(statement, {"name": "web-1"}).rows == [(1,)]
    assert database.query(statement, {"name": "x' OR '1' = '1"}).rows == [(0,)]


def test_relations_lists_tables_views_and_their_columns(database: Database) -> None:
    found = database.relations()
    assert found["reconcile_trigger"] == ["reconcile_id", "revision"]
    assert found["objects"][:3] == ["resource", "namespace", "name"]


def test_a_missing_database_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(SchemaOutdated, match="no database"):
        open_database(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_another_schema_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaOutdated, match="no event log yet"):
        open_database(f"sqlite:///{tmp_path}/empty.db")


def test_an_invalid_database_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk, and this is long enough to be a page of a database" * 20)
    with pytest.raises(LogUnavailable, match="not a database"):
        open_database(f"sqlite:///{tmp_path}/notes.txt")


@pytest.mark.parametrize(
    ("url", "error"),
    [("memory:", SettingsError), ("postgresql://nobody@127.0.0.1:1/none", LogUnavailable)],
)
def test_an_unreadable_database_is_reported(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_database(url)


def test_queries_run_beside_a_writer_and_on_a_read_only_file(sqlite_story: str, tmp_path: Path) -> None:
    """A copy of the SQLite file without the additional files that SQLite creates beside a database in use."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(Path(sqlite_story.removeprefix("sqlite:///")).read_bytes())
    with open_database(f"sqlite:///{copy}") as database:
        assert database.query("SELECT revision FROM log_head").rows == [(story.HEAD,)]


def test_ctrl_c_ends_a_query(sqlite_story: str) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    with open_database(sqlite_story) as database:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)  # seconds of CPU time, so the query ends on slow machines, too
        with pytest.raises(KeyboardInterrupt):
            database.query(endless)
        assert database.query("SELECT 1 AS one").rows == [(1,)]
    signal.signal(signal.SIGVTALRM, before)


# Moments.


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        pytest.param("head", story.HEAD, id="the head"),
        pytest.param("7", 7, id="a revision"),
        pytest.param("0", 0, id="before everything"),
        pytest.param("2026-01-02T03:04:05Z", 0, id="a time before the log"),
        pytest.param("2026-01-02T03:04:06.000001Z", 3, id="the moment of an append"),
        pytest.param("2026-01-02T03:04:07Z", 3, id="between two appends"),
        pytest.param("2026-01-02T04:04:08+01:00", 4, id="another time zone"),
        pytest.param("2027-01-01T00:00:00Z", story.HEAD, id="a time after the log"),
        pytest.param("57s", 5, id="so long ago"),
    ],
)
def test_a_time_is_converted_to_a_revision(database: Database, text: str, revision: int) -> None:
    assert moment_parser.resolve(database, text, now=NOW) == revision


@pytest.mark.parametrize("text", ["17", "yesterday", "2026-01-02T03:04:05", "-1", ""])
def test_an_invalid_time_is_refused(database: Database, text: str) -> None:
    with pytest.raises(BadRequest):
        moment_parser.resolve(database, text, now=NOW)


# Questions.

GIVEN = {
    "between": {"from": "3", "to": "5"},
    "effects": {"revision": "12"},
    "endpoints": {"namespace": "shop", "service": "web"},
    "allocations": {"namespace": "shop"},
    "history": {"resource": "endpoints", "namespace": "shop", "name": "web"},
    "state": {"resource": "pods", "at": "2026-01-02T03:04:12.000001Z"},
    "why": {"revision": "8"},
}


@pytest.mark.parametrize("question", questions().values(), ids=lambda question: question.name)
def test_every_predefined_query_runs(database: Database, question: Question) -> None:
    values = question.bind(GIVEN.get(question.name, {}), lambda text: moment_parser.resolve(database, text, now=NOW))
    answer = database.query(question.statement, values)
    assert answer.rows
    assert len(set(answer.columns)) == len(answer.columns)


def test_omitted_parameters_have_defaults() -> None:
    question = questions()["history"]
    assert question.bind({"resource": "nodes", "name": "a"}, int) == {"resource": "nodes", "namespace": "", "name": "a"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param({}, "needs resource", id="missing"),
        pytest.param({"resource": "pods", "name": "a", "colour": "red"}, "has no parameter colour", id="unknown"),
    ],
)
def test_an_unknown_parameter_is_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        questions()["history"].bind(given, int)


def test_a_numeric_parameter_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="should be a number"):
        questions()["latest"].bind({"limit": "many"}, int)
