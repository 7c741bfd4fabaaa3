"""The operator's process is killed, started again, and stopped."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock, pause
from ctrlmgr.trial.running.operator_process import OperatorProcess
from tests.background import DEADLINE

CLOCK = SystemClock()


def until(holds: Callable[[], bool]) -> None:
    deadline = CLOCK.monotonic() + DEADLINE
    while not holds():
        assert CLOCK.monotonic() < deadline
        pause(CLOCK, 0.02)


class Operator:
    """An operator that runs a shell command, and what the trial sees of it."""

    def __init__(self, folder: Path, command: str) -> None:
        self.deaths = 0
        self.file = folder / "operator.log"
        self.process = OperatorProcess(command, {"NAME": "web"}, self.file, self._died, lambda: 42, clock=CLOCK)

    def _died(self) -> None:
        self.deaths += 1

    @property
    def output(self) -> str:
        return self.file.read_text()


@pytest.fixture
def operators(tmp_path: Path) -> Iterator[Callable[[str], Operator]]:
    made: list[Operator] = []

    def make(command: str) -> Operator:
        made.append(Operator(tmp_path, command))
        made[0].process.start()
        return made[0]

    yield make
    made[0].process.stop()


def test_a_killed_operator_starts_again_after_its_connections_were_cut(operators: Callable[[str], Operator]) -> None:
    operator = operators("echo started $NAME; sleep 60 & wait")
    until(lambda: operator.output == "started web\n")
    operator.process.crash()
    assert operator.deaths == 1
    until(lambda: operator.output == "started web\nstarted web\n")
    (end,) = operator.process.exits
    assert (end.code, end.by_trial, end.revision) == (-signal.SIGKILL, True, 42)


def test_a_stopped_operator_does_not_start_again(operators: Callable[[str], Operator]) -> None:
    operator = operators("echo started; exec sleep 60")
    until(lambda: operator.output == "started\n")
    operator.process.stop()
    assert [(end.code, end.by_trial) for end in operator.process.exits] == [(-signal.SIGTERM, True)]
    assert operator.output == "started\n"
    operator.process.stop()


def test_an_operator_that_ignores_the_request_to_end_is_killed(
    operators: Callable[[str], Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctrlmgr.trial.running.operator_process._GRACE", 0.1)
    operator = operators("trap '' TERM; echo started; while true; do sleep 0.1; done")
    until(lambda: operator.output == "started\n")
    operator.process.stop()
    assert operator.process.exits[0].code == -signal.SIGKILL


def test_an_operator_that_ends_by_itself_is_started_some_times(
    operators: Callable[[str], Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctrlmgr.trial.running.operator_process._FIRST_DELAY", 0.01)
    operator = operators("echo started; exit 3")
    until(lambda: operator.process.has_given_up)
    assert operator.output == "started\n" * 5
    assert {(end.code, end.by_trial) for end in operator.process.exits} == {(3, False)}
    operator.process.crash()  # nothing runs
