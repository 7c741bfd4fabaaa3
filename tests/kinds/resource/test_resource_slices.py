"""Tests of ResourceSlices: defaults, limits on counts, and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.features import gates
from tests.kinds.stage import NOW, staged


def slices(*devices: dict[str, Any], driver: str = "d.x") -> dict[str, Any]:
    pool = {"name": "p", "resourceSliceCount": 1}
    return {"spec": {"driver": driver, "pool": pool, "allNodes": True, "devices": [*devices]}}


STAGE = staged("resource.k8s.io/v1/resourceslices")


def test_a_taint_gets_the_time_of_its_addition() -> None:
    known = {"key": "b", "effect": "NoExecute", "timeAdded": "2025-01-01T00:00:00Z"}
    slice_ = STAGE.create(slices({"name": "a", "taints": [{"key": "a", "effect": "NoSchedule"}, known]}))
    taints = slice_["spec"]["devices"][0]["taints"]
    assert [each["timeAdded"] for each in taints] == [NOW, known["timeAdded"]]
    taints[0].pop("timeAdded")
    changed = STAGE.update(slice_, {"spec": {"devices": [{"name": "a", "taints": taints}]}})
    assert changed["spec"]["devices"][0]["taints"][0]["timeAdded"] == NOW


def test_existing_taints_keep_their_time() -> None:
    slice_ = STAGE.create(slices({"name": "a"}))
    slice_["spec"]["devices"][0]["taints"] = [{"key": "a!", "effect": "x", "timeAdded": NOW}]
    assert STAGE.update_refusal(slice_, {"metadata": {"labels": {"a": "b"}}}) == []


def test_a_node_allocatable_resource_mapping_is_defaulted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "DRANodeAllocatableResources", True)
    found = STAGE.create(slices({"name": "a", "nodeAllocatableResourceMappings": {"cpu": {}}}))
    assert found["spec"]["devices"][0]["nodeAllocatableResourceMappings"]["cpu"] == {"allocationMultiplier": "1"}


def test_a_driver_name_with_capitals_causes_a_warning() -> None:
    STAGE.create(slices(driver="D.x"))
    assert STAGE.warnings == ['spec.driver: driver names should be lowercase; "D.x" contains uppercase characters']


@pytest.mark.parametrize("more", [{}, {"consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "1"}}}]}])
def test_devices_that_consume_counters_have_a_lower_limit(more: dict[str, Any]) -> None:
    devices = [{"name": f"d{at}", **more} for at in range(129)]
    message = f"Too many: 129: must have at most {64 if more else 128} items"
    assert STAGE.refusal(slices(*devices)) == [("spec.devices", message)]


def test_counters_and_devices_exclude_each_other_even_if_empty() -> None:
    sent = slices()
    sent["spec"]["sharedCounters"] = [{"name": "c", "counters": {"m": {"value": "1"}}}]
    ctx, slice_ = STAGE.context(), STAGE.read(sent)
    assert STAGE.strategy.validate(ctx, slice_) == []
    ctx.sent = lambda: sent
    (error,) = STAGE.strategy.validate(ctx, slice_)
    assert error.message == 'spec: Invalid value: "": only one of `sharedCounters` or `devices` is allowed'
