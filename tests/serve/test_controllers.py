"""Tests of how `ctrlmgr serve` starts controllers, optionally one after the other."""

from __future__ import annotations

import itertools
import threading
from random import Random
from typing import Any, cast

import pytest

from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions
from ctrlmgr.engine.features import gates
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import Fenced
from ctrlmgr.manager import Controller
from ctrlmgr.serve.controllers import Parts, build, watched
from tests.background import DEADLINE, background
from tests.manager.stage import ScriptedReconciler, Stage


def test_each_controller_starts_an_interval_or_slightly_more_after_the_previous_one() -> None:
    controllers = [Stage(ScriptedReconciler(), name=f"c{number}").controller for number in range(4)]
    after = [each._start_after for each in watched(controllers, 10.0, Random(1))]
    gaps = [later - earlier for earlier, later in itertools.pairwise(after)]
    assert after[0] == 0
    assert all(10 <= gap < 20 for gap in gaps)
    assert len(set(gaps)) == 3


def test_without_an_interval_all_controllers_start_at_once() -> None:
    controllers = [Stage(ScriptedReconciler(), name=f"c{number}").controller for number in range(3)]
    assert [each._start_after for each in watched(controllers, 0.0, Random(1))] == [0, 0, 0]


def test_a_controller_stopped_before_its_start_never_runs() -> None:
    class UnstartedController:
        name = "unwanted"

        def run(self, stop: threading.Event) -> None:
            raise AssertionError

    *_, last = watched(
        [cast(Controller, UnstartedController()), cast(Controller, UnstartedController())], 3600.0, Random(1)
    )
    stop = threading.Event()
    running = background(lambda: last.run(stop))
    stop.set()
    running.result(DEADLINE)
    assert last.problem() == "unwanted is not running"


def test_health_distinguishes_a_failed_controller_from_an_ended_term() -> None:
    class FailingController:
        name = "failing"
        error: Exception = Fenced("term 1 is over")

        def run(self, stop: threading.Event) -> None:
            raise self.error

    controller = FailingController()
    [each] = watched([cast(Controller, controller)], 0.0, Random(1))
    with pytest.raises(Fenced):
        each.run(threading.Event())
    assert each.failure() is None
    controller.error = KeyError("a bug")
    with pytest.raises(KeyError):
        each.run(threading.Event())
    assert each.failure() == "failing has failed"


@pytest.mark.parametrize("is_on", [True, False])
def test_a_controller_runs_only_with_its_feature_gates(is_on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRADeviceTaints", is_on)
    made = cast(Controller, object())

    class GatedDescriptor(ControllerDescriptor[NoOptions]):
        def build(self, context: Any, options: NoOptions) -> Controller:
            return made

    class Settings:
        def of(self, options: type[NoOptions]) -> NoOptions:
            return options()

    class Engine:
        kinds: tuple[Kind, ...] = ()

    class Dependencies:
        settings = Settings()
        engine = Engine()

    gated = GatedDescriptor(name="g", does="", builder="", options=NoOptions, feature_gates=("DRADeviceTaints",))
    assert [*build([gated], cast(Parts, Dependencies()))] == ([made] if is_on else [])
