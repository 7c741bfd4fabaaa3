"""Tests of the log on a PostgreSQL database that works, in unusual situations."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import (
    BadRequest,
    Conflict,
    LogClosed,
    LogCorrupt,
    LogRolledBack,
    LogUnavailable,
    OutcomeUnknown,
    SchemaOutdated,
)
from ctrlmgr.eventlog import Author, Cause, Fence, Outcome, open_log, verify
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.postgres.arrays import BigintArray, BooleanArray, ByteaArray, IntegerArray, TextArray, register
from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog
from ctrlmgr.eventlog.postgres.url import parse_url
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing
from ctrlmgr.testing.postgres import PostgresCluster

pytestmark = pytest.mark.postgres

Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def log(postgres_url: str) -> Iterator[PostgresEventLog]:
    log = opened(postgres_url)
    yield log
    log.close()


@pytest.fixture
def sql(cluster: PostgresCluster, postgres_url: str) -> Sql:
    """Run a statement in the database of the log, on a separate connection."""
    return lambda statement: cluster.execute(statement, postgres_url.rpartition("/")[2])


def opened(url: str, *, patience: float = 10.0, seed: int = 1) -> PostgresEventLog:
    return PostgresEventLog(url, clock=SystemClock(), random=random.Random(seed), patience=patience)


def pending(name: str, append_id: int, author: Author = AUTHOR, **how: Any) -> PendingAppend:
    return PendingAppend(
        [add(thing(name))], author, how.get("fence"), how.get("cause"), recorded_at=1, append_id=append_id
    )


# Groups.


def test_a_refused_append_does_not_affect_its_group(log: PostgresEventLog) -> None:
    writer = log._postgres_writer
    twice = PendingAppend(
        [modify(thing("a", spec=1), None), add(thing("c")), modify(thing("a", spec=2), 99)],
        AUTHOR, None, None, recorded_at=1, append_id=4,
    )  # fmt: skip
    group = [pending("a", 1), pending("a", 2), twice, pending("c", 3), pending("b", 5, fence=Fence("l", 1))]
    answers = writer.commit(group, [], since=None)
    kinds = [answer if isinstance(answer, Exception) else [event.revision for event in answer] for answer in answers]
    assert [kind if isinstance(kind, list) else type(kind).__name__ for kind in kinds] == [
        [1], "AlreadyExists", "Conflict", [2], "Fenced",
    ]  # fmt: skip
    conflict = answers[2]
    assert isinstance(conflict, Conflict)
    assert (conflict.expected, conflict.actual) == (99, 2)  # the state after the first change of the append itself
    assert verify(log).events == 2


def test_an_object_written_repeatedly_in_one_group_keeps_its_history(log: PostgresEventLog, sql: Sql) -> None:
    changes = [add(thing("a")), modify(thing("a", spec=1), 1)]
    both = PendingAppend(changes, AUTHOR, None, None, recorded_at=1, append_id=1)
    other = PendingAppend([modify(thing("a", spec=2), None)], AUTHOR, None, None, recorded_at=1, append_id=2)
    log._postgres_writer.commit([both, other], [], since=None)
    assert [event.previous for event in log.events_after(0)] == [0, 1, 2]
    assert sql("SELECT create_revision, head_revision, deleted FROM object") == [(1, 3, False)]
    assert verify(log).events == 3


def test_fenced_and_unfenced_appends_share_a_group(log: PostgresEventLog) -> None:
    fences = [Fence("l", 3, takeover=True), Fence("l", 3), Fence("l", 2), Fence("m", 1), None, Fence("l", 3)]
    group = [pending(f"p{n}", n + 1, fence=fence) for n, fence in enumerate(fences)]
    answers = log._postgres_writer.commit(group, [], since=None)
    assert [isinstance(answer, list) for answer in answers] == [True, True, False, False, True, True]
    # no append was refused, so the short statement was used
    again = [pending("q0", 11, fence=Fence("l", 3)), pending("q1", 12)]
    assert all(isinstance(answer, list) for answer in log._postgres_writer.commit(again, [], since=None))
    assert [event.term for event in log.events_after(0)] == [3, 3, 0, 3, 3, 0]


def test_unstorable_data_is_refused_alone(log: PostgresEventLog) -> None:
    """In PostgreSQL, a text value cannot contain NUL, and an index entry cannot be one megabyte long."""
    huge = "".join(random.Random(1).choices("0123456789abcdef", k=100_000))
    group = [pending("a", 1), pending("b", 2, Author("nul\0")), pending(huge, 3), pending("c", 4)]
    answers = log._postgres_writer.commit(group, [(1, Outcome(1, "ok"))], since=None)
    assert [type(answer) for answer in answers] == [list, BadRequest, BadRequest, list]
    assert log.head().revision == 2


def test_a_reconcile_keeps_its_triggers_and_a_nul_in_its_message_is_replaced(log: PostgresEventLog) -> None:
    cause = Cause(7, "endpoints", "default/web", 2, 123, (3, 5, 8))
    log.append([add(thing("a"))], author=AUTHOR, cause=cause)
    log.append([add(thing("b"))], author=AUTHOR, cause=cause)
    log.finish(7, Outcome(10, "error", "bad\0byte \ud800"))
    log.flush()
    found = log.reconcile(7)
    assert found
    assert found.cause == cause
    assert found.outcome == Outcome(10, "error", "bad\ufffdbyte ?")


def test_a_revision_above_64_bits_is_a_conflict(log: PostgresEventLog) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    with pytest.raises(Conflict):
        log.append([modify(thing("a", spec=1), 2**70)], author=AUTHOR)


# Tests of the writer's cached head against the log.


def test_a_retry_finds_the_events_of_its_first_attempt_and_writes_the_rest(log: PostgresEventLog) -> None:
    writer = log._postgres_writer
    first, second = pending("a", 1), pending("b", 2)
    written = writer.commit([first], [], since=None)
    answers = writer.commit([second, first], [], since=0)
    assert answers[1] == written[0]
    assert [event.key.name for event in log.events_after(0)] == ["a", "b"]


def test_a_writer_behind_a_compaction_catches_up(log: PostgresEventLog, postgres_url: str) -> None:
    other = opened(postgres_url, seed=2)
    other.append([add(thing("a"))], author=AUTHOR)
    other.append([modify(thing("a", spec=1), 1)], author=AUTHOR)
    other.compact(2)
    assert log.append([add(thing("b"))], author=AUTHOR)[0].revision == 3
    other.close()


def test_a_retry_uses_the_knowledge_of_its_first_attempt(log: PostgresEventLog) -> None:
    """The committer's cached revision may be older than the compaction floor."""
    log.append([add(thing("a"))], author=AUTHOR)
    log.append([modify(thing("a", spec=1), 1)], author=AUTHOR)
    log.compact(2)
    group = [pending("b", 1)]
    log._postgres_writer._known_before(group, None)
    assert isinstance(log._postgres_writer.commit(group, [], since=0)[0], list)


def test_an_unknown_outcome_removed_by_compaction_stays_unknown(log: PostgresEventLog) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    log.append([modify(thing("a", spec=1), 1)], author=AUTHOR)
    log.compact(2)
    with pytest.raises(OutcomeUnknown, match="compaction"):
        log._postgres_writer.commit([pending("b", 1)], [], since=0)


def test_a_database_that_lost_acknowledged_events_is_not_written_to(log: PostgresEventLog, sql: Sql) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    sql("DELETE FROM event")
    sql("DELETE FROM object")
    sql("UPDATE log_head SET revision = 0")
    with pytest.raises(LogRolledBack):
        log.append([add(thing("b"))], author=AUTHOR)


def test_a_head_below_the_newest_event_is_corruption(log: PostgresEventLog, postgres_url: str, sql: Sql) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    sql("UPDATE log_head SET revision = 0")
    other = opened(postgres_url, patience=0.1, seed=2)
    with pytest.raises(LogCorrupt, match="contradicts"):
        other.append([add(thing("b"))], author=AUTHOR)
    other.close()


def test_the_append_reads_no_older_than_its_lock(log: PostgresEventLog) -> None:
    connection = log._postgres_writer._open()
    connection.execute("SET default_transaction_isolation = 'repeatable read'")
    with pytest.raises(LogUnavailable, match="READ COMMITTED"):
        log._postgres_writer.commit([pending("a", 1)], [], since=None)


# Opening.


def test_a_database_without_a_log_is_reported(cluster: PostgresCluster) -> None:
    with cluster.database("empty") as url, pytest.raises(SchemaOutdated, match="ctrlmgr migrate"):
        opened(url)


def test_an_unreachable_server_is_reported_at_once() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with pytest.raises(LogUnavailable, match="refused"):
            opened(f"postgresql://nobody@127.0.0.1:{port}/nothing")


def test_a_read_only_server_is_read_but_not_written(
    cluster: PostgresCluster, log: PostgresEventLog, postgres_url: str
) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    name = postgres_url.rpartition("/")[2]
    cluster.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    other = opened(postgres_url, patience=0.1, seed=2)
    assert other.head().revision == 1
    with pytest.raises(LogUnavailable, match="read-only"):
        other.append([add(thing("b"))], author=AUTHOR)
    cluster.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    assert other.append([add(thing("b"))], author=AUTHOR)[0].revision == 2
    other.close()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_form_of_the_url_is_accepted(postgres_url: str, scheme: str) -> None:
    url = scheme + "://" + postgres_url.partition("://")[2]
    log = open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)
    assert log.head().revision == 0
    log.close()
    assert parse_url(url).url.drivername == "postgresql+psycopg"


def test_a_closed_log_raises_an_error(postgres_url: str) -> None:
    log = opened(postgres_url)
    log.close()
    for call in (log.head, lambda: log.wait(0, 0.0), lambda: log.append([add(thing("a"))], author=AUTHOR)):
        with pytest.raises(LogClosed):
            call()


# The wire.


def test_packed_arrays_survive_a_round_trip(postgres_url: str) -> None:
    arrays = {
        BigintArray: [0, -1, 2**63 - 1, -(2**63)],
        IntegerArray: [0, 1, -(2**31)],
        BooleanArray: [True, False],
        TextArray: [b"", "späße".encode(), b"x" * 70_000],
        ByteaArray: [b"", b"\x00\xff"],
    }
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        register(connection)
        for array, values in arrays.items():
            expected = [value.decode() if array is TextArray else value for value in values]  # type: ignore[attr-defined]  # mixed table
            assert connection.execute("SELECT %b", [array.of(values)]).fetchone() == (expected,)  # type: ignore[attr-defined]  # mixed table
            assert connection.execute("SELECT %b", [array.of([])]).fetchone() == ([],)  # type: ignore[attr-defined]  # mixed table
