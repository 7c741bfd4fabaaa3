"""What `serve` runs, put together: a whole process, on a log in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.memory import MemoryEventLog
from ctrlmgr.manager import Precedence, RequestDemand
from ctrlmgr.serve import Application
from ctrlmgr.settings import Settings
from ctrlmgr.settings.sections import LeaderElectionSettings
from ctrlmgr.settings.server import ServerSettings
from tests.background import DEADLINE, background


class Heard:
    """Threads that have called something."""

    def __init__(self, awaited: set[str]) -> None:
        self._awaited = awaited
        self._missing = set(awaited)
        self.all_have = threading.Event()

    def hear(self) -> None:
        self._missing.discard(threading.current_thread().name)
        if not self._missing:
            self.all_have.set()


def test_controllers_give_way_to_the_thread_that_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering, reconciling = Heard({"http server"}), Heard({"endpoints-controller-0", "deployment-controller-0"})
    run = Precedence.run

    def heard(precedence: Precedence, reconcile: Callable[[], bool], waiting: Callable[[], int]) -> bool:
        reconciling.hear()
        return run(precedence, reconcile, waiting)

    monkeypatch.setattr(Precedence, "run", heard)
    monkeypatch.setattr(RequestDemand, "answer_here", lambda demand: answering.hear())
    settings = Settings(
        data_dir=str(tmp_path),
        server=ServerSettings(listen="127.0.0.1:0"),
        leader_election=LeaderElectionSettings(enabled=False),
    )
    clock, random = SystemClock(), Random(1)
    application = Application(settings, MemoryEventLog(clock=clock, random=random), clock=clock, random=random)
    stop = threading.Event()
    running = background(lambda: application.run(stop))
    assert answering.all_have.wait(DEADLINE)
    assert reconciling.all_have.wait(DEADLINE)
    stop.set()
    running.result(DEADLINE)
