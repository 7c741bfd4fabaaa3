"""Tests of Manager: in which order runnables start and stop, and what happens if they fail."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from structlog.testing import capture_logs

from ctrlmgr.manager import HasSynced, Manager, Phase
from ctrlmgr.testing import FakeClock
from tests.background import DEADLINE, background

NAMES = {
    Phase.LOG: "log",
    Phase.CACHES: "caches",
    Phase.SERVERS: "servers",
    Phase.MEMBERS: "members",
    Phase.LEADER: "leader",
}


class EventRecorder:
    """A recorder of events in order; tests can wait for events."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        with self.changed:
            self.lines.append(line)
            self.changed.notify_all()

    def wait_for(self, line: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: line in self.lines, DEADLINE), self.lines


class SimpleRunnable:
    """A runnable that runs until it is stopped, and then raises `error`, if given."""

    def __init__(self, name: str, diary: EventRecorder, *, error: Exception | None = None) -> None:
        self.name = name
        self._diary = diary
        self._error = error

    def run(self, stop: threading.Event) -> None:
        self._diary.write(f"{self.name} runs")
        stop.wait(DEADLINE)
        self._diary.write(f"{self.name} ends")
        if self._error is not None:
            raise self._error


class SyncingRunnable(SimpleRunnable):
    """A runnable that becomes ready when the test allows it."""

    synced = False

    def has_synced(self) -> bool:
        return self.synced


class FailingRunnable(SimpleRunnable):
    """A runnable that fails when the test requests it."""

    def __init__(self, name: str, diary: EventRecorder, error: Exception) -> None:
        super().__init__(name, diary)
        self.now = threading.Event()
        self._error = error

    def run(self, stop: threading.Event) -> None:
        self._diary.write(f"{self.name} runs")
        self.now.wait(DEADLINE)
        raise self._error or AssertionError


class UnstoppableRunnable(SimpleRunnable):
    """A runnable that continues to run after its stop is requested."""

    def __init__(self, name: str, diary: EventRecorder) -> None:
        super().__init__(name, diary)
        self.release = threading.Event()

    def run(self, stop: threading.Event) -> None:
        self._diary.write(f"{self.name} runs")
        self.release.wait(DEADLINE)


class RunningManager:
    """A manager that runs on a separate thread."""

    def __init__(self, manager: Manager) -> None:
        self.stop = threading.Event()
        self.done: Future[None] = background(lambda: manager.run(self.stop))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def diary() -> EventRecorder:
    return EventRecorder()


def test_phases_start_in_order_and_stop_in_reverse_order(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    for phase in reversed(Phase):
        manager.add(SimpleRunnable(NAMES[phase], diary), phase)
    running = RunningManager(manager)
    diary.wait_for("leader runs")
    for name in NAMES.values():
        diary.wait_for(f"{name} runs")
    running.stop.set()
    running.done.result(DEADLINE)
    assert diary.lines[len(NAMES) :] == [f"{name} ends" for name in reversed(NAMES.values())]


def test_a_phase_starts_after_the_previous_one_has_synced(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    caches = SyncingRunnable("caches", diary)
    manager.add(caches, Phase.CACHES)
    manager.add(SimpleRunnable("leader", diary), Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("caches runs")
    for _ in range(3):
        clock.wait_for_waiters(1)
        clock.step(0.05)
    clock.wait_for_waiters(1)
    assert diary.lines == ["caches runs"]
    caches.synced = True
    clock.step(0.05)
    diary.wait_for("leader runs")
    running.stop.set()
    running.done.result(DEADLINE)


def test_stopping_while_a_phase_syncs_starts_no_later_phase(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    manager.add(SyncingRunnable("caches", diary), Phase.CACHES)
    manager.add(SimpleRunnable("leader", diary), Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("caches runs")
    clock.wait_for_waiters(1)
    running.stop.set()
    clock.step(0.05)
    running.done.result(DEADLINE)
    assert diary.lines == ["caches runs", "caches ends"]


def test_a_manager_stopped_before_it_runs_starts_nothing(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    manager.add(SimpleRunnable("log", diary), Phase.LOG)
    stop = threading.Event()
    stop.set()
    manager.run(stop)
    assert diary.lines == []


def test_an_error_stops_everything_and_is_raised(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    failing = FailingRunnable("leader", diary, ValueError("broken"))
    manager.add(SimpleRunnable("log", diary), Phase.LOG)
    manager.add(failing, Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("leader runs")
    failing.now.set()
    with pytest.raises(ValueError, match="broken"):
        running.done.result(DEADLINE)
    assert diary.lines[-1] == "log ends"
    assert running.stop.is_set()


def test_an_error_while_a_phase_syncs_ends_the_wait(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    failing = FailingRunnable("log", diary, ValueError("broken"))
    failing.now.set()
    manager.add(failing, Phase.CACHES)
    manager.add(SyncingRunnable("caches", diary), Phase.CACHES)
    running = RunningManager(manager)
    diary.wait_for("caches runs")
    while not running.done.done():
        clock.step(0.05)
    with pytest.raises(ValueError, match="broken"):
        running.done.result(DEADLINE)


def test_only_the_first_error_is_raised_and_the_others_are_logged(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    failing = FailingRunnable("leader", diary, ValueError("first"))
    manager.add(SimpleRunnable("log", diary, error=KeyError("second")), Phase.LOG)
    manager.add(failing, Phase.LEADER)
    with capture_logs() as logs:
        running = RunningManager(manager)
        diary.wait_for("leader runs")
        failing.now.set()
        with pytest.raises(ValueError, match="first"):
            running.done.result(DEADLINE)
    assert [entry["runnable"] for entry in logs if entry["event"] == "another runnable failed"] == ["log"]


def test_an_error_while_stopping_is_raised(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    manager.add(SimpleRunnable("log", diary, error=KeyError("unsaved")), Phase.LOG)
    running = RunningManager(manager)
    diary.wait_for("log runs")
    running.stop.set()
    with pytest.raises(KeyError, match="unsaved"):
        running.done.result(DEADLINE)


def test_a_runnable_that_returns_early_stops_no_others(clock: FakeClock, diary: EventRecorder) -> None:
    class ShortRunnable(SimpleRunnable):
        def run(self, stop: threading.Event) -> None:
            self._diary.write("short ends")

    manager = Manager(clock=clock)
    manager.add(ShortRunnable("short", diary), Phase.LOG)
    manager.add(SimpleRunnable("leader", diary), Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("short ends")
    diary.wait_for("leader runs")
    assert not running.stop.is_set()
    running.stop.set()
    running.done.result(DEADLINE)


def test_a_runnable_that_does_not_stop_is_named_and_the_others_are_stopped(
    clock: FakeClock, diary: EventRecorder
) -> None:
    manager = Manager(clock=clock, grace=5)
    deaf = UnstoppableRunnable("leader", diary)
    manager.add(SimpleRunnable("log", diary), Phase.LOG)
    manager.add(deaf, Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("leader runs")
    running.stop.set()
    clock.wait_for_waiters(1)
    assert "log ends" not in diary.lines
    clock.step(5)
    with pytest.raises(TimeoutError, match="did not stop within 5 s: leader"):
        running.done.result(DEADLINE)
    assert diary.lines[-1] == "log ends"
    deaf.release.set()


def test_runnables_that_do_not_stop_are_noted_on_the_original_error(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock, grace=5)
    failing, deaf = FailingRunnable("log", diary, ValueError("broken")), UnstoppableRunnable("leader", diary)
    manager.add(failing, Phase.LOG)
    manager.add(deaf, Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("leader runs")
    failing.now.set()
    clock.wait_for_waiters(1)
    clock.step(5)
    with pytest.raises(ValueError, match="broken") as raised:
        running.done.result(DEADLINE)
    assert raised.value.__notes__ == ["did not stop within 5 s: leader"]
    deaf.release.set()


def test_each_runnable_has_a_separate_stop_event(clock: FakeClock, diary: EventRecorder) -> None:
    class Impatient(SimpleRunnable):
        def run(self, stop: threading.Event) -> None:
            stop.set()
            self._diary.write("impatient ends")

    manager = Manager(clock=clock)
    manager.add(SimpleRunnable("patient", diary), Phase.LEADER)
    manager.add(Impatient("impatient", diary), Phase.LEADER)
    running = RunningManager(manager)
    diary.wait_for("patient runs")
    diary.wait_for("impatient ends")
    assert not running.done.done()
    assert "patient ends" not in diary.lines
    running.stop.set()
    running.done.result(DEADLINE)


def test_nothing_is_added_to_a_running_manager(clock: FakeClock, diary: EventRecorder) -> None:
    manager = Manager(clock=clock)
    stop = threading.Event()
    stop.set()
    manager.run(stop)
    with pytest.raises(RuntimeError, match="late was added to a running manager"):
        manager.add(SimpleRunnable("late", diary), Phase.LOG)


def test_only_runnables_with_has_synced_are_checked(diary: EventRecorder) -> None:
    assert isinstance(SyncingRunnable("caches", diary), HasSynced)
    assert not isinstance(SimpleRunnable("log", diary), HasSynced)
