"""What reconciles write goes along with what requests append, where those come often."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.appending import committer, company
from ctrlmgr.eventlog.appending.committer import Committer
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing
from tests.background import background
from tests.eventlog.appending.scripted import Gate, ScriptedWriter, commit_together, pending, submit


class Reconciled(PendingAppend):
    """An append that a reconcile makes."""

    __slots__ = ("waits",)

    def __init__(self, name: str) -> None:
        cause = Cause(1, "controller", name, attempt=1, started_at=1, triggers=())
        super().__init__([add(thing(name))], AUTHOR, None, cause, recorded_at=1, append_id=1)
        self.waits = threading.Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.set()
        return super().wait(timeout)


def request(line: Committer, name: str) -> None:
    """Append as a request does, and wait."""
    append = pending(name)
    line.submit(append)
    append.result(10)


def reconcile(line: Committer, *names: str) -> list[Future[None]]:
    """Have reconciles append, each on a thread of its own, and return once they wait."""
    appends = [Reconciled(name) for name in names]
    threads = [background(partial(line.commit, append)) for append in appends]
    assert all(append.waits.wait(10) for append in appends)
    return threads


def have_requests_come(line: Committer, writer: ScriptedWriter) -> None:
    for number in range(4):
        request(line, f"r{number}")
    line.flush()
    writer.groups.clear()
    writer.threads.clear()


@pytest.fixture
def busy(writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Committer]:
    """Return a line to which requests come one after the other, so that reconciles wait for the next one."""
    monkeypatch.setattr(company, "_LEAST", 1000.0)
    monkeypatch.setattr(company, "_LONGEST", 1000.0)
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    have_requests_come(line, writer)
    yield line
    line.close()


def test_what_reconciles_write_goes_with_the_next_request(
    busy: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(company.Company, "found", lambda _: told.append("found"))
    monkeypatch.setattr(company.Company, "took", lambda _, seconds: told.append("took"))
    threads = reconcile(busy, "a") + reconcile(busy, "b")
    request(busy, "r")
    for each in threads:
        each.result(10)
    assert writer.groups == [["a", "b", "r"]]
    request(busy, "s")
    assert told == ["found", "took", "took"]


def test_what_no_reconcile_writes_does_not_wait(busy: Committer, writer: ScriptedWriter) -> None:
    def commit() -> int:
        busy.commit(pending("a"))
        return threading.get_ident()

    assert background(commit).result(10) == writer.threads[0]


@pytest.fixture
def brief(writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Committer]:
    """Return such a line, on which they wait for a second."""
    monkeypatch.setattr(company, "_LEAST", 1.0)
    monkeypatch.setattr(company, "_LONGEST", 1.0)
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    have_requests_come(line, writer)
    yield line
    line.close()


def test_who_is_written_already_when_its_time_is_over_is_left_alone(brief: Committer, writer: ScriptedWriter) -> None:
    gate = Gate(writer)
    (thread,) = reconcile(brief, "a")
    brief.submit(pending("r"))
    assert gate.entered.wait(10)
    thread.result(10)
    gate.opened.set()
    brief.close()
    assert writer.groups == [["a", "r"]]


def test_whose_time_is_over_while_others_are_written_is_next(brief: Committer, writer: ScriptedWriter) -> None:
    gate = Gate(writer)
    brief.submit(pending("r"))
    assert gate.entered.wait(10)
    (thread,) = reconcile(brief, "a")
    thread.result(10)
    gate.opened.set()
    brief.flush()
    assert writer.groups == [["r"], ["a"]]


def test_requests_are_told_before_reconciles(busy: Committer) -> None:
    told: list[str] = []
    ours, theirs = Reconciled("a"), pending("r")
    for append, name in ((ours, "a"), (theirs, "r")):
        append.add_done_callback(lambda _, name=name: told.append(name))  # type: ignore[misc]  # lambdas have no types
    thread = background(partial(busy.commit, ours))
    assert ours.waits.wait(10)
    busy.submit(theirs)
    thread.result(10)
    assert told == ["r", "a"]


def test_reconciles_that_go_along_make_no_crowd(
    busy: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [thread for name in "abcde" for thread in reconcile(busy, name)]
    request(busy, "r")
    monkeypatch.setattr(committer, "_GATHER", 1000.0)  # nobody waits for the five to come back
    request(busy, "s")
    for each in threads:
        each.result(10)
    assert writer.groups == [["a", "b", "c", "d", "e", "r"], ["s"]]


def test_a_reconcile_that_waits_is_committed_when_the_line_closes(busy: Committer, writer: ScriptedWriter) -> None:
    (thread,) = reconcile(busy, "a")
    busy.close()
    thread.result(10)
    assert writer.groups == [["a"]]


def test_where_no_requests_come_a_reconcile_commits_on_its_own_thread(line: Committer, writer: ScriptedWriter) -> None:
    append = Reconciled("a")
    line.commit(append)
    assert append.result(0)
    assert writer.threads == [threading.get_ident()]


def test_for_whom_nobody_comes_goes_alone_and_the_next_ones_at_once(
    brief: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief.commit(Reconciled("a"))  # waits for a second
    monkeypatch.setattr(company, "_LEAST", 1000.0)
    monkeypatch.setattr(company, "_LONGEST", 1000.0)
    for name in "bcd":
        brief.commit(Reconciled(name))  # would wait for long
    assert writer.groups == [["a"], ["b"], ["c"], ["d"]]
    assert set(writer.threads) == {threading.get_ident()}


def test_a_reconcile_that_has_waited_goes_with_a_crowd_that_comes_back(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_RETURN", 1000.0)
    commit_together(line, writer, 5)
    writer.groups.clear()
    monkeypatch.setattr(committer, "_GATHER", 1000.0)  # only all being there helps
    append = Reconciled("a")
    line.commit(append)  # waits for milliseconds
    submit(line, "q", 4)[-1].result(10)
    assert writer.groups == [["a", "q0", "q1", "q2", "q3"]]
