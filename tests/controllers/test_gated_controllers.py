"""Tests of the controllers that run only if their feature gates are on."""

from __future__ import annotations

import pytest

from ctrlmgr import App
from ctrlmgr.controllers import device_taint_eviction, ttl
from ctrlmgr.controllers.gated_controllers import with_gates_on
from ctrlmgr.engine.features import gates
from ctrlmgr.testing import Harness

EVICTION = device_taint_eviction.DESCRIPTOR


@pytest.mark.parametrize("is_on", [False, True])
def test_a_controller_runs_only_if_its_gate_is_on(monkeypatch: pytest.MonkeyPatch, is_on: bool) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRADeviceTaints", is_on)
    found = [*with_gates_on([EVICTION, ttl.DESCRIPTOR])]
    assert found == [EVICTION, ttl.DESCRIPTOR][not is_on :]


@pytest.mark.parametrize("is_on", [False, True])
def test_the_harness_runs_a_controller_only_if_its_gate_is_on(monkeypatch: pytest.MonkeyPatch, is_on: bool) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRADeviceTaints", is_on)
    built: list[str] = []
    monkeypatch.setattr(type(EVICTION), "build", lambda self, context, options: built.append(self.name))
    with pytest.raises(AttributeError):  # The harness starts what was built, which is None here.
        Harness(App("none"), controllers=[EVICTION.name, ttl.DESCRIPTOR.name])
    assert (EVICTION.name in built, ttl.DESCRIPTOR.name in built) == (is_on, True)
