"""Tests of the controllers that run only if their feature gates are on and their APIs are served."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from ctrlmgr import App
from ctrlmgr.controllers import device_taint_eviction, job, registry, ttl
from ctrlmgr.controllers import horizontal_pod_autoscaler as autoscaler
from ctrlmgr.controllers.gated_controllers import with_gates_on, with_served_kinds
from ctrlmgr.engine.features import gates
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.testing import Harness

EVICTION = device_taint_eviction.DESCRIPTOR


@pytest.mark.parametrize("is_on", [False, True])
def test_a_controller_runs_only_if_its_gate_is_on(monkeypatch: pytest.MonkeyPatch, is_on: bool) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRADeviceTaints", is_on)
    found = [*with_gates_on([EVICTION, ttl.DESCRIPTOR])]
    assert found == [EVICTION, ttl.DESCRIPTOR][not is_on :]


def test_a_controller_whose_apis_are_disabled_is_reported_and_does_not_run() -> None:
    kinds = builtin_kinds(disabled=["batch/v1"])
    with capture_logs() as lines:
        found = [*with_served_kinds([job.DESCRIPTOR, ttl.DESCRIPTOR], kinds)]
    assert found == [ttl.DESCRIPTOR]
    assert [(line["controller"], line["missing_apis"]) for line in lines] == [("job-controller", ["jobs.batch"])]


def test_each_controller_runs_with_the_default_apis() -> None:
    kinds = builtin_kinds()
    assert [*with_served_kinds(registry.ALL, kinds)] == registry.ALL


def test_a_controller_runs_with_the_newest_version_of_its_api_disabled() -> None:
    kinds = builtin_kinds(disabled=["autoscaling/v2"])
    assert [*with_served_kinds([autoscaler.DESCRIPTOR], kinds)] == [autoscaler.DESCRIPTOR]


@pytest.mark.parametrize("is_on", [False, True])
def test_the_harness_runs_a_controller_only_if_its_gate_is_on(monkeypatch: pytest.MonkeyPatch, is_on: bool) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRADeviceTaints", is_on)
    built: list[str] = []
    monkeypatch.setattr(type(EVICTION), "build", lambda self, context, options: built.append(self.name))
    with pytest.raises(AttributeError):  # The harness starts what was built, which is None here.
        Harness(App("none"), controllers=[EVICTION.name, ttl.DESCRIPTOR.name])
    assert (EVICTION.name in built, ttl.DESCRIPTOR.name in built) == (is_on, True)
