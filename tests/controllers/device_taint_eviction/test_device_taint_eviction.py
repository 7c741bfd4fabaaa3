from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.device_taint_eviction import Options
from ctrlmgr.controllers.device_taint_eviction.controller import build
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.metrics import DEVICE_TAINT_EVICTIONS
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUP = "/apis/resource.k8s.io/v1"
SLICES = f"{GROUP}/resourceslices"
CLAIMS = f"{GROUP}/namespaces/a/resourceclaims"
DRIVER = "gpu.example.com"
REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
TAINT = {"key": "k", "effect": "NoExecute"}
MARKED, CANCELLED = "Marking for deletion", "Cancelling deletion"


def bears(effect: str = "NoExecute", **more: Any) -> dict[str, Any]:
    return {"key": "k", "operator": "Exists", "effect": effect, **more}


class TaintedDeviceCluster:
    """A pod on a node with one allocated device, d0 of the pool p."""

    def kinds(self) -> Kinds:
        return builtin_kinds()

    def __init__(self, *tolerations: dict[str, Any]) -> None:
        self.stage = WorkedStage(self._build, kinds=self.kinds())
        self.stage.namespace("a")
        self.slice("s", 1)
        self.pod("web", *tolerations)
        self.stage.work()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options())

    def slice(self, name: str, generation: int, *taints: dict[str, Any]) -> None:
        pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
        devices = [{"name": "d0", "taints": [*taints]}, {"name": "d1", "taints": [TAINT]}]
        spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": devices}
        self.stage.create(SLICES, {"metadata": {"name": name}, "spec": spec})

    def taint(self, *taints: dict[str, Any]) -> None:
        devices = [{"name": "d0", "taints": [*taints]}, {"name": "d1"}]
        self.stage.patch(f"{SLICES}/s", {"spec": {"devices": devices}})
        self.stage.work()

    def pod(self, name: str, *tolerations: dict[str, Any], is_reserved: bool = True) -> None:
        entry = {"name": "c", "resourceClaimName": name}
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}], "resourceClaims": [entry]}
        made = self.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": name}, "spec": spec})
        self.stage.create(CLAIMS, {"metadata": {"name": name}, "spec": REQUESTS})
        uid = made["metadata"]["uid"] if is_reserved else "other"
        user = {"resource": "pods", "name": name, "uid": uid}
        result = {"request": "r", "driver": DRIVER, "pool": "p", "device": "d0", "tolerations": [*tolerations]}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
        self.stage.patch(f"{CLAIMS}/{name}/status", {"status": status})

    def going(self) -> list[str]:
        return [each.name for each in self.stage.log.snapshot(PODS).objects if each.is_terminating]

    def messages(self) -> list[str]:
        assert {reason for _, reason, _ in self.context.recorded.events} <= {"DeviceTaintManagerEviction"}
        return [message for _, _, message in self.context.recorded.events]


def test_a_pod_on_a_tainted_device_is_deleted_with_a_reason() -> None:
    cluster = TaintedDeviceCluster()
    deleted = DEVICE_TAINT_EVICTIONS.deleted._value.get()
    assert cluster.going() == []
    cluster.taint(TAINT)
    assert cluster.going() == ["web"]
    assert cluster.messages() == [MARKED]
    assert DEVICE_TAINT_EVICTIONS.deleted._value.get() == deleted + 1
    pod = cluster.stage.stored(PODS, "web", "a")
    assert pod is not None
    (recorded,) = (each for each in pod.to_dict()["status"]["conditions"] if each["type"] == "DisruptionTarget")
    assert (recorded["reason"], recorded["message"]) == (
        "DeletionByDeviceTaintManager",
        "Device Taint manager: deleting due to NoExecute taint",
    )


@pytest.mark.parametrize(
    ("tolerations", "stays"),
    [
        pytest.param([bears()], True, id="forever"),
        pytest.param([bears(tolerationSeconds=5), bears()], True, id="forever by another one"),
        pytest.param([bears("")], False, id="an empty effect does not delay an eviction"),
        pytest.param([bears("NoSchedule")], False, id="another effect"),
        pytest.param([bears(tolerationSeconds=-5)], False, id="less than no time"),
    ],
)
def test_tolerations_decide_whether_a_pod_stays(tolerations: list[dict[str, Any]], stays: bool) -> None:
    cluster = TaintedDeviceCluster(*tolerations)
    cluster.taint(TAINT)
    assert cluster.going() == ([] if stays else ["web"])


def test_the_shortest_toleration_of_all_matching_ones_counts() -> None:
    cluster = TaintedDeviceCluster(bears(tolerationSeconds=60), bears(tolerationSeconds=5))
    cluster.taint(TAINT)
    cluster.stage.pass_by(4)
    assert cluster.going() == []
    cluster.stage.pass_by(2)
    assert cluster.going() == ["web"]


def test_a_taint_removed_in_time_cancels_the_deletion() -> None:
    cluster = TaintedDeviceCluster(bears(tolerationSeconds=5))
    cluster.taint(TAINT)
    cluster.stage.pass_by(3)
    cluster.taint()
    cluster.stage.pass_by(60)
    assert cluster.going() == []
    assert cluster.messages() == [CANCELLED]


def test_a_claim_that_is_not_reserved_for_the_pod_does_not_count() -> None:
    cluster = TaintedDeviceCluster()
    cluster.pod("stranger", is_reserved=False)
    cluster.taint(TAINT)
    assert cluster.going() == ["web"]


def test_taints_of_older_generations_do_not_count() -> None:
    cluster = TaintedDeviceCluster()
    cluster.slice("newer", 2)
    cluster.taint(TAINT)
    assert cluster.going() == []
    cluster.stage.delete(f"{SLICES}/newer")
    cluster.stage.work()
    assert cluster.going() == ["web"]


def test_a_pod_that_gets_a_tainted_device_is_deleted() -> None:
    cluster = TaintedDeviceCluster()
    cluster.taint({**TAINT, "effect": "NoSchedule"}, TAINT)
    cluster.pod("late")
    cluster.stage.work()
    assert cluster.going() == ["late", "web"]


def test_planned_deletions_are_computed_again_after_a_restart() -> None:
    cluster = TaintedDeviceCluster(bears(tolerationSeconds=5))
    cluster.taint(TAINT)
    cluster.stage.pass_by(4)
    cluster.stage.start()
    cluster.stage.work()
    assert cluster.going() == []
    cluster.stage.pass_by(2)
    assert cluster.going() == ["web"]
