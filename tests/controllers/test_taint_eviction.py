from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.taint_eviction import Options
from ctrlmgr.controllers.taint_eviction.controller import build
from ctrlmgr.controllers.taint_eviction.decide import Decision, Plan, decide, shortest
from ctrlmgr.scheduling.taints import Taint, Toleration
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

A, B = Taint("a", "", "NoExecute"), Taint("b", "", "NoExecute")
SECOND = 1_000_000
NOW = 100 * SECOND


def bears(key: str, seconds: int | None = None) -> Toleration:
    return Toleration(key, "Exists", toleration_seconds=seconds)


@pytest.mark.parametrize(
    ("taints", "tolerations", "seconds"),
    [
        ([A], [bears("a")], None),
        ([A], [bears("a", 5)], 5),
        ([A], [bears("a", -5)], 0),
        ([A, B], [bears("a", 5), bears("b")], 5),
        ([A, B], [bears("a", 5), bears("b", 3)], 3),
        ([A], [bears("a", 60), bears("a", 2)], 60),
    ],
)
def test_tolerated_durations_of_taints(taints: list[Taint], tolerations: list[Toleration], seconds: int | None) -> None:
    assert shortest(taints, tolerations) == seconds


SOON = Plan("u", NOW - SECOND, NOW + SECOND)
DUE = Plan("u", NOW - SECOND, NOW)
DONE = Plan("u", NOW, NOW, done=True)


@pytest.mark.parametrize(
    ("taints", "tolerations", "plan", "expected"),
    [
        pytest.param([], [], None, Decision(None), id="nothing to bear"),
        pytest.param([], [], SOON, Decision(None, called_off=True), id="the taints have gone"),
        pytest.param([A], [], None, Decision(DONE, keep=True), id="not tolerated"),
        pytest.param([A], [], SOON, Decision(DONE, called_off=True, keep=True), id="tolerated no more"),
        pytest.param([A], [bears("a")], SOON, Decision(None, called_off=True), id="tolerated for ever now"),
        pytest.param([A], [bears("a", 9)], None, Decision(Plan("u", NOW, NOW + 9 * SECOND)), id="for a time"),
        pytest.param([A], [bears("a", 9)], SOON, Decision(SOON), id="the first plan holds"),
        pytest.param([A], [bears("a", 9)], DUE, Decision(DUE._replace(done=True), keep=True), id="time is over"),
        pytest.param([A], [bears("a", 9)], DONE, Decision(DONE), id="has gone already"),
    ],
)
def test_the_time_of_an_eviction(
    taints: list[Taint], tolerations: list[Toleration], plan: Plan | None, expected: Decision
) -> None:
    assert decide("u", taints, tolerations, plan, NOW) == expected


class EvictionCluster:
    """Two pods on a node: one pod tolerates a taint for five seconds, the other tolerates it forever."""

    def __init__(self) -> None:
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        self.stage.create("/api/v1/nodes", {"metadata": {"name": "n"}})
        self.pod("short", [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])
        self.pod("ever", [{"key": "k", "operator": "Exists"}])
        self.stage.work()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options())

    def pod(self, name: str, tolerations: list[dict[str, Any]]) -> None:
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "tolerations": tolerations}
        self.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": name}, "spec": spec})

    def taint(self, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        self.stage.patch("/api/v1/nodes/n", {"spec": {"taints": taints}})
        self.stage.work()

    def going(self) -> list[str]:
        return [each.name for each in self.stage.log.snapshot(PODS).objects if each.is_terminating]

    def messages(self) -> list[str]:
        return [message for _, _, message in self.context.recorded.events]


def test_a_pod_is_deleted_after_its_toleration_with_a_reason() -> None:
    cluster = EvictionCluster()
    cluster.taint("k")
    cluster.stage.pass_by(4.9)
    assert cluster.going() == []
    cluster.stage.pass_by(0.2)
    assert cluster.going() == ["short"]
    assert cluster.messages() == ["Marking for deletion Pod a/short"]
    pod = cluster.stage.stored(PODS, "short", "a")
    assert pod is not None
    assert [each["reason"] for each in pod.to_dict()["status"]["conditions"]] == ["DeletionByTaintManager"]


def test_a_taint_removed_in_time_cancels_the_eviction() -> None:
    cluster = EvictionCluster()
    cluster.taint("k")
    cluster.stage.pass_by(3)
    cluster.taint()
    cluster.stage.pass_by(60)
    assert cluster.going() == []
    assert cluster.messages() == ["Cancelling deletion of Pod a/short"]


def test_a_new_pod_on_a_tainted_node_is_evicted() -> None:
    cluster = EvictionCluster()
    cluster.taint("other")
    assert cluster.going() == ["ever", "short"]
    cluster.pod("late", [])
    cluster.stage.work()
    assert cluster.going() == ["ever", "late", "short"]


def test_plans_are_recomputed_after_a_restart() -> None:
    cluster = EvictionCluster()
    cluster.taint("k")
    cluster.stage.pass_by(4)
    cluster.stage.start()
    cluster.stage.work()
    cluster.stage.pass_by(4)
    assert cluster.going() == []
    cluster.stage.pass_by(2)
    assert cluster.going() == ["short"]


def test_pods_on_a_node_without_noexecute_taints_cause_no_work() -> None:
    cluster = EvictionCluster()
    cluster.pod("another", [])
    cluster.stage.delete("/api/v1/namespaces/a/pods/short", gracePeriodSeconds=0)
    cluster.stage.hear()
    assert not cluster.stage.controller.process_next(timeout=0)
    cluster.taint("k")
    assert cluster.going() == ["another"]


def test_only_changed_tolerations_of_a_pod_on_a_tainted_node_cause_work() -> None:
    cluster = EvictionCluster()
    cluster.taint("k")
    path = "/api/v1/namespaces/a/pods/short"
    cluster.stage.patch(path, {"metadata": {"labels": {"a": "b"}}})
    cluster.stage.hear()
    assert not cluster.stage.controller.process_next(timeout=0)
    before = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    cluster.stage.patch(path, {"spec": {"tolerations": [before, {"key": "l", "operator": "Exists"}]}})
    cluster.stage.hear()
    assert cluster.stage.controller.process_next(timeout=0)


def test_the_eviction_of_a_planned_pod_is_cancelled_even_without_its_node() -> None:
    cluster = EvictionCluster()
    cluster.taint("k")
    cluster.stage.delete("/api/v1/nodes/n")
    cluster.stage.work()
    cluster.stage.delete("/api/v1/namespaces/a/pods/short", gracePeriodSeconds=0)
    cluster.stage.work()
    assert cluster.messages() == ["Cancelling deletion of Pod a/short"]
