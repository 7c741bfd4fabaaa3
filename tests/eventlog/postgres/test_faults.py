"""Tests of the loss of processes, connections, responses and the database server."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import Fenced, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog import Event, Fence, verify
from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing
from ctrlmgr.testing.postgres import PostgresCluster
from tests.eventlog.proxy import Proxy, like_a_transaction_pooler

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]

WRITER = Path(__file__).parents[1] / "writer_process.py"
PATIENCE = 20.0
Open = Callable[..., PostgresEventLog]


@pytest.fixture
def dice() -> random.Random:
    seed = int(os.environ.get("CTRLMGR_TEST_SEED", "0")) or random.SystemRandom().getrandbits(32)
    print(f"seed: CTRLMGR_TEST_SEED={seed}")  # noqa: T201  # shown with a failure, to repeat it
    return random.Random(seed)


@pytest.fixture
def opened(postgres_url: str) -> Iterator[Open]:
    """Open any number of logs on one database; close all logs at the end."""
    logs: list[PostgresEventLog] = []

    def open_one(url: str = postgres_url, *, patience: float = PATIENCE) -> PostgresEventLog:
        log = PostgresEventLog(url, clock=SystemClock(), random=random.Random(len(logs)), patience=patience)
        logs.append(log)
        return log

    yield open_one
    for log in logs:
        log.close()


def via(proxy: Proxy, url: str) -> str:
    """Return a database URL that leads through the proxy, without TLS."""
    head, _, tail = url.rpartition(":")
    return f"{head}:{proxy.port}/{tail.partition('/')[2]}?sslmode=disable&gssencmode=disable"


def database(url: str) -> str:
    return url.rpartition("/")[2]


def in_threads(*targets: Callable[[], object]) -> list[threading.Thread]:
    threads = [threading.Thread(target=target, daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.005)


def until_it_grows(log: PostgresEventLog, events: int) -> None:
    before = log.head().revision
    until(lambda: log.head().revision >= before + events, "appends get through")


def written(log: PostgresEventLog) -> dict[str, int]:
    """Return how often each name was written, after a check of the revisions and the hash chain."""
    events = list(log.scan())
    assert [event.revision for event in events] == list(range(1, len(events) + 1))
    assert verify(log).events == len(events)
    counts: dict[str, int] = {}
    for event in events:
        counts[event.key.name] = counts.get(event.key.name, 0) + 1
    return counts


# Tests of writers that are killed or frozen.


def writer(url: str, prefix: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), url, prefix, "1000000"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_acks(process: subprocess.Popen[str], count: int) -> dict[str, int]:
    assert process.stdout
    acks = {}
    for _ in range(count):
        name, revision = process.stdout.readline().split()
        acks[name] = int(revision)
    return acks


def end(process: subprocess.Popen[str]) -> dict[str, int]:
    """Kill a writer process, and return the acknowledgements that the process had printed."""
    process.kill()
    assert process.stdout
    with process.stdout:
        lines = [line.split() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait(10)
    return {name: int(revision) for name, revision in lines}


@pytest.mark.slow
def test_killing_a_writer_loses_no_acknowledged_append(postgres_url: str, opened: Open, dice: random.Random) -> None:
    log = opened()
    acks: dict[str, int] = {}
    for n in range(6):
        process = writer(postgres_url, f"w{n}")
        acks |= read_acks(process, 1 + dice.randrange(150))
        acks |= end(process)
    log.append([add(thing("last"))], author=AUTHOR)
    assert set(written(log).values()) == {1}
    stored = {event.key.name: event.revision for event in log.scan()}
    assert acks.items() <= stored.items()


@pytest.mark.slow
def test_a_frozen_writer_blocks_no_others(postgres_url: str, opened: Open, dice: random.Random) -> None:
    log = opened()
    process = writer(postgres_url, "frozen")
    slowest = 0.0
    try:
        for n in range(40):
            read_acks(process, 1 + dice.randrange(5))
            time.sleep(dice.random() * 0.001)  # to kill it at any moment of an append, not only after it has printed
            process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            log.append([add(thing(f"mine-{n}"))], author=AUTHOR)
            slowest = max(slowest, time.monotonic() - began)
            process.send_signal(signal.SIGCONT)
    finally:
        end(process)
    assert slowest < 1
    assert set(written(log).values()) == {1}


def test_a_frozen_compactor_with_the_lock_is_disconnected(opened: Open) -> None:
    log, other = opened(), opened()
    log.append([add(thing("a"))], author=AUTHOR)
    began = time.monotonic()
    with pytest.raises(LogUnavailable), log._write():
        other.append([add(thing("b"))], author=AUTHOR)  # the transaction makes no progress during this time
    assert time.monotonic() - began < 3
    assert other.append([add(thing("c"))], author=AUTHOR)[0].revision == 3


# Tests of servers and connections that fail. Each append here is unconditional, so a second write would not cause a
# conflict.


def change_often(log: PostgresEventLog, name: str, times: int, stop: threading.Event | None = None) -> int:
    log.append([add(thing(name))], author=AUTHOR)
    for n in range(times):
        if stop and stop.is_set():
            return n + 1
        log.append([modify(thing(name, spec=n), None)], author=AUTHOR)
    return times + 1


@pytest.mark.slow
def test_a_crashing_server_loses_and_duplicates_nothing(cluster: PostgresCluster, opened: Open) -> None:
    logs = [opened(), opened()]
    counts: dict[str, int] = {}
    stop = threading.Event()

    def change(log: PostgresEventLog, name: str) -> None:
        counts[name] = change_often(log, name, 1_000_000, stop)

    threads = in_threads(*(partial(change, logs[n % 2], f"w{n}") for n in range(4)))
    for _ in range(3):
        until_it_grows(logs[0], 100)
        cluster.restart("immediate")
    until_it_grows(logs[0], 1)
    stop.set()
    join(threads)
    assert written(logs[0]) == counts


@pytest.mark.slow
def test_terminated_connections_lose_and_duplicate_nothing(
    cluster: PostgresCluster, postgres_url: str, opened: Open, dice: random.Random
) -> None:
    log = opened()
    threads = in_threads(*(partial(change_often, log, f"w{n}", 250) for n in range(4)))
    kills = 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(dice.random() * 0.05 * (1 + kills / 5))  # even a busy machine must finish within this time
        rows = cluster.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{database(postgres_url)}' AND application_name = 'ctrlmgr append'"
        )
        kills += len(rows)
    join(threads)
    assert kills > 3
    assert written(log) == {f"w{n}": 251 for n in range(4)}


def test_a_retry_after_a_lost_reply_returns_the_original_events(
    cluster: PostgresCluster, postgres_url: str, opened: Open
) -> None:
    with Proxy(cluster.port) as proxy:
        log = opened(via(proxy, postgres_url))
        log.append([add(thing("a"))], author=AUTHOR)
        proxy.lose_reply_to(b"only once")
        events = log.append([modify(thing("a", spec="only once"), None), add(thing("b"))], author=AUTHOR)
        assert proxy.lost.is_set()
        assert list(events) == log.events_after(1)
        assert [event.revision for event in events] == [2, 3]
        log.close()


def test_a_first_attempt_that_arrives_after_its_retry_writes_nothing(
    cluster: PostgresCluster, postgres_url: str, opened: Open
) -> None:
    with Proxy(cluster.port) as proxy:
        log = opened(via(proxy, postgres_url))
        log.append([add(thing("a"))], author=AUTHOR)
        proxy.hold(b"only once")
        events = log.append([modify(thing("a", spec="only once"), None)], author=AUTHOR)
        assert proxy.lost.is_set()
        log.append([modify(thing("a", spec="newer"), None)], author=AUTHOR)
        proxy.release()
        assert log.head().revision == 3
        assert log.events_after(1, limit=1) == list(events)
        log.close()


def test_a_permanently_stopped_server_is_reported(cluster: PostgresCluster, opened: Open) -> None:
    log = opened(patience=0.3)
    cluster.stop("immediate")
    try:
        with pytest.raises((LogUnavailable, OutcomeUnknown)):
            log.append([add(thing("a"))], author=AUTHOR)
        with pytest.raises(LogUnavailable):
            log.append([add(thing("b"))], author=AUTHOR)
        with pytest.raises(LogUnavailable):
            log.head()
        with pytest.raises(LogUnavailable):
            log.wait(0, 0.2)
    finally:
        cluster.start()
    assert log.append([add(thing("a"))], author=AUTHOR)[0].revision == 1


def test_a_waiter_survives_a_restart(cluster: PostgresCluster, opened: Open) -> None:
    log, other = opened(), opened()
    seen: list[int] = []
    waiting = in_threads(lambda: seen.append(log.wait(0, None)))
    until(lambda: log._watch.poll == 1.0, "the waiter listens")
    cluster.restart("fast")
    other.append([add(thing("a"))], author=AUTHOR)
    join(waiting)
    assert seen == [1]


# Tests of successes that are not durable.


def test_a_commit_without_a_standbys_confirmation_is_no_success(
    cluster: PostgresCluster, postgres_url: str, opened: Open
) -> None:
    log = opened(patience=3.0)
    log.append([add(thing("a"))], author=AUTHOR)
    in_sync_rep = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        f" AND datname = '{database(postgres_url)}' AND application_name = 'ctrlmgr append'"
    )
    require_standby(cluster, "'nobody'")
    try:
        pending = log.submit([modify(thing("a", spec=1), None)], author=AUTHOR)
        until(lambda: cluster.execute(in_sync_rep), "the commit waits for its standby")
        cluster.execute(f"SELECT pg_cancel_backend(pid) FROM ({in_sync_rep}) waiting")
        with pytest.raises(OutcomeUnknown):
            pending.result(10)
    finally:
        require_standby(cluster, "''")
    log.append([modify(thing("a", spec=2), 2)], author=AUTHOR)  # the log contains the other append once
    assert written(log) == {"a": 3}


def require_standby(cluster: PostgresCluster, names: str) -> None:
    cluster.execute(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
    cluster.execute("SELECT pg_reload_conf()")
    until(lambda: cluster.execute("SHOW synchronous_standby_names") == [(names.strip("'"),)], "the setting is read")


# Tests of many concurrent writers.


@pytest.mark.slow
def test_a_reader_receives_all_events_of_eight_writers(opened: Open, dice: random.Random) -> None:
    writers = [opened() for _ in range(8)]
    reader = opened()
    seen: list[Event] = []

    def tail() -> None:
        while len(seen) < 8 * 61:
            after = seen[-1].revision if seen else 0
            reader.wait(after, 10)
            seen.extend(reader.events_after(after, limit=dice.randint(1, 50)))

    join(in_threads(tail, *(partial(change_often, writers[n], f"w{n}", 60) for n in range(8))))
    assert [event.revision for event in seen] == list(range(1, 8 * 61 + 1))
    assert written(reader) == {f"w{n}": 61 for n in range(8)}


@pytest.mark.slow
def test_no_event_of_an_older_term_follows_a_failover(opened: Open, dice: random.Random) -> None:
    """Writers keep their term until a write is refused, and then take over, so former leaders really attempt writes."""
    takeovers: list[int] = []
    refusals: list[int] = []

    def lead(log: PostgresEventLog, name: str) -> None:
        log.append([add(thing(name))], author=AUTHOR)
        for _ in range(25):
            term = take_over(log, name)
            takeovers.append(term)
            try:
                while True:
                    fence = Fence("leader", term)
                    log.append([modify(thing(name, spec=term), None)], author=AUTHOR, fence=fence)
                    if dice.random() < 0.05:
                        break
            except Fenced:
                refusals.append(term)

    def take_over(log: PostgresEventLog, name: str) -> int:
        term = max(takeovers, default=0)
        while True:
            term += 1
            try:
                fence = Fence("leader", term, takeover=True)
                log.append([modify(thing(name, spec="leader"), None)], author=AUTHOR, fence=fence)
            except Fenced:
                continue
            return term

    logs = [opened() for _ in range(4)]
    join(in_threads(*(partial(lead, logs[n], f"w{n}") for n in range(4))))
    terms = [event.term for event in logs[0].scan() if event.term]
    assert terms == sorted(terms)
    assert sorted(takeovers) == sorted(set(takeovers))
    assert refusals


# Tests of a proxy between the log and its database.


def test_waiting_works_behind_a_transaction_pooler(cluster: PostgresCluster, postgres_url: str, opened: Open) -> None:
    with Proxy(cluster.port, server_messages=like_a_transaction_pooler) as proxy:
        log, other = opened(via(proxy, postgres_url)), opened()
        assert log.wait(0, 0.0) == 0
        assert log._watch.poll < 0.1
        seen: list[int] = []
        waiting = in_threads(lambda: seen.append(log.wait(0, None)))
        other.append([add(thing("a"))], author=AUTHOR)
        join(waiting)
        assert seen == [1]
        log.append([add(thing("b"))], author=AUTHOR)
        connection = log._postgres_writer._connection
        assert connection
        assert connection.prepare_threshold is None
        log.close()
