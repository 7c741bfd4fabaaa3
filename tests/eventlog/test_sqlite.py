from __future__ import annotations

import fcntl
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event as engine_events

from ctrlmgr.api.resource import PODS
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogClosed, LogCorrupt, LogRolledBack, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog import migrate_log, open_log, verify
from ctrlmgr.eventlog.sqlite.file_lock import FileLock
from ctrlmgr.eventlog.sqlite.sqlite_log import PAGE, SQLiteEventLog
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


@contextmanager
def damaged(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def opened(path: Path, *, patience: float = 10.0, seed: int = 1, anchor: Path | None = None) -> SQLiteEventLog:
    log = open_log(
        f"sqlite:///{path}",
        clock=SystemClock(),
        random=random.Random(seed),
        migrate=True,
        patience=patience,
        anchor=anchor,
    )
    assert isinstance(log, SQLiteEventLog)
    return log


@pytest.fixture
def log(path: Path) -> Iterator[SQLiteEventLog]:
    log = opened(path)
    yield log
    log.close()


def test_an_acknowledged_append_is_durable_to_the_disk(log: SQLiteEventLog, path: Path) -> None:
    writer = log._sqlite_writer._connection
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.parametrize("made_with", [None, 4_096])
def test_a_file_keeps_its_page_size(path: Path, made_with: int | None) -> None:
    if made_with is not None:
        with closing(sqlite3.connect(path)) as before:
            before.execute(f"PRAGMA page_size = {made_with}")
            before.execute("PRAGMA journal_mode = WAL")
    with closing(opened(path)) as log:
        log.append([add(thing("one"))], author=AUTHOR)
        writer = log._sqlite_writer._connection
        (page,), (pages,) = (
            writer.execute(f"PRAGMA {each}").fetchone() for each in ("page_size", "wal_autocheckpoint")
        )
        assert page == (made_with or PAGE)
        assert page * pages == 40 * 1024 * 1024


def test_objects_above_two_kilobytes_fill_their_pages(log: SQLiteEventLog, path: Path) -> None:
    """The objects have the size of most pods; a database page in which one and a half such objects would fit is half
    empty.
    """
    size, count = 2_200, 2_000
    pods = [thing(f"pod-{number}", data={"a": "x" * size}) for number in range(count)]
    log.append([add(each) for each in pods], author=AUTHOR)
    log.close()
    assert path.stat().st_size < 1.4 * size * count


def test_a_peek_sees_commits_of_others(log: SQLiteEventLog, path: Path) -> None:
    other = opened(path, seed=2)
    for revision in (1, 2):
        other.append([add(thing(f"pod-{revision}"))], author=AUTHOR)
        assert (log.peek(), other.peek()) == (revision, revision)
    other.begin_epoch("restored in a test", above=100)
    assert log.peek() == 100
    other.close()
    with pytest.raises(LogClosed):
        other.peek()


def test_a_peek_sees_acknowledged_events_of_another_process(log: SQLiteEventLog, path: Path) -> None:
    process = writer(f"sqlite:///{path}", "other", 20)
    assert process.stdout
    for line in process.stdout:
        assert log.peek() >= int(line.split()[1])
    assert process.wait(10) == 0
    closed(process)
    assert log.peek() == log.head().revision == 20


def test_a_peek_ignores_shared_memory_of_the_last_user(path: Path) -> None:
    """A killed process may not have written its last commit to the anchor, and an older copy may have replaced the
    database file.
    """
    log = opened(path)
    log.append([add(thing("a"))], author=AUTHOR)
    log.close()
    for left in (b"", bytes(8), b"\x7f" + bytes(7), b"more than it ever is"):
        path.with_name(path.name + "-lock").write_bytes(left)
        log = opened(path)
        assert log.peek() == 1
        log.close()


def test_a_log_can_be_opened_and_read_while_locked(log: SQLiteEventLog, path: Path) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    with path.with_name(path.name + "-lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reader = opened(path, patience=0.1)
        assert reader.peek() == reader.head().revision == 1
    reader.close()


def test_a_log_keeps_its_identity_and_content_when_opened_again(log: SQLiteEventLog, path: Path) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    head = log.head()
    log.close()
    again = opened(path, seed=2)
    assert again.head() == head
    assert again.append([add(thing("b"))], author=AUTHOR)[0].revision == 2
    again.close()


def test_two_logs_on_one_file_follow_each_other(log: SQLiteEventLog, path: Path) -> None:
    other = opened(path, seed=2)
    log.append([add(thing("a"))], author=AUTHOR)
    other.append([modify(thing("a", spec=1), 1)], author=AUTHOR)
    log.append([modify(thing("a", spec=2), 2)], author=AUTHOR)
    assert other.wait(2, 10) == 3
    log.compact(3)
    other.append([modify(thing("a", spec=3), 3), add(thing("b"))], author=AUTHOR)
    assert log.wait(4, 10) == 5
    assert verify(log).head.revision == 5
    other.close()


def test_a_waiter_sees_another_connections_commit(log: SQLiteEventLog, path: Path) -> None:
    other = opened(path, seed=2)
    seen: list[int] = []
    waiter = threading.Thread(target=lambda: seen.append(log.wait(0, 30)))
    waiter.start()
    other.append([add(thing("a"))], author=AUTHOR)
    waiter.join(30)
    assert seen == [1]
    other.close()


@pytest.mark.parametrize("timeout", [0.0, 5.0])
def test_a_waiter_sees_a_commit_of_a_process_that_died_before_notifying(
    log: SQLiteEventLog, path: Path, timeout: float
) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    lock = FileLock(path.with_name(f"{path.name}-lock"), clock=SystemClock(), patience=1.0)
    with closing(lock), lock:
        lock.head = 0
    assert log.peek() == 0
    assert log.wait(0, timeout) == 1


def test_a_locked_database_is_retried_until_the_timeout(path: Path) -> None:
    log = opened(path, patience=0.1)
    blocker = sqlite3.connect(path, isolation_level=None)
    log._sqlite_writer._connection.execute("PRAGMA busy_timeout = 1")
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LogUnavailable, match="locked"):
        log.append([add(thing("a"))], author=AUTHOR)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert log.append([add(thing("a"))], author=AUTHOR)[0].revision == 1
    log.close()


def test_a_lock_released_in_time_causes_only_a_delay(log: SQLiteEventLog, path: Path) -> None:
    log._sqlite_writer._connection.execute("PRAGMA busy_timeout = 1")
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    blocker.execute("BEGIN IMMEDIATE")
    pending = log.submit([add(thing("a"))], author=AUTHOR)
    release = threading.Timer(0.1, blocker.execute, ["ROLLBACK"])
    release.start()
    assert pending.result(10)[0].revision == 1
    release.join()
    blocker.close()


def test_a_frozen_writer_delays_others_until_their_timeout_without_unknown_outcomes(path: Path) -> None:
    log = opened(path, patience=0.1)
    with path.with_name(path.name + "-lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(LogUnavailable, match="held the write lock"):
            log.append([add(thing("a"))], author=AUTHOR)
        assert log.head().revision == 0  # readers continue at the same time
    assert log.append([add(thing("a"))], author=AUTHOR)[0].revision == 1
    log.close()


def test_a_commit_of_unknown_outcome_is_recognized(log: SQLiteEventLog) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    pending = log.submit([modify(thing("a", spec=1), None)], author=AUTHOR)
    events = pending.result()
    answers = log._sqlite_writer.commit([pending], [], since=1)
    assert answers == [list(events)]
    assert log.head().revision == 2


def test_a_database_without_a_log_is_reported(path: Path) -> None:
    with pytest.raises(SchemaOutdated, match="ctrlmgr migrate"):
        open_log(f"sqlite:///{path}", clock=SystemClock(), random=random.Random(1))


def test_a_newer_schema_is_refused(log: SQLiteEventLog, path: Path) -> None:
    log.close()
    with damaged(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE schema_support SET oldest = '9999'")
    with pytest.raises(SchemaOutdated, match="upgrade ctrlmgr"):
        migrate_log(f"sqlite:///{path}", clock=SystemClock(), random=random.Random(1))


# Tests of damaged databases.


def history(log: SQLiteEventLog, events: int = 20) -> None:
    for i in range(events):
        log.append([add(thing(f"p{i}", spec={"number": i}))], author=AUTHOR)


COLUMNS = [
    "body",
    "hash",
    "actor",
    "user_agent",
    "type",
    "previous",
    "recorded_at",
    "term",
    "reconcile_id",
    "append_id",
    "object_id",
]


@pytest.mark.parametrize("column", COLUMNS)
def test_verify_names_the_revision_of_a_changed_column(log: SQLiteEventLog, path: Path, column: str) -> None:
    history(log)
    with damaged(path) as connection:
        change = f"{column} || 'x'" if column in ("body", "hash", "actor", "user_agent") else f"{column} + 100"
        connection.execute(f"UPDATE event SET {column} = {change} WHERE revision = 13")
    with pytest.raises(LogCorrupt) as damage:
        verify(log)
    assert damage.value.revision == 13


def test_events_since_a_revision_are_found_without_reading_earlier_ones(log: SQLiteEventLog, path: Path) -> None:
    history(log)
    for revision in (3, 21, 5, 22):  # p2 twice, p4, and p2 once more
        log.append([modify(log.events_after(revision - 1, limit=1)[0].object, revision)], author=AUTHOR)
    asked: list[tuple[str, Any]] = []

    @engine_events.listens_for(log._engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        asked.append((statement, parameters))

    every = [event.revision for event in log.events_after(0, resource=PODS)]
    assert len(every) > 10
    for since in range(every[-1] + 1):
        found = [event.revision for event in log.events_after(since, resource=PODS)]
        assert found == [revision for revision in every if revision > since]
    statement, parameters = next(each for each in asked if "ORDER BY event.revision" in each[0])
    with damaged(path) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    assert any("SEARCH event USING INDEX" in step and "(object_id=? AND previous>?)" in step for step in plan), plan


def test_verify_names_the_revision_for_every_byte_of_a_payload(log: SQLiteEventLog, path: Path) -> None:
    history(log, 5)
    body = next(event for event in log.scan(start=3)).object.body
    connection = sqlite3.connect(path, isolation_level=None)
    for at in range(len(body)):
        flipped = body[:at] + bytes([body[at] ^ (1 << at % 8)]) + body[at + 1 :]
        connection.execute("UPDATE event SET body = CAST(? AS TEXT) WHERE revision = 3", (flipped,))
        with pytest.raises(LogCorrupt, match="revision 3 is damaged"):
            verify(log)
    connection.execute("UPDATE event SET body = CAST(? AS TEXT) WHERE revision = 3", (body,))
    connection.close()
    assert verify(log).events == 5


@pytest.mark.parametrize("column", ["resource", "namespace", "name"])
def test_verify_detects_a_renamed_object(log: SQLiteEventLog, path: Path, column: str) -> None:
    history(log)
    with damaged(path) as connection:
        connection.execute(f"UPDATE object SET {column} = 'other' WHERE name = 'p6'")
    with pytest.raises(LogCorrupt, match="revision 7 "):
        verify(log)


def test_verify_detects_a_missing_event_and_a_missing_end(log: SQLiteEventLog, path: Path) -> None:
    history(log)
    with damaged(path) as connection:
        connection.execute("DELETE FROM event WHERE revision = 20")
    with pytest.raises(LogCorrupt, match="revision 20 is missing"):
        verify(log)
    with damaged(path) as connection:
        connection.execute("DELETE FROM event WHERE revision = 8")
    with pytest.raises(LogCorrupt, match="revision 8 is missing"):
        verify(log)


def test_verify_detects_damage_after_a_compacted_range(log: SQLiteEventLog, path: Path) -> None:
    log.append([add(thing("a"))], author=AUTHOR)
    for i in range(5):
        log.append([modify(thing("a", spec=i), None)], author=AUTHOR)
    log.compact(5)
    assert verify(log).events == 2
    with damaged(path) as connection:
        connection.execute("UPDATE event SET parent_hash = zeroblob(32) WHERE revision = 5")
    with pytest.raises(LogCorrupt, match="revision 5 "):
        verify(log)


def test_a_log_shorter_than_its_anchor_is_refused_until_restored(log: SQLiteEventLog, path: Path) -> None:
    history(log, 3)
    log.close()
    backup = path.read_bytes()
    log = opened(path)
    log.append([add(thing("lost"))], author=AUTHOR)
    log.close()
    path.write_bytes(backup)
    with pytest.raises(LogRolledBack, match=r"ends at revision 3 but .* names revision 4"):
        opened(path)
    accepted = path.with_name("accepted")
    log = opened(path, seed=2, anchor=accepted)
    uuid = log.head().uuid
    head = log.begin_epoch("restored in a test", above=1004)
    assert (head.revision, head.uuid != uuid) == (1004, True)
    assert log.append([add(thing("new"))], author=AUTHOR)[0].revision == 1005
    assert log.floor(PODS) == 1004
    assert verify(log)[:2] == (4, log.head())
    log.close()
    opened(path, anchor=accepted).close()


def test_a_log_whose_past_differs_from_its_anchor_is_refused(log: SQLiteEventLog, path: Path) -> None:
    history(log, 3)
    log.close()
    with damaged(path) as connection:
        connection.execute("UPDATE event SET hash = zeroblob(32) WHERE revision = 3")
    with pytest.raises(LogCorrupt, match="revision 3 does not have the hash in"):
        opened(path)


def test_another_database_at_the_anchors_path_is_refused(log: SQLiteEventLog, path: Path, tmp_path: Path) -> None:
    history(log, 3)
    log.close()
    other = opened(tmp_path / "other.db", seed=99)
    other.close()
    path.write_bytes((tmp_path / "other.db").read_bytes())
    with pytest.raises(LogRolledBack, match="another database"):
        opened(path)


# Real processes.

WRITER = Path(__file__).with_name("writer_process.py")


def writer(url: str, name: str, count: int, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), url, name, str(count), *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def acknowledged(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout
    lines = [line.split() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    return {name: int(revision) for name, revision in lines}


def closed(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    process.stdout.close()


@pytest.mark.slow
def test_a_process_frozen_between_appends_blocks_no_others(log: SQLiteEventLog, path: Path) -> None:
    frozen = writer(f"sqlite:///{path}", "frozen", 2, "step")
    assert frozen.stdin
    assert frozen.stdout
    frozen.stdin.write("go on\n")
    frozen.stdin.flush()
    assert frozen.stdout.readline() == "frozen-0 1\n"
    frozen.send_signal(signal.SIGSTOP)
    for i in range(50):
        assert log.append([add(thing(f"p{i}"))], author=AUTHOR)[0].revision == i + 2
    log.compact(20)
    frozen.send_signal(signal.SIGCONT)
    frozen.stdin.write("go on\n")
    frozen.stdin.flush()
    assert frozen.stdout.readline() == "frozen-1 52\n"
    assert frozen.wait(10) == 0
    closed(frozen)
    assert verify(log).head.revision == 52


@pytest.mark.slow
def test_processes_alternate_and_lose_nothing(log: SQLiteEventLog, path: Path) -> None:
    processes = [writer(f"sqlite:///{path}", f"w{n}", 150) for n in range(3)]
    acks: dict[str, int] = {}
    for process in processes:
        acks |= acknowledged(process)
        assert process.wait(60) == 0
        closed(process)
    assert {event.key.name: event.revision for event in log.scan()} == acks
    assert sorted(acks.values()) == list(range(1, 451))
    assert verify(log).events == 450


@pytest.mark.slow
def test_killing_a_writer_loses_no_acknowledged_append(log: SQLiteEventLog, path: Path) -> None:
    dice = random.Random(4)
    acks: dict[str, int] = {}
    for n in range(12):
        process = writer(f"sqlite:///{path}", f"w{n}", 1_000_000)
        assert process.stdout
        first = process.stdout.readline().split()
        acks[first[0]] = int(first[1])
        for _ in range(dice.randrange(200)):
            line = process.stdout.readline().split()
            acks[line[0]] = int(line[1])
        process.kill()
        acks |= acknowledged(process)
        process.wait(10)
        closed(process)
    stored = {event.key.name: event.revision for event in log.scan()}
    assert acks.items() <= stored.items()
    assert sorted(stored.values()) == list(range(1, len(stored) + 1))
    assert verify(log).events == len(stored)
