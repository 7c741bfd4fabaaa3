"""Tests of the leader election in one process, with real threads and a fake clock: which runnables
run at which time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES
from ctrlmgr.errors import Fenced, LogUnavailable
from ctrlmgr.leaderelection import Election
from ctrlmgr.leaderelection.lease_record import held
from tests.background import DEADLINE, background
from tests.leaderelection.candidates import Candidate, SharedClockAndLog
from tests.leaderelection.simulation import Sessions


class EventRecorder:
    """A recorder of events that tests can wait for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def add(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def wait_for(self, line: str, count: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.lines.count(line) >= count, DEADLINE), self.lines


class Worker:
    """A controller that runs until it is stopped and `may_end` is set."""

    def __init__(self, name: str, diary: EventRecorder) -> None:
        self.name = name
        self.diary = diary
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: BaseException | None = None
        self.fails = threading.Event()

    def stand_by(self) -> None:
        self.diary.add(f"{self.name} stands by")

    def resume(self) -> None:
        self.diary.add(f"{self.name} resumes")

    def run(self, stop: threading.Event) -> None:
        self.diary.add(f"{self.name} works")
        if self.error is not None:
            self.fails.wait(DEADLINE)
            error, self.error = self.error, None
            raise error
        stop.wait()
        self.diary.add(f"{self.name} is to stop")
        self.may_end.wait(DEADLINE)
        self.diary.add(f"{self.name} ends")


class RunningCandidate:
    """A candidate whose election and informers run on threads."""

    def __init__(
        self,
        shared: SharedClockAndLog,
        identity: str,
        error: BaseException | None = None,
        *,
        sessions: Sessions | None = None,
    ) -> None:
        """Let the worker of the candidate fail with `error` in the first term, when the test requests it."""
        self.diary = EventRecorder()
        self.candidate = Candidate(shared, identity, sessions=sessions)
        self.worker = Worker(identity, self.diary)
        self.worker.error = error
        self.election = Election(
            self.candidate.elector,
            self.candidate.informers.informer(LEASES),
            [self.worker],
            [self.worker],
            clock=shared.clock,
            announce=lambda lease, message: self.diary.add(message),
            warn=lambda lease, message: self.diary.add(message),
        )
        self.stop = threading.Event()
        self._following = threading.Event()
        shared.log.observe(lambda events: self._following.set())
        self.done = background(self._run)

    def _run(self) -> None:
        self.candidate.hear()
        threads.start("informers", self._follow)
        self.election.run(self.stop)

    def _follow(self) -> None:
        while not self.stop.is_set():
            self._following.wait(0.01)
            self._following.clear()
            self.candidate.hear()

    def end(self) -> None:
        self.stop.set()
        self.done.result(DEADLINE)


def until(claim: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(DEADLINE / 0.01)):
        if claim():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come true in time")


@pytest.fixture
def shared() -> SharedClockAndLog:
    return SharedClockAndLog()


def test_work_starts_after_the_caches_reach_the_takeover_and_the_lease_is_released_after_its_end(
    shared: SharedClockAndLog,
) -> None:
    running = RunningCandidate(shared, "a")
    running.diary.wait_for("a works")
    assert running.election.problem() is None
    running.worker.may_end.clear()
    running.stop.set()
    running.diary.wait_for("a is to stop")
    assert held(shared.lease).holder == "a"
    running.worker.may_end.set()
    running.done.result(DEADLINE)
    assert held(shared.lease).holder == ""
    stood, *began = running.diary.lines[:3]
    assert stood == "a stands by"
    assert sorted(began) == ["a became leader", "a resumes"]
    assert running.diary.lines[3:] == ["a works", "a is to stop", "a ends", "a stopped leading"]


def test_one_process_works_at_a_time_and_the_next_starts_after_the_release(shared: SharedClockAndLog) -> None:
    first = RunningCandidate(shared, "a")
    first.diary.wait_for("a works")
    second = RunningCandidate(shared, "b")
    until(lambda: second.election.problem() is None)
    assert not second.election.is_leading()
    first.end()
    second.diary.wait_for("b works")  # the clock did not advance, so no component has waited
    assert shared.clock.monotonic() == 0
    second.end()


def test_an_expired_term_stops_the_work_and_the_process_becomes_a_candidate(
    shared: SharedClockAndLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningCandidate(shared, "a")
    running.diary.wait_for("a works")
    running.worker.may_end.clear()

    def away(*args: object, **kwargs: object) -> None:
        raise LogUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(shared.log, "submit", away)
        for _ in range(5):
            shared.clock.wait_for_waiters(1)  # until the next renewal
            shared.clock.step(2)
        running.diary.wait_for("a is to stop")
    assert not running.election.is_leading()
    running.worker.may_end.set()
    running.diary.wait_for("a works", 2)
    assert held(shared.lease).term == 2
    assert running.diary.lines.count("a resumes") == 2
    assert running.diary.lines.count("a stands by") == 2
    running.end()


def test_a_fenced_write_ends_the_term_but_not_the_process(shared: SharedClockAndLog) -> None:
    running = RunningCandidate(shared, "a", Fenced("term 1 is over"))
    running.worker.fails.set()
    running.diary.wait_for("a works", 2)
    running.end()
    assert held(shared.lease)[:2] == ("", 2)


def test_other_failures_in_a_term_end_the_process_without_a_release(shared: SharedClockAndLog) -> None:
    running = RunningCandidate(shared, "a", KeyError("a bug"))
    running.worker.fails.set()
    with pytest.raises(KeyError):
        running.done.result(DEADLINE)
    assert held(shared.lease).holder == "a"


def test_a_process_stopped_before_leading_never_leads(shared: SharedClockAndLog) -> None:
    first = RunningCandidate(shared, "a")
    first.diary.wait_for("a works")
    second = RunningCandidate(shared, "b")
    until(lambda: second.election.problem() is None)
    second.end()
    first.end()
    assert second.diary.lines == ["b stands by"]
    assert held(shared.lease).term == 1


def test_a_foreign_holder_fails_readiness_and_is_logged_once(
    shared: SharedClockAndLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = RunningCandidate(shared, "a")
    running.diary.wait_for("a works")
    monkeypatch.setattr(running.candidate.elector, "foreign_holder", lambda: "mallory")
    told = "mallory holds the lease and is not a process of this control plane"
    for _ in range(3):
        shared.write(shared.lease, shared.lease.revision)
        running.diary.wait_for(told)
    assert running.election.problem() == "the lease is held by mallory, which is not a process of this control plane"
    assert running.diary.lines.count(told) == 1
    monkeypatch.undo()
    running.end()


def test_a_holder_that_is_no_control_plane_process_is_reported_and_fails_the_check(shared: SharedClockAndLog) -> None:
    sessions = Sessions()
    leader = RunningCandidate(shared, "a", sessions=sessions)
    leader.diary.wait_for("a works")
    candidate = RunningCandidate(shared, "b", sessions=sessions)
    until(lambda: candidate.election.problem() is None)
    fields = shared.lease.to_dict()
    fields["spec"]["holderIdentity"] = "mallory"
    shared.write(Object.from_dict(fields), shared.lease.revision)
    words = "mallory holds the lease and is not a process of this control plane"
    candidate.diary.wait_for(words)
    assert candidate.election.problem() == "the lease is held by mallory, which is not a process of this control plane"
    assert candidate.diary.lines.count(words) == 1
    candidate.end()
    leader.end()
