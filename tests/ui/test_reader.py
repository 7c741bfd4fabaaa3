"""Tests of how the UI page reads the database: limits of time and of waiting requests, and counts that are resumed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ctrlmgr import threads
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import CtrlmgrError, LogUnavailable, RequestTimeout, SchemaOutdated, TooManyRequests
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.inspection.database import Database, Rows, open_database
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace
from ctrlmgr.ui.density import BLOCK, Density
from ctrlmgr.ui.reader import QUEUE, HistoryUnavailable, Reader
from tests.server.site import TIMEOUT

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_query_above_its_timeout_is_cancelled_on_sqlite(demo_url: str) -> None:
    with open_database(demo_url, patience=0.05) as database:
        with pytest.raises(RequestTimeout, match=r"canceled after 0\.05 s"):
            database.query(ENDLESS)
        assert database.query("SELECT 1").rows == [(1,)]


@pytest.mark.postgres
def test_a_query_above_its_timeout_is_cancelled_on_postgres(postgres_url: str) -> None:
    with open_database(postgres_url, patience=0.05) as database:
        with pytest.raises(RequestTimeout, match=r"canceled after 0\.05 s"):
            database.query(ENDLESS)
        assert database.query("SELECT 1").rows == [(1,)]


def test_a_log_in_memory_cannot_be_queried() -> None:
    with pytest.raises(HistoryUnavailable, match="in memory"):
        Reader("memory:").ask(lambda database: None)
    with pytest.raises(HistoryUnavailable, match="of a recording"):
        Reader("memory:", reason="of a recording").ask(lambda database: None)


def test_a_missing_database_is_opened_later(tmp_path: Path) -> None:
    reader = Reader(f"sqlite:///{tmp_path}/none.db")
    with pytest.raises(SchemaOutdated):
        reader.ask(lambda database: None)
    open_log(f"sqlite:///{tmp_path}/none.db", clock=SystemClock(), random=Random(1), migrate=True).close()
    assert reader.ask(reader.head) == 0
    reader.close()


def test_connections_are_kept_unless_they_fail(demo_url: str) -> None:
    reader = Reader(demo_url)
    first = reader.ask(lambda database: database)

    def fail(error: CtrlmgrError) -> None:
        raise error

    with pytest.raises(HistoryUnavailable):
        reader.ask(lambda database: fail(HistoryUnavailable()))
    assert reader.ask(lambda database: database) is first
    with pytest.raises(LogUnavailable):
        reader.ask(lambda database: fail(LogUnavailable()))
    assert reader.ask(lambda database: database) is not first
    reader.close()


def test_the_number_of_waiting_queries_is_limited(demo_url: str) -> None:
    reader, stop, go_on = Reader(demo_url), threading.Event(), threading.Event()
    running = threads.start("reader under test", lambda: reader.run(stop))

    async def crowd() -> list[object]:
        waiting = [asyncio.create_task(reader.work(lambda: go_on.wait(TIMEOUT))) for _ in range(QUEUE)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await reader.work(lambda: True)
        go_on.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        assert asyncio.run(crowd()) == [True] * QUEUE
    finally:
        stop.set()
        running.join(TIMEOUT)


class ObservedDatabase(Database):
    """A database connection that records its queries."""

    def __init__(self, inner: Database, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self.dialect = inner.dialect
        self._inner = inner
        self._tell = tell

    def query(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        self._tell(parameters or {})
        return self._inner.query(statement, parameters)

    def refuse_power(self) -> None:
        self._inner.refuse_power()

    def close(self) -> None:
        self._inner.close()


@pytest.fixture
def long_log(tmp_path: Path) -> Iterator[Database]:
    """The URL of a log with 250 events."""
    url = f"sqlite:///{tmp_path}/long.db"
    log = open_log(url, clock=FakeClock(), random=Random(1), migrate=True)
    log.append([Proposal(EventType.ADDED, a_namespace(f"n-{n:03d}"), None) for n in range(250)], author=Author("a"))
    log.close()
    with open_database(url) as database:
        yield database


def test_counting_continues_block_by_block(long_log: Database) -> None:
    density = Density(clock=FakeClock())
    some = density.counted(long_log, 100)
    assert (some.until, sum(some.totals.values())) == (100, 100)
    assert [(block.first, block.last) for block in some.blocks] == [(1, BLOCK), (BLOCK + 1, 100)]
    asked: list[Any] = []
    every = density.counted(ObservedDatabase(long_log, lambda parameters: asked.append(parameters.get("after"))), 250)
    assert (every.until, sum(every.totals.values())) == (250, 250)
    assert sum(sum(block.counts.values()) for block in every.blocks) == 250
    assert 0 not in asked, "what was counted is not counted again"


def test_an_incomplete_count_is_reported(long_log: Database) -> None:
    clock = FakeClock()
    density = Density(clock=clock)
    assert density.counted(ObservedDatabase(long_log, lambda parameters: clock.step(5)), 250).until == 0
    assert density.counted(long_log, 250).until == 250
