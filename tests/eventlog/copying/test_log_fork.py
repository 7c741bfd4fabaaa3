"""Tests of forks of a log: a fork equals the original up to a revision and is independent afterwards; from and to each
type of database.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ctrlmgr.api.resource import PODS, Key, Revision
from ctrlmgr.errors import Expired, Fenced, SettingsError
from ctrlmgr.eventlog import EventType, Fence, Head, Proposal, migrate_log, open_log, verify
from ctrlmgr.eventlog.copying.log_fork import fork
from ctrlmgr.eventlog.sql_views import VIEWS
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing import FakeClock
from tests.cli.conftest import Run, run
from tests.inspection import story

__all__ = ["run"]


def forked(source: str, target: str, at: Revision) -> Head:
    migrate_log(target, clock=FakeClock(), random=random.Random(9))
    with open_database(source) as opened:
        return fork(
            lambda asked, given: opened.query(asked, given).rows,
            target,
            at,
            clock=FakeClock(),
            random=random.Random(8),
        )


def opened_log(url: str) -> SQLLog:
    log = open_log(url, clock=FakeClock(), random=random.Random(3))
    assert isinstance(log, SQLLog)
    return log


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once for each type of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/fork.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.mark.parametrize("at", [0, 1, 9, 13, story.HEAD])
def test_a_fork_equals_the_log_at_its_revision(sqlite_story: str, tmp_path: Path, at: int) -> None:
    assert_same(sqlite_story, f"sqlite:///{tmp_path}/fork.db", at)


def test_a_fork_can_be_in_another_database(story_url: str, target: str) -> None:
    assert_same(story_url, target, 12)


def assert_same(story_url: str, target: str, at: int) -> None:
    """Fork a log, and compare the fork with the original."""
    head = forked(story_url, target, at)
    with open_database(story_url) as ours, open_database(target) as theirs:
        where = f"WHERE revision <= {at} ORDER BY revision"
        for table in ("timeline", "event"):
            columns = "revision, type, actor, term, reconcile_id"
            assert (
                ours.query(f"SELECT {columns} FROM {table} {where}").rows
                == theirs.query(f"SELECT {columns} FROM {table} ORDER BY revision").rows
            )
        now, then = "SELECT name, revision FROM objects", f"SELECT name, revision FROM objects_at({at}) AS o"
        assert sorted(theirs.query(now).rows) == sorted(ours.query(then).rows)
    log = opened_log(target)
    assert (log.head(), head.revision) == (head, at)
    assert verify(log).events == at
    log.close()


@pytest.mark.postgres
def test_a_complete_fork_equals_the_log_in_every_view(sqlite_story: str, target: str) -> None:
    forked(sqlite_story, target, story.HEAD)
    with open_database(sqlite_story) as ours, open_database(target) as theirs:
        for view in VIEWS:
            counts = [each.query(f"SELECT count(*) FROM {view}").rows for each in (ours, theirs)]
            assert counts[0] == counts[1], view
        reconciles = "SELECT id, triggers, outcome, writes FROM reconciles ORDER BY id"
        assert ours.query(reconciles).rows == theirs.query(reconciles).rows


def test_a_fork_is_independent(story_url: str, target: str) -> None:
    head = forked(story_url, target, 12)
    log = opened_log(target)
    web_0 = log.get(story.obj("Pod", "a").resource, Key("shop", "web-0"))
    assert web_0 is not None
    assert web_0.revision == 5
    [event] = log.append(
        [Proposal(EventType.MODIFIED, story.pod("web-0", "10.0.0.9", ready=True), 5)], author=story.ALICE
    )
    assert (event.revision, event.previous) == (13, 5)
    assert verify(log).events == 13
    assert log.head().uuid == head.uuid
    assert [epoch.after_revision for epoch in log.epochs()] == [0, 12]
    log.close()
    with open_database(story_url) as ours:
        assert ours.query("SELECT count(*) FROM event").rows == [(story.HEAD,)]
        assert ours.query("SELECT uuid FROM log_head").rows != [(head.uuid,)]


def test_a_fork_keeps_the_leaders_term(sqlite_story: str, target: str) -> None:
    forked(sqlite_story, target, 9)
    log = opened_log(target)
    change = Proposal(EventType.MODIFIED, story.endpoints([]), 8)
    with pytest.raises(Fenced):
        log.append([change], author=story.ALICE, fence=Fence(story.LEASE, 2))
    assert log.append([change], author=story.ALICE, fence=Fence(story.LEASE, 1))[0].term == 1
    log.close()


def test_a_compacted_revision_cannot_be_forked(past_url: str, target: str) -> None:
    log = opened_log(past_url)
    log.compact(13)
    log.close()
    with pytest.raises(Expired):
        forked(past_url, target, 12)
    with open_database(target) as theirs:
        assert theirs.query("SELECT count(*) FROM event").rows == [(0,)]


def test_a_compacted_log_can_be_forked_above_its_floor(past_url: str, target: str) -> None:
    log = opened_log(past_url)
    log.compact(13)
    log.close()
    forked(past_url, target, 14)
    fork_log = opened_log(target)
    assert verify(fork_log).head.revision == 14
    with pytest.raises(Expired):
        fork_log.snapshot(at=12)
    assert {obj.name for obj in fork_log.snapshot().objects} >= {"web", "web-1", "shop"}
    fork_log.close()


def test_a_fork_contains_the_remaining_events_of_a_compacted_resource(past_url: str, target: str) -> None:
    """The compaction removed the state of web-0 at revision 4, because web-0 changed later; web-1 was created later;
    all other objects exist.
    """
    log = opened_log(past_url)
    log.compact(13, resource=PODS)
    log.close()
    forked(past_url, target, 4)
    fork_log = opened_log(target)
    assert verify(fork_log).events == 3
    assert [obj.name for obj in fork_log.snapshot(at=4).objects] == ["10.96.0.7", "shop", "web"]
    fork_log.append([Proposal(EventType.ADDED, story.pod("web-0", "10.0.0.0", ready=True), 0)], author=story.ALICE)
    assert verify(fork_log).head.revision == 5
    fork_log.close()


def test_a_non_empty_log_is_refused(sqlite_story: str, past_url: str) -> None:
    with pytest.raises(SettingsError, match="not empty"):
        forked(sqlite_story, past_url, 3)


def test_the_command_prints_the_fork(run: Run, sqlite_story: str, tmp_path: Path) -> None:
    made = f"sqlite:///{tmp_path}/made.db"
    finished = run("fork", "--from", sqlite_story, "--at", "12", "--database", made)
    assert (finished.code, finished.err) == (0, "")
    assert "at revision 12" in finished.out
    assert run("verify", "--database", made).out.startswith("ok: 12 events")
    again = run("fork", "--from", sqlite_story, "--at", "12", "--database", made)
    assert (again.code, "not empty" in again.err) == (2, True)
    same = run("fork", "--from", sqlite_story, "--database", sqlite_story)
    assert (same.code, "is the log to fork" in same.err) == (2, True)
