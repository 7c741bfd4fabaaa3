from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import (
    AlreadyExists,
    LogClosed,
    LogCorrupt,
    LogUnavailable,
    OutcomeUnknown,
    TooManyRequests,
)
from ctrlmgr.eventlog import Cause, Event, Outcome
from ctrlmgr.eventlog.appending import committer
from ctrlmgr.eventlog.appending.committer import Answer, Committer, Finished
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing

Step = Callable[[], None]


class ScriptedWriter:
    """A `GroupWriter` that allocates revisions, and first raises the errors that a test specifies."""

    def __init__(self) -> None:
        self.script: list[BaseException] = []
        self.refused: set[str] = set()
        self.before: Step = lambda: None
        self.groups: list[list[str]] = []
        self.sinces: list[int | None] = []
        self.outcomes: list[Finished] = []
        self.threads: list[int] = []
        self.idled = threading.Event()
        self.problem: Exception | None = None
        self.revision = 10

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: int | None
    ) -> list[Answer]:
        self.before()
        self.sinces.append(since)
        self.threads.append(threading.get_ident())
        if self.script:
            raise self.script.pop(0)
        self.groups.append([pending.places[0][2] for pending in group])
        self.outcomes += outcomes
        return [self.answer(pending) for pending in group]

    def answer(self, pending: PendingAppend) -> Answer:
        if pending.places[0][2] in self.refused:
            return AlreadyExists()
        self.revision += 1
        return [pending.event(0, self.revision, 0, b"h")]

    def idle(self) -> None:
        self.idled.set()
        if self.problem is not None:
            raise self.problem


@pytest.fixture
def writer() -> ScriptedWriter:
    return ScriptedWriter()


@pytest.fixture
def line(writer: ScriptedWriter) -> Iterator[Committer]:
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    yield line
    line.close()


def pending(name: str) -> PendingAppend:
    return PendingAppend([add(thing(name))], AUTHOR, None, None, recorded_at=1, append_id=1)


def reconciled(name: str) -> PendingAppend:
    """Return an append with one write of a reconcile."""
    cause = Cause(1, "controller", name, attempt=1, started_at=1, triggers=())
    return PendingAppend([add(thing(name))], AUTHOR, None, cause, recorded_at=1, append_id=1)


class BlockingWriter:
    """A writer that blocks inside a commit until a test releases it."""

    def __init__(self, writer: ScriptedWriter) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        writer.before = self.hold

    def hold(self) -> None:
        self.entered.set()
        assert self.opened.wait(10)


def test_a_single_append_commits_on_its_callers_thread(line: Committer, writer: ScriptedWriter) -> None:
    append = pending("a")
    line.commit(append)
    assert append.result(10)[0].revision == 11
    assert writer.threads == [threading.get_ident()]


def test_appends_that_wait_during_a_commit_form_the_next_group(line: Committer, writer: ScriptedWriter) -> None:
    gate = BlockingWriter(writer)
    first = pending("first")
    line.submit(first)
    assert gate.entered.wait(10)
    rest = [pending(f"p{i}") for i in range(9)]
    for append in rest[:5]:
        line.submit(append)
    for append in rest[5:]:
        line.commit(append)  # a commit is running, so these appends wait, too
    gate.opened.set()
    assert [append.result(10)[0].revision for append in (first, *rest)] == list(range(11, 21))
    assert writer.groups == [["first"], [f"p{i}" for i in range(9)]]


def test_appends_that_arrive_during_a_single_commit_are_committed_next(
    writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_IDLE", 1000.0)  # only a notification ends the wait
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    gate = BlockingWriter(writer)
    alone, next_one = pending("alone"), pending("next")
    caller = threading.Thread(target=line.commit, args=(alone,))
    caller.start()
    assert gate.entered.wait(10)
    line.submit(next_one)
    gate.opened.set()
    assert next_one.result(10)[0].revision == 12
    caller.join(10)
    line.close()


def submit(line: Committer, name: str, number: int) -> list[PendingAppend]:
    """Submit `count` appends; their names are `name` followed by a number."""
    appends = [pending(f"{name}{i}") for i in range(number)]
    for append in appends:
        line.submit(append)
    return appends


def hold_group(line: Committer, writer: ScriptedWriter, number: int) -> tuple[BlockingWriter, list[PendingAppend]]:
    """Form one group of `count` retried appends, and block the commit of the group."""
    gate = BlockingWriter(writer)
    group = submit(line, "q", number)
    assert gate.entered.wait(10)
    return gate, group


def commit_together(line: Committer, writer: ScriptedWriter, number: int) -> None:
    """Form one group of `count` appends, all of which arrive during a commit."""
    gate, _ = hold_group(line, writer, 1)
    crowd = submit(line, "p", number)
    gate.opened.set()
    crowd[-1].result(10)


def test_returning_appenders_wait_for_their_group(line: Committer, writer: ScriptedWriter) -> None:
    commit_together(line, writer, 5)
    line.flush()
    back, alone = pending("back"), pending("alone")
    line.commit(back)
    back.result(10)
    line.flush()
    line.commit(alone)
    assert [thread == threading.get_ident() for thread in writer.threads] == [False, False, False, True]


def test_the_committer_waits_a_short_time_for_many_appenders(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_RETURN", 1000.0)
    commit_together(line, writer, 5)
    monkeypatch.setattr(committer, "_GATHER", 1000.0)
    submit(line, "q", 5)[-1].result(10)
    assert writer.groups[1:] == [[f"p{i}" for i in range(5)], [f"q{i}" for i in range(5)]]


@pytest.fixture
def held(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> tuple[BlockingWriter, list[PendingAppend]]:
    """Block the commit of five appends, so that the next five callers count as returning clients."""
    monkeypatch.setattr(committer, "_RETURN", 1000.0)
    commit_together(line, writer, 5)
    monkeypatch.setattr(committer, "_GATHER", 1000.0)
    return hold_group(line, writer, 5)


def test_a_late_append_joins_the_next_group(
    line: Committer, writer: ScriptedWriter, held: tuple[BlockingWriter, list[PendingAppend]]
) -> None:
    gate, punctual = held
    submit(line, "late", 7)
    gate.opened.set()
    punctual[-1].result(10)
    submit(line, "r", 5)[-1].result(10)
    assert [len(group) for group in writer.groups] == [1, 5, 5, 12]


def test_a_departed_appender_delays_one_group(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_RETURN", 1000.0)
    monkeypatch.setattr(committer, "_GATHER", 0.2)  # five appends form one group, regardless of the time between them
    commit_together(line, writer, 7)
    gate, punctual = hold_group(line, writer, 5)  # the other two callers do not append
    monkeypatch.setattr(committer, "_GATHER", 1000.0)
    gate.opened.set()
    punctual[-1].result(10)
    submit(line, "r", 5)[-1].result(10)
    assert [len(group) for group in writer.groups] == [1, 7, 5, 5]


def test_the_committer_does_not_wait_for_reconciles(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_RETURN", 1000.0)
    monkeypatch.setattr(committer, "_GATHER", 1000.0)
    gate, _ = hold_group(line, writer, 1)
    submit(line, "p", 3)
    appends = [reconciled(f"r{number}") for number in range(5)]
    for append in appends:
        line.commit(append)
    gate.opened.set()
    appends[-1].result(10)
    line.flush()
    line.commit(pending("alone"))
    assert [len(group) for group in writer.groups] == [1, 8, 1]
    assert writer.threads[-1] == threading.get_ident()


def test_reconciles_that_missed_a_group_do_not_enlarge_it(
    line: Committer, writer: ScriptedWriter, held: tuple[BlockingWriter, list[PendingAppend]]
) -> None:
    gate, punctual = held
    late = reconciled("late")
    line.commit(late)
    gate.opened.set()
    punctual[-1].result(10)
    submit(line, "r", 4)
    late.result(10)
    line.commit(pending("back"))  # the committer waits for the other three callers
    submit(line, "s", 3)[-1].result(10)
    assert [len(group) for group in writer.groups] == [1, 5, 5, 5, 4]


def test_the_size_of_a_group_is_bounded(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "GROUP_EVENTS", 4)
    gate, _ = hold_group(line, writer, 1)
    rest = submit(line, "p", 6)
    gate.opened.set()
    rest[-1].result(10)
    assert [len(group) for group in writer.groups] == [1, 4, 2]


def test_a_refused_append_does_not_affect_other_appends(line: Committer, writer: ScriptedWriter) -> None:
    writer.refused = {"b"}
    gate, _ = hold_group(line, writer, 1)
    a, b, c = (pending(name) for name in "abc")
    for append in (a, b, c):
        line.submit(append)
    gate.opened.set()
    assert [a.result(10)[0].revision, c.result(10)[0].revision] == [12, 13]
    with pytest.raises(AlreadyExists):
        b.result(10)


def test_a_failing_database_is_retried(line: Committer, writer: ScriptedWriter) -> None:
    writer.script = [LogUnavailable("away"), LogUnavailable("away")]
    append = pending("a")
    line.submit(append)
    assert append.result(10)[0].revision == 11
    assert writer.sinces == [None, None, None]


def test_an_append_is_searched_after_an_unknown_outcome(line: Committer, writer: ScriptedWriter) -> None:
    writer.script = [OutcomeUnknown(), LogUnavailable("away")]
    append = pending("a")
    line.commit(append)
    assert append.result(10)[0].revision == 11
    assert writer.sinces == [None, 10, 10]
    again = pending("b")
    line.commit(again)
    assert writer.sinces[-1] is None


@pytest.mark.parametrize(
    ("failures", "raised"),
    [
        ([LogUnavailable("away")] * 50, LogUnavailable),
        ([OutcomeUnknown()] + [LogUnavailable("away")] * 50, OutcomeUnknown),
    ],
    ids=["nothing was ever written", "the first try may have been"],
)
def test_retries_end_at_the_deadline(
    writer: ScriptedWriter, failures: list[BaseException], raised: type[BaseException]
) -> None:
    writer.script = list(failures)
    line = Committer(writer, clock=SystemClock(), head=10, patience=0.05)
    append = pending("a")
    line.commit(append)
    with pytest.raises(raised):
        append.result(10)
    line.close()


@pytest.mark.parametrize("failure", [LogCorrupt(), ZeroDivisionError()], ids=["final", "a bug"])
def test_a_permanent_failure_affects_only_its_group(
    line: Committer, writer: ScriptedWriter, failure: Exception
) -> None:
    writer.script = [failure]
    append = pending("a")
    line.submit(append)
    with pytest.raises(type(failure)):
        append.result(10)
    again = pending("b")
    line.submit(again)
    assert again.result(10)[0].revision == 11


def test_appends_above_the_queue_limit_are_refused(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "MAX_WAITING", 2)
    gate, _ = hold_group(line, writer, 1)
    submit(line, "p", 2)
    for enqueue in (line.submit, line.commit):
        with pytest.raises(TooManyRequests):
            enqueue(pending("c"))
    gate.opened.set()


def test_observers_are_notified_before_the_appender_and_can_fail(line: Committer) -> None:
    heard: list[str] = []

    def fail(events: Sequence[Event]) -> None:
        heard.append("observer")
        raise RuntimeError("an observer's bug")

    line.observe(fail)
    append = pending("a")
    append.add_done_callback(lambda done: heard.append("appender"))
    line.submit(append)
    assert append.result(10)[0].revision == 11
    line.flush()
    assert heard == ["observer", "appender"]


def test_a_failing_callback_does_not_affect_others(line: Committer) -> None:
    called: list[int] = []
    append = pending("a")
    append.add_done_callback(lambda done: called.append(1))
    append.add_done_callback(lambda done: called.append(1 // 0))
    line.submit(append)
    append.result(10)
    line.flush()
    assert called == [1]


def finish_and_wait(line: Committer, writer: ScriptedWriter) -> None:
    """Submit an outcome that waits for an append, and check that the outcome is not committed alone."""
    went_alone = threading.Event()
    writer.before = went_alone.set
    line.finish(7, Outcome(5, "ok"))
    assert not went_alone.wait(0.1)


@pytest.mark.parametrize("enqueue", [Committer.submit, Committer.commit])
def test_outcomes_are_written_with_the_next_append(
    enqueue: Callable[[Committer, PendingAppend], None],
    line: Committer,
    writer: ScriptedWriter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer, "_LINGER", 1000.0)
    finish_and_wait(line, writer)
    append = pending("a")
    enqueue(line, append)
    append.result(10)
    assert (writer.outcomes, writer.groups) == ([(7, Outcome(5, "ok"))], [["a"]])


@pytest.mark.parametrize("end", [Committer.flush, Committer.close])
def test_awaited_outcomes_do_not_wait_for_an_append(
    end: Callable[[Committer], None], line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_LINGER", 1000.0)
    finish_and_wait(line, writer)
    end(line)
    assert (writer.outcomes, writer.groups) == ([(7, Outcome(5, "ok"))], [[]])


def test_outcomes_are_written_alone_without_an_append(
    line: Committer, writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_LINGER", 0.01)
    came = threading.Event()
    writer.before = came.set
    line.finish(7, Outcome(5, "ok"))
    assert came.wait(10)


def test_close_commits_waiting_appends_and_refuses_later_ones(writer: ScriptedWriter) -> None:
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    gate = BlockingWriter(writer)
    appends = [pending("a"), pending("b")]
    for append in appends:
        line.submit(append)
    assert gate.entered.wait(10)
    gate.opened.set()
    line.close()
    assert [append.result(0)[0].revision for append in appends] == [11, 12]
    for enqueue in (line.submit, line.commit):
        with pytest.raises(LogClosed):
            enqueue(pending("c"))
    with pytest.raises(LogClosed):
        line.finish(1, Outcome(1, "ok"))


def test_an_idle_committer_runs_maintenance(writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committer, "_IDLE", 0.01)
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    assert writer.idled.wait(10)
    for enqueue in (line.submit, line.commit):
        writer.idled.clear()
        append = pending("a")
        enqueue(append)
        append.result(10)
        assert writer.idled.wait(10)
    line.close()


def test_failing_maintenance_does_not_stop_the_committer(
    writer: ScriptedWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "_IDLE", 0.01)
    writer.problem = LogUnavailable("the disk is full")
    line = Committer(writer, clock=SystemClock(), head=10, patience=5.0)
    for _ in range(2):
        assert writer.idled.wait(10)
        writer.idled.clear()
        append = pending("a")
        line.submit(append)  # the thread must commit this; without the thread, no caller would
        assert append.result(10)
    line.close()


def test_an_append_past_its_timeout_is_still_in_progress(line: Committer, writer: ScriptedWriter) -> None:
    gate = BlockingWriter(writer)
    append = pending("a")
    line.submit(append)
    assert gate.entered.wait(10)
    with pytest.raises(TimeoutError):
        append.result(0)
    gate.opened.set()
    assert append.result(10)[0].revision == 11
