"""Tests of audited requests in the database: retention, SQL views, and which request caused a write."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import msgspec
import pytest

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import format_time
from ctrlmgr.errors import QueryRefused, SettingsError
from ctrlmgr.inspection.audited_requests import FILE, Row, Store, open_requests, request_of, requests_if_kept
from ctrlmgr.inspection.queries import audit_questions
from ctrlmgr.testing import FakeClock

PODS = Resource("", "pods")


def row(id: str, received: int, **parts: object) -> Row:
    base = Row(
        *(id, received, 0.01, "alice", None, "get", "", "pods", "", "default", "web", "/api/v1/x", 200, "", ""),
        *("allow", "RBAC: allowed", "192.0.2.1", "kubectl", None),
    )
    return msgspec.structs.replace(base, **parts)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def audit_folder(tmp_path: Path, clock: FakeClock) -> Path:
    store, now = Store(tmp_path / FILE, 3600.0, clock=clock), clock.now()
    rows = [
        row("read", now),
        row("refused", now + 1, code=403, message="no", decision="forbid", verb="list", name=""),
        row("anonymous", now + 2, code=401, username=None, decision=None, because=None),
        row("wrote", now + 3, verb="create", code=201, revision=7),
        row("deleted", now + 4, verb="delete", username="root", acts_for="bob"),
        row("path", now + 5, api_group=None, resource=None, name="", namespace="", uri="/version"),
    ]
    assert store.write(rows)
    store.close()
    return tmp_path


def answer_lines(folder: Path, name: str, **parameters: str) -> list[str]:
    question = audit_questions()[name]
    with open_requests(folder) as database:
        answer = database.query(question.statement, question.bind(parameters, int))
    at = answer.columns.index("id" if name == "audit" else "user")
    return [each[at] for each in answer.rows]


def test_refused_and_read_requests_can_be_queried(audit_folder: Path) -> None:
    assert answer_lines(audit_folder, "audit") == ["path", "deleted", "wrote", "anonymous", "refused", "read"]
    assert answer_lines(audit_folder, "audit", refused="yes") == ["anonymous", "refused"]
    assert answer_lines(audit_folder, "audit", user="bob") == ["deleted"]
    assert answer_lines(audit_folder, "audit", user="root") == ["deleted"]
    assert answer_lines(audit_folder, "audit", verb="get", resource="pods", user="alice") == ["read"]
    assert answer_lines(audit_folder, "audit", since="2027-01-01") == []
    assert answer_lines(audit_folder, "audit", limit="1") == ["path"]
    assert set(answer_lines(audit_folder, "callers")) == {"alice", "bob", ""}


def test_a_query_cannot_write(audit_folder: Path) -> None:
    with open_requests(audit_folder) as database, pytest.raises(QueryRefused):
        database.query("DELETE FROM requests")
    assert stat.S_IMODE((audit_folder / FILE).stat().st_mode) == 0o600


def test_a_write_leads_to_its_request(audit_folder: Path, clock: FakeClock) -> None:
    now, web = clock.now(), Key("default", "web")
    with requests_if_kept(audit_folder) as database:
        assert database is not None
        written = request_of(database, 7, PODS, web, "alice", now + 10)
        assert written is not None
        assert (written.id, written.username, written.code) == ("wrote", "alice", 201)
        deleted = request_of(database, 8, PODS, web, "bob", now + 10)
        assert deleted is not None
        assert (deleted.id, deleted.username, deleted.acts_for) == ("deleted", "root", "bob")
        assert request_of(database, 8, PODS, web, "alice", now + 10) is None
        assert request_of(database, 8, PODS, Key("default", "other"), "bob", now + 10) is None
        assert request_of(database, 8, PODS, web, "bob", now + 120_000_000) is None


def test_old_requests_are_removed(audit_folder: Path, clock: FakeClock) -> None:
    clock.step(7200)
    store = Store(audit_folder / FILE, 3600.0, clock=clock)
    assert store.write([row("new", clock.now())])
    store.close()
    assert answer_lines(audit_folder, "audit") == ["new"]


def test_the_newest_requests_are_found_without_reading_the_rest(audit_folder: Path) -> None:
    question = audit_questions()["audit"]
    with open_requests(audit_folder) as database:
        plan = database.query(f"EXPLAIN QUERY PLAN {question.statement}", question.bind({}, int)).rows
    assert [step[-1] for step in plan] == [
        "SEARCH bundle USING INDEX bundle_by_time (noted_at>?)",
        "SCAN json_each VIRTUAL TABLE INDEX 1:",
        "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY",
    ]


def test_a_database_of_an_earlier_version_is_migrated(tmp_path: Path, clock: FakeClock) -> None:
    before, now = sqlite3.connect(tmp_path / FILE), clock.now()
    before.execute("CREATE TABLE noted (received_at TEXT NOT NULL, revision INTEGER, said TEXT NOT NULL)")
    before.execute("CREATE VIEW requests AS SELECT said ->> 0 AS id FROM noted")
    for number in range(600):
        audit_folder = row(f"r{number}", now + number, revision=number or None)
        values = (format_time(now + number), audit_folder.revision, msgspec.json.encode(audit_folder).decode())
        before.execute("INSERT INTO noted VALUES (?, ?, ?)", values)
    before.commit()
    before.close()
    for _ in range(2):  # at the second call, no rows are left to remove
        Store(tmp_path / FILE, 3600.0, clock=clock).close()
    assert answer_lines(tmp_path, "audit", limit="1000") == [f"r{number}" for number in reversed(range(600))]
    with requests_if_kept(tmp_path) as database:
        assert database is not None
        written = request_of(database, 301, PODS, Key("default", "web"), "alice", now + 301)
        assert written is not None
        assert (written.id, written.received_at) == ("r301", format_time(now + 301))


def test_without_a_database_no_requests_are_listed(tmp_path: Path) -> None:
    with requests_if_kept(tmp_path) as database:
        assert database is None
    with pytest.raises(SettingsError, match=r"requests are stored only if audit\.policy_file names a policy"):
        open_requests(tmp_path)


def test_an_unwritable_database_loses_only_requests(tmp_path: Path, clock: FakeClock) -> None:
    store = Store(tmp_path / FILE, 3600.0, clock=clock)
    store._connection.execute("DROP TABLE bundle")
    assert not store.write([row("lost", 0)])
    store.close()
    with pytest.raises(SettingsError, match="cannot be written"):
        Store(tmp_path, 1.0, clock=clock)
