"""Tests of evictions because of DeviceTaintRules, and of the condition in the rules' status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.scheduling.structured.tainting_rules import DEVICE_TAINT_RULES
from tests.controllers.device_taint_eviction.test_device_taint_eviction import (
    CANCELLED,
    DRIVER,
    MARKED,
    TaintedDeviceCluster,
    bears,
)

RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
MINE = {"driver": DRIVER, "pool": "p", "device": "d0"}


@pytest.fixture(autouse=True)
def gate() -> Iterator[None]:
    switch({"DRADeviceTaintRules": True})
    yield
    switch({})


class RuleScene(TaintedDeviceCluster):
    """A pod with an allocated device, in a cluster that serves DeviceTaintRules."""

    def kinds(self) -> Kinds:
        return builtin_kinds(served=["resource.k8s.io/v1beta2"])

    def rule(self, selector: dict[str, Any] | None, effect: str = "NoExecute") -> None:
        spec: dict[str, Any] = {"taint": {"key": "k", "effect": effect}}
        if selector is not None:
            spec["deviceSelector"] = selector
        self.stage.create(RULES, {"metadata": {"name": "r"}, "spec": spec})
        self.stage.work()

    def condition(self) -> tuple[str, str, str]:
        found = self.stage.stored(DEVICE_TAINT_RULES, "r")
        assert found is not None
        fields = found.to_dict()
        (condition,) = fields["status"]["conditions"]
        assert condition["type"] == "EvictionInProgress"
        assert condition["observedGeneration"] == fields["metadata"]["generation"]
        return condition["status"], condition["reason"], condition["message"]


@pytest.mark.parametrize(
    ("selector", "is_evicted"),
    [
        ({}, True),
        (MINE, True),
        ({"device": "d0"}, True),
        ({"device": "d1"}, False),
        ({"pool": "q"}, False),
        ({"driver": "other.example.com"}, False),
        (None, False),
    ],
)
def test_the_selector_decides_which_pods_are_evicted(selector: dict[str, Any] | None, is_evicted: bool) -> None:
    cluster = RuleScene()
    cluster.rule(selector)
    assert cluster.going() == (["web"] if is_evicted else [])
    assert cluster.messages() == ([MARKED] if is_evicted else [])


def test_a_rule_has_no_effect_without_the_gate() -> None:
    cluster = RuleScene()
    switch({})
    cluster.stage.start()
    cluster.rule(MINE)
    assert cluster.going() == []
    found = cluster.stage.stored(DEVICE_TAINT_RULES, "r")
    assert found is not None
    assert not found.to_dict().get("status")


def test_the_status_tells_the_progress_of_the_eviction() -> None:
    cluster = RuleScene(bears(tolerationSeconds=30))
    cluster.rule(MINE)
    assert cluster.condition() == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    cluster.stage.pass_by(31)
    assert cluster.going() == ["web"]
    cluster.stage.pass_by(11)
    assert cluster.condition() == ("False", "Completed", "1 pod evicted since starting the controller.")


def test_a_tolerated_rule_has_not_started() -> None:
    cluster = RuleScene(bears())
    cluster.rule(MINE)
    assert cluster.condition() == ("False", "NotStarted", "")


def test_a_rule_without_effect_tells_what_it_would_do() -> None:
    cluster = RuleScene()
    cluster.rule({"pool": "p"}, "None")
    message = (
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the "
        "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an "
        "update."
    )
    assert cluster.condition() == ("False", "NoEffect", message)
    assert cluster.going() == []


def test_a_changed_effect_cancels_the_eviction() -> None:
    cluster = RuleScene(bears(tolerationSeconds=30))
    cluster.rule(MINE)
    cluster.stage.patch(f"{RULES}/r", {"spec": {"taint": {"effect": "NoSchedule"}}})
    cluster.stage.work()
    assert cluster.messages() == [CANCELLED]
    assert cluster.condition() == ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")


def test_a_deleted_rule_cancels_the_eviction() -> None:
    cluster = RuleScene(bears(tolerationSeconds=30))
    cluster.rule(MINE)
    cluster.stage.delete(f"{RULES}/r")
    cluster.stage.pass_by(60)
    assert cluster.going() == []
    assert cluster.messages() == [CANCELLED]


def test_the_status_is_written_at_most_every_ten_seconds() -> None:
    cluster = RuleScene(bears(tolerationSeconds=100))
    cluster.rule(MINE)
    cluster.pod("late", bears(tolerationSeconds=100))
    cluster.stage.pass_by(5)
    assert cluster.condition()[2] == "1 pod needs to be evicted in 1 namespace."
    cluster.stage.pass_by(6)
    assert cluster.condition()[2] == "2 pods need to be evicted in 1 namespace."
