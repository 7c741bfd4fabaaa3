"""Tests of the event log with a real PgBouncer in transaction mode, in which no session state is available."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from ctrlmgr.eventlog.opening import open_sessions
from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import AUTHOR, EventLogContract, VerifiableLog, add, modify, thing
from ctrlmgr.testing.postgres import PostgresCluster
from tests.eventlog.pooler import PgBouncer
from tests.eventlog.postgres.test_faults import in_threads, join, written

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def pooler(cluster: PostgresCluster) -> Iterator[PgBouncer]:
    with PgBouncer(cluster) as pooler:
        yield pooler


@pytest.fixture
def url(pooler: PgBouncer, postgres_url: str) -> str:
    return pooler.url(postgres_url)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(url: str, clock: FakeClock) -> Iterator[VerifiableLog]:
    log = open_log(url, clock=clock, random=random.Random(7), migrate=True)
    yield log
    log.close()


@pytest.mark.slow
class TestThroughPgBouncer(EventLogContract):
    pass


def real_log(url: str, seed: int = 1) -> PostgresEventLog:
    return PostgresEventLog(url, clock=SystemClock(), random=random.Random(seed))


def test_a_pooler_is_detected(url: str, postgres_url: str) -> None:
    pooled, direct = real_log(url), real_log(postgres_url)
    for log, is_pooled in ((pooled, True), (direct, False)):
        log.wait(0, 0.0)
        assert (log._watch.poll < 0.1) is is_pooled
        log.append([add(thing(f"by-{is_pooled}"))], author=AUTHOR)
        connection = log._postgres_writer._connection
        assert connection is not None
        assert (connection.prepare_threshold is None) is is_pooled
        with log._read() as borrowed:
            reader = borrowed.connection.dbapi_connection
            assert reader is not None
            assert (reader.prepare_threshold is None) is is_pooled
        log.close()


def test_no_session_lock_is_taken(url: str) -> None:
    sessions = open_sessions(url, clock=SystemClock())
    assert sessions.hold("me") == ""
    assert not sessions.has_ended(sessions.name("me"))
    sessions.close()


@pytest.mark.slow
def test_several_processes_write_and_follow_concurrently(url: str, postgres_url: str) -> None:
    logs = [real_log(each, seed) for seed, each in enumerate((url, url, postgres_url))]
    seen: list[int] = []
    ended = threading.Event()

    def change(number: int) -> None:
        name = f"w{number}"
        logs[number].append([add(thing(name))], author=AUTHOR)
        for n in range(60):
            logs[number].append([modify(thing(name, spec=n), None)], author=AUTHOR)

    def follow() -> None:
        while len(seen) < 3 * 61 and not ended.is_set():
            logs[0].wait(len(seen), 1.0)
            seen.extend(event.revision for event in logs[0].events_after(len(seen)))

    following = in_threads(follow)
    join(in_threads(*(lambda n=n: change(n) for n in range(3))))
    join(following)
    assert seen == list(range(1, 3 * 61 + 1))
    assert written(logs[1]) == {f"w{n}": 61 for n in range(3)}
    for log in logs:
        log.close()


def test_sql_works_through_the_pooler(url: str) -> None:
    log = real_log(url)
    log.append([add(thing("a"))], author=AUTHOR)
    log.close()
    with open_database(url) as database:
        for _ in range(10):
            assert database.query("SELECT name FROM objects WHERE name = :name", {"name": "a"}).rows == [("a",)]
