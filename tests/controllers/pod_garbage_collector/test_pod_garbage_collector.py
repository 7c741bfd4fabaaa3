from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.pod_garbage_collector import Options
from ctrlmgr.controllers.pod_garbage_collector import controller as collecting
from ctrlmgr.controllers.pod_garbage_collector.controller import (
    PERIOD,
    QUARANTINE,
    DecodedPod,
    build,
    desired_removals,
    failure,
)
from ctrlmgr.manager import Controller
from ctrlmgr.metrics import REGISTRY
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

NOW = "2026-01-01T00:00:00Z"
TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
KEPT = 3
PODS_OF_A = "/api/v1/namespaces/a/pods"


def pod(name: str, phase: str = "Running", node: str = "here", **changes: Any) -> Object:
    going = {"deletionTimestamp": NOW} if changes.get("going") else {}
    metadata = {"name": name, "namespace": "a", "creationTimestamp": changes.get("created", NOW), **going}
    spec = {"nodeName": node} if node else {}
    status = {"phase": phase, **({"reason": changes["reason"]} if "reason" in changes else {})}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status})


def node(name: str, *, ready: bool = True, tainted: bool = False) -> Object:
    conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
    spec = {"taints": [{"key": "other"}, TAINT]} if tainted else {}
    head = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}}
    return Object.from_dict({**head, "spec": spec, "status": {"conditions": conditions}})


NODES = {
    each.name: each
    for each in (
        node("here"),
        node("down", ready=False),
        node("out", ready=False, tainted=True),
        node("back", tainted=True),
    )
}


def removed(*pods: Object, gone: tuple[str, ...] = (), threshold: int = KEPT) -> dict[str, str]:
    found = desired_removals([DecodedPod.at(each) for each in pods], NODES, gone, threshold)
    assert len({each.pod.name for each in found}) == len(found)
    return {each.pod.name: each.reason for each in found}


@pytest.mark.parametrize(
    ("pod", "gone", "reason"),
    [
        pytest.param(pod("p"), (), "", id="a pod on a node"),
        pytest.param(pod("p", node=""), (), "", id="a pod that waits for one"),
        pytest.param(pod("p", going=True), (), "", id="its node takes care of it"),
        pytest.param(pod("p", node="", going=True), (), "unscheduled", id="nobody takes care of it"),
        pytest.param(pod("p", node="down", going=True), (), "", id="a node that may come back"),
        pytest.param(pod("p", node="out", going=True), (), "out-of-service", id="a node that was given up"),
        pytest.param(pod("p", node="out"), (), "", id="nobody wants it gone"),
        pytest.param(pod("p", node="back", going=True), (), "", id="a node that is back"),
        pytest.param(pod("p", node="new"), (), "", id="a node nobody has heard of yet"),
        pytest.param(pod("p", node="new", going=True), (), "", id="the same on its way out"),
        pytest.param(pod("p", node="gone"), ("gone",), "orphaned", id="a node that is gone"),
        pytest.param(pod("p", "Succeeded", node="gone"), ("gone",), "orphaned", id="the same, having ended"),
    ],
)
def test_reasons_to_delete_a_pod(pod: Object, gone: tuple[str, ...], reason: str) -> None:
    assert removed(pod, gone=gone) == ({"p": reason} if reason else {})


def test_evicted_and_oldest_terminated_pods_are_deleted_first() -> None:
    later, latest = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
    pods = [
        pod("old-b", "Failed"),
        pod("old-a", "Succeeded"),
        pod("later", "Failed", created=later),
        pod("evicted", "Failed", created=latest, reason="Evicted"),
        pod("no-phase", ""),
        pod("running"),
        pod("waiting", "Pending"),
        pod("unknown", "Unknown"),
    ]
    assert removed(*pods) == {"evicted": "terminated", "no-phase": "terminated"}
    assert list(removed(*pods, threshold=1)) == ["evicted", "no-phase", "old-a", "old-b"]
    assert removed(*pods, threshold=5) == {}
    assert removed(*pods, threshold=0) == {}, "there is no threshold"


def test_the_status_of_a_pod_on_a_deleted_node_is_failed() -> None:
    before = pod("p").to_dict()
    before["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "False"}]
    status = failure(Object.from_dict(before), "orphaned", NOW)["status"]
    assert status["phase"] == "Failed"
    assert status["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "observedGeneration": 0,
            "lastTransitionTime": NOW,
        },
    ]
    assert "conditions" not in failure(pod("p"), "unscheduled", NOW)["status"]


# At work.


def controller(stage: WorkedStage) -> Controller:
    return build(StageContext(stage), Options(terminated_pod_gc_threshold=KEPT))


@pytest.fixture
def stage() -> WorkedStage:
    stage = WorkedStage(controller)
    stage.namespace("a")
    stage.work()
    return stage


def run(stage: WorkedStage, name: str, *, on: str = "", **metadata: Any) -> None:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": on} if on else {})}
    stage.create(PODS_OF_A, {"metadata": {"name": name, **metadata}, "spec": spec})


def end(stage: WorkedStage, name: str) -> None:
    stage.patch(f"{PODS_OF_A}/{name}/status", {"status": {"phase": "Succeeded"}})


def wait(stage: WorkedStage, seconds: float) -> None:
    for _ in range(round(seconds / PERIOD)):
        stage.pass_by(PERIOD)


def add_node(stage: WorkedStage, name: str) -> None:
    stage.create("/api/v1/nodes", {"metadata": {"name": name}})


def counted(reason: str) -> float:
    labels = {"namespace": "a", "reason": reason}
    return REGISTRY.get_sample_value("pod_gc_collector_force_delete_pods_total", labels) or 0.0


def test_pods_of_a_deleted_node_are_deleted_after_forty_seconds(stage: WorkedStage) -> None:
    add_node(stage, "there")
    run(stage, "staying", on="there")
    run(stage, "orphaned", on="gone")
    before = counted("orphaned")
    wait(stage, QUARANTINE)
    assert stage.names(PODS) == ["orphaned", "staying"]
    wait(stage, PERIOD)
    assert stage.names(PODS) == ["staying"]
    assert [each for each, _ in stage.written()] == ["MODIFIED", "MODIFIED", "DELETED"], "failed, terminating, gone"
    last = stage.log.events_after(0)[-1].object.to_dict()["status"]
    assert (last["phase"], last["conditions"][-1]["type"]) == ("Failed", "DisruptionTarget")
    assert counted("orphaned") == before + 1


def test_a_node_that_returns_in_time_keeps_its_pods(stage: WorkedStage) -> None:
    run(stage, "p", on="late")
    wait(stage, QUARANTINE)
    add_node(stage, "late")
    wait(stage, PERIOD)
    stage.delete("/api/v1/nodes/late")
    wait(stage, QUARANTINE)
    assert stage.names(PODS) == ["p"]
    wait(stage, PERIOD)
    assert stage.names(PODS) == []


def test_restarted_waiter_waits_again(stage: WorkedStage) -> None:
    run(stage, "p", on="gone")
    wait(stage, QUARANTINE)
    stage.controller.start()
    wait(stage, QUARANTINE)
    assert stage.names(PODS) == ["p"]
    wait(stage, PERIOD)
    assert stage.names(PODS) == []


def test_a_node_missing_in_the_cache_is_read(stage: WorkedStage) -> None:
    run(stage, "p", on="late")
    wait(stage, QUARANTINE)
    add_node(stage, "late")
    stage.clock.step(PERIOD)
    assert stage.controller.process_next(timeout=0)
    assert stage.names(PODS) == ["p"]


def test_an_unscheduled_pod_in_deletion_is_deleted_at_once_without_finalizers(stage: WorkedStage) -> None:
    run(stage, "held", finalizers=["example.com/hold"])
    stage.delete(f"{PODS_OF_A}/held")
    wait(stage, PERIOD)
    assert stage.send("GET", f"{PODS_OF_A}/held").body["status"]["phase"] == "Failed"
    written = stage.written()
    wait(stage, 3 * PERIOD)
    assert stage.written() == written, "it is not written again and again"
    stage.patch(f"{PODS_OF_A}/held", {"metadata": {"finalizers": None}})
    assert stage.names(PODS) == []


def test_a_pod_on_an_out_of_service_node_is_deleted_without_its_grace_period(stage: WorkedStage) -> None:
    stage.create("/api/v1/nodes", {"metadata": {"name": "out"}, "spec": {"taints": [TAINT]}})
    run(stage, "p", on="out")
    wait(stage, PERIOD)
    stage.delete(f"{PODS_OF_A}/p")
    assert stage.names(PODS) == ["p"], "it has its grace period"
    wait(stage, PERIOD)
    assert stage.names(PODS) == []


def test_terminated_pods_above_the_threshold_are_deleted(stage: WorkedStage) -> None:
    add_node(stage, "there")
    for number in range(KEPT + 2):
        run(stage, f"p-{number}", on="there")
        end(stage, f"p-{number}")
        stage.clock.step(1)
    wait(stage, PERIOD)
    assert stage.names(PODS) == ["p-2", "p-3", "p-4"]
    assert {each for each in stage.written() if each[0] == "DELETED"} == {("DELETED", "a/p-0"), ("DELETED", "a/p-1")}


def test_blocked_removal_does_not_block_others(stage: WorkedStage) -> None:
    for name in ("a", "b"):
        run(stage, name, on="gone")
    wait(stage, QUARANTINE)
    stage.patch(f"{PODS_OF_A}/a", {"metadata": {"labels": {"changed": "meanwhile"}}})
    stage.clock.step(PERIOD)
    assert stage.controller.process_next(timeout=0), "the cache does not know of the change"
    assert stage.names(PODS) == ["a"]
    wait(stage, PERIOD)
    assert stage.names(PODS) == []


def test_a_large_round_takes_several_reconciles(stage: WorkedStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "_AT_ONCE", 2)
    for number in range(5):
        run(stage, f"p-{number}", on="gone")
    wait(stage, QUARANTINE)
    stage.clock.step(PERIOD)
    left = []
    while stage.controller.queue.next_ready_in() == 0:
        assert stage.controller.process_next(timeout=0), "a server that stops comes in between"
        left.append(len(stage.names(PODS)))
    assert left == [3, 1, 0]
    assert stage.controller.queue.next_ready_in() == PERIOD
