"""Tests with a primary and its synchronous standby: acknowledged writes during failures, and which server is accepted
as the primary.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogError, LogRolledBack, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog import Event
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog
from ctrlmgr.eventlog.postgres.postgres_servers import Servers, WrongServer
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing
from tests.eventlog.postgres.test_faults import in_threads, join, until, written
from tests.robustness.failover.replicated import ReplicatedPostgres, waiting_commits

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]

Open = Callable[..., PostgresEventLog]


@pytest.fixture(scope="module")
def both() -> Iterator[ReplicatedPostgres]:
    with ReplicatedPostgres() as both:
        yield both


@pytest.fixture
def opened(both: ReplicatedPostgres) -> Iterator[Open]:
    """Open any number of logs on a database that only this test uses."""
    logs: list[PostgresEventLog] = []
    url = both.another()

    def open_one(patience: float = 30.0) -> PostgresEventLog:
        log = PostgresEventLog(url, clock=SystemClock(), random=random.Random(len(logs)), patience=patience)
        logs.append(log)
        return log

    yield open_one
    for log in logs:
        log.close()


WAITS = "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
CANCEL = "SELECT pg_cancel_backend({pid})"
TERMINATE = "SELECT pg_terminate_backend({pid})"


@pytest.mark.parametrize("end", [CANCEL, TERMINATE])
def test_an_append_with_a_cancelled_wait_is_confirmed_by_the_standby(
    both: ReplicatedPostgres, opened: Open, end: str
) -> None:
    log = opened()
    log.append([add(thing("a"))], author=AUTHOR)
    both.standby.stop("immediate")
    try:
        pending = log.submit([modify(thing("a", spec=1), None)], author=AUTHOR)
        ended: set[tuple[object, ...]] = set()
        for _ in range(3):  # the committer checks again, and each check waits for the standby
            until(lambda: set(both.primary.execute(WAITS)) - ended, "a commit waits for the standby")
            [wait] = set(both.primary.execute(WAITS)) - ended
            both.primary.execute(end.format(pid=wait[0]))
            ended.add(wait)
            with pytest.raises(TimeoutError):
                pending.result(0)
    finally:
        both.standby.start()
    assert [event.revision for event in pending.result(30)] == [2]
    assert written(log) == {"a": 2}


def test_an_append_without_a_standby_has_an_unknown_outcome(both: ReplicatedPostgres, opened: Open) -> None:
    log = opened(patience=2.0)
    log.append([add(thing("a"))], author=AUTHOR)
    both.standby.stop("immediate")
    try:
        pending = log.submit([modify(thing("a", spec=1), None)], author=AUTHOR)
        both.await_commit_waiting()
        [pid] = both.waiting_commits()
        both.primary.execute(CANCEL.format(pid=pid))
        with pytest.raises(OutcomeUnknown):
            pending.result(30)
    finally:
        both.standby.start()
    until(lambda: not both.waiting_commits(), "the standby has what it missed")
    log.append([modify(thing("a", spec=2), 2)], author=AUTHOR)
    assert written(log) == {"a": 3}


def test_a_failover_neither_loses_nor_repeats_a_revision(both: ReplicatedPostgres, opened: Open) -> None:
    """While four writers append unconditionally and one reader follows the log, the primary is killed and the standby
    is promoted.
    """
    logs, follower = [opened(), opened()], opened()
    stop, all_written = threading.Event(), threading.Event()
    acknowledged: dict[str, list[int]] = {}
    seen: list[Event] = []

    def write(log: PostgresEventLog, name: str) -> None:
        mine = acknowledged[name] = [log.append([add(thing(name))], author=AUTHOR)[0].revision]
        while not stop.is_set():
            mine.append(log.append([modify(thing(name, spec=len(mine)), None)], author=AUTHOR)[0].revision)

    def follow() -> None:
        while not all_written.is_set() or follower.head().revision > len(seen):
            try:
                follower.wait(len(seen), 0.5)
                seen.extend(follower.events_after(len(seen)))
            except LogUnavailable:
                continue

    writing = in_threads(*(partial(write, logs[n % 2], f"w{n}") for n in range(4)))
    following = in_threads(follow)
    await_progress(acknowledged)
    both.stop_primary("kill")
    both.promote()
    await_progress(acknowledged)
    both.rejoin_old_primary()
    await_progress(acknowledged)
    stop.set()
    join(writing)
    all_written.set()
    join(following)
    assert written(follower) == {name: len(revisions) for name, revisions in acknowledged.items()}
    stored = {event.revision: event.key.name for event in follower.scan()}
    assert all(stored[revision] == name for name, revisions in acknowledged.items() for revision in revisions)
    assert seen == list(follower.scan())


def await_progress(acknowledged: dict[str, list[int]]) -> None:
    def so_far() -> int:
        return sum(map(len, acknowledged.values()))

    before = so_far()
    until(lambda: so_far() >= before + 40, "appends get through")


def test_a_replaced_primary_is_refused(both: ReplicatedPostgres, opened: Open) -> None:
    log, old = opened(), both.primary
    log.append([add(thing("a"))], author=AUTHOR)
    both.promote()  # while the old primary runs and accepts writes of all clients
    try:
        fresh = opened()
        fresh.append([add(thing("b"))], author=AUTHOR)
        assert both.execute("SELECT count(*) FROM event", database_of(fresh)) == [(2,)], "the new primary has it"
        pending = log.submit([add(thing("c"))], author=AUTHOR)
        until(lambda: waiting_commits(old), "the old one waits for a standby")
        [pid] = waiting_commits(old)
        old.execute(TERMINATE.format(pid=pid))
        assert [event.revision for event in pending.result(30)] == [3]
        assert log.head().revision == 3, "reads have moved, too"
        assert log.wait(2, 10) == 3, "and so has following"
        assert written(log) == {"a": 1, "b": 1, "c": 1}
    finally:
        both.rejoin_old_primary()


def database_of(log: PostgresEventLog) -> str:
    return str(log._engine.url.database)


def test_only_the_newest_primary_is_connected_to(both: ReplicatedPostgres) -> None:
    servers, alone = Servers(both.url), Servers(both.standby.url("replicated"))
    with pytest.raises(WrongServer, match="is a standby"):
        alone.connect("test", patience=5)
    with alone.connect("test", patience=5, standby=True) as connection:
        assert connection.execute("SELECT pg_is_in_recovery()").fetchone() == (True,)
    both.promote()
    try:
        servers.connect("test", patience=5).close()
        both.primary.stop("fast")
        with pytest.raises(psycopg.OperationalError, match="has begun"):
            servers.connect("test", patience=5)
        both.primary.start()
        with servers.connect("test", patience=5) as connection:
            assert connection.info.port == both.primary.port
    finally:
        both.rejoin_old_primary()


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        (Head("{uuid}", 1, b"another"), "revision 1 differs from the one that this process has read"),
        (Head("{uuid}", 9, b"later"), "the database ends at revision 2, but this process has read revision 9"),
        (Head("another", 1, b""), "this process has used log another"),
    ],
)
def test_another_log_is_refused(both: ReplicatedPostgres, opened: Open, known: Head, problem: str) -> None:
    log = opened()
    log.append([add(thing("a")), add(thing("b"))], author=AUTHOR)
    servers = Servers(both.url_of(database_of(log)))
    servers.saw(known._replace(uuid=known.uuid.format(uuid=log.head().uuid)))
    with pytest.raises(LogRolledBack, match=problem):
        servers.connect("test", patience=5)
    with pytest.raises(LogRolledBack, match=problem), servers.engine().connect():
        pass


def test_a_hanging_database_times_out_and_recovers(both: ReplicatedPostgres, opened: Open) -> None:
    log, impatient = opened(), opened(patience=1.0)
    log.append([add(thing("a"))], author=AUTHOR)
    impatient.append([add(thing("b"))], author=AUTHOR)
    both.primary.freeze()
    try:
        with pytest.raises(LogUnavailable):
            impatient.head()
        with pytest.raises(LogUnavailable):
            impatient.wait(2, 0.1)
        with pytest.raises(LogError) as raised:
            impatient.append([modify(thing("b", spec=1), None)], author=AUTHOR)
        assert type(raised.value) in (OutcomeUnknown, LogUnavailable)
        pending = log.submit([modify(thing("a", spec=1), None)], author=AUTHOR)
    finally:
        both.primary.thaw()
    assert pending.result(30)
    assert impatient.append([add(thing("c"))], author=AUTHOR)
    counts = written(log)
    assert (counts["a"], counts["c"]) == (2, 1)


def test_the_number_of_reader_connections_is_limited(both: ReplicatedPostgres) -> None:
    url = both.another()
    log = PostgresEventLog(url, clock=SystemClock(), random=random.Random(1), pool_size=2)
    with log._read(), log._read(), pytest.raises(LogUnavailable, match="all connections for reading are busy"):
        log.head()
    assert log.head().revision == 0
    log.close()
