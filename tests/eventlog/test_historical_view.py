"""Tests of historical views: their results equal the results at the time when the revision was the newest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctrlmgr.api.resource import PODS, SERVICES, Key
from ctrlmgr.errors import BadRequest, Expired, Forbidden, LogClosed, LogUnavailable, SchemaOutdated, SettingsError
from ctrlmgr.eventlog import EventLog, Imported, open_log
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.historical_view import HistoricalLog
from ctrlmgr.eventlog.imports import ImportedRange
from ctrlmgr.eventlog.opening import open_log_for_reading
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, names, remove, thing

AT = 4


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def writer(url: str, clock: FakeClock) -> Iterator[EventLog]:
    """Return the log with a history, opened in the process that wrote the history."""
    with closing(open_log(url, clock=clock, random=random.Random(1), migrate=True)) as log:
        for proposal in (
            add(thing("a")),
            add(thing("web", kind="Service")),
            modify(thing("a", spec=1), 1),
            add(thing("b")),
            remove(thing("a", spec=1), 3),
            modify(thing("b", spec=2), 4),
        ):
            log.append([proposal], author=AUTHOR)
            clock.step(1)
        yield log


@pytest.fixture
def past(writer: EventLog, url: str, clock: FakeClock) -> Iterator[HistoricalLog]:
    """Return a view of the log at an earlier revision, opened in another process."""
    log = open_log_for_reading(url, clock=clock, random=random.Random(2))
    with closing(HistoricalLog(log, AT, clock=clock)) as past:
        yield past


def test_later_events_are_invisible(past: HistoricalLog) -> None:
    assert (past.head().revision, past.peek()) == (AT, AT)
    assert (past.snapshot().revision, names(past.snapshot().objects)) == (AT, ["a", "b", "web"])
    pod = past.get(PODS, Key("shop", "a"))
    assert pod is not None
    assert pod.revision == 3
    assert [event.revision for event in past.events_after(1)] == [2, 3, 4]
    assert [event.revision for event in past.events_after(1, limit=2)] == [2, 3]
    assert [event.revision for event in past.scan(start=3)] == [3, 4]
    assert past.revision_at(1 << 60) == AT


def test_earlier_states_can_be_read(past: HistoricalLog) -> None:
    assert names(past.snapshot(PODS, at=3).objects) == ["a"]
    assert past.get(PODS, Key("shop", "b"), at=3) is None
    with pytest.raises(BadRequest, match="revision 5 is beyond the head, 4"):
        past.snapshot(at=5)
    with pytest.raises(BadRequest):
        past.get(PODS, Key("shop", "b"), at=6)


def test_concurrent_appends_are_invisible(past: HistoricalLog, writer: EventLog) -> None:
    writer.append([add(thing("c"))], author=AUTHOR)
    assert past.events_after(AT) == []
    assert names(past.snapshot(PODS).objects) == ["a", "b"]
    assert past.wait(AT, 0.0) == AT
    assert past.wait(AT - 1, None) == AT


def test_concurrently_compacted_revisions_expire(past: HistoricalLog, writer: EventLog) -> None:
    writer.compact(6)
    assert past.events_after(AT) == []
    for read in (past.snapshot, lambda: past.get(PODS, Key("shop", "a")), lambda: past.events_after(1)):
        with pytest.raises(Expired):
            read()


def test_a_resource_compacted_separately_has_no_history(writer: EventLog, url: str, clock: FakeClock) -> None:
    writer.compact(6, resource=PODS)
    log = open_log_for_reading(url, clock=clock, random=random.Random(2))
    with closing(HistoricalLog(log, AT, clock=clock, resources=[SERVICES])) as past:
        assert names(past.snapshot().objects) == ["web"]
        with pytest.raises(Expired):
            past.snapshot(PODS)


def test_clients_cannot_write(past: HistoricalLog, writer: EventLog) -> None:
    imported = Imported(EventType.ADDED, thing("c").at(99), 0, AUTHOR)
    attempts: list[Callable[[], object]] = [
        lambda: past.append([add(thing("c"))], author=AUTHOR),
        lambda: past.submit([add(thing("c"))], author=AUTHOR),
        lambda: past.import_events([imported]),
        lambda: past.compact(2),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden, match="as it was at revision 4; it is read-only"):
            attempt()
    past.flush()
    assert (writer.head().revision, writer.floor()) == (6, 0)


def test_closing_wakes_waiters(past: HistoricalLog) -> None:
    past.close()
    with pytest.raises(LogClosed):
        past.wait(AT, None)
    with pytest.raises(LogClosed):
        past.peek()


def test_imports_end_at_the_revision(writer: EventLog, url: str, clock: FakeClock) -> None:
    writer.import_events([Imported(EventType.ADDED, thing(f"p{at}").at(at), 0, AUTHOR) for at in (50, 60)])
    for at, expected in ((6, []), (55, [ImportedRange(6, 55)]), (60, [ImportedRange(6, 60)])):
        log = open_log_for_reading(url, clock=clock, random=random.Random(2))
        with closing(HistoricalLog(log, at, clock=clock)) as past:
            assert past.imports() == expected
            assert len(past.snapshot().objects) == 2 + sum(1 for each in (50, 60) if each <= at)


# Tests of opening a log for reading.


def test_reading_keeps_the_file_unchanged(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with closing(open_log(url, clock=clock, random=random.Random(1), migrate=True)) as log:
        log.append([add(thing("a"))], author=AUTHOR)
    for beside in ("log.db-lock", "log.db-anchor"):
        (tmp_path / beside).unlink()
    before = (tmp_path / "log.db").read_bytes()
    with closing(open_log_for_reading(url, clock=clock, random=random.Random(2))) as log:
        assert names(log.snapshot().objects) == ["a"]
        assert (log.head().revision, log.peek(), log.wait(0, 0.0)) == (1, 1, 1)
        with pytest.raises(LogUnavailable, match="for reading only"):
            log.append([add(thing("b"))], author=AUTHOR)
        with pytest.raises(LogUnavailable, match="for reading only"):
            log.compact(1)
    assert (tmp_path / "log.db").read_bytes() == before
    assert not {path.name for path in tmp_path.iterdir()} & {"log.db-lock", "log.db-anchor"}


def test_reading_creates_no_file(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(SchemaOutdated, match="there is no database at"):
        open_log_for_reading(f"sqlite:///{tmp_path}/none.db", clock=clock, random=random.Random(1))
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaOutdated, match="run `ctrlmgr migrate`"):
        open_log_for_reading(f"sqlite:///{tmp_path}/empty.db", clock=clock, random=random.Random(1))
    assert (tmp_path / "empty.db").read_bytes() == b""
    with pytest.raises(SettingsError):
        open_log_for_reading("memory:", clock=clock, random=random.Random(1))
