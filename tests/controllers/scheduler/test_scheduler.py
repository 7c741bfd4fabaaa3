from __future__ import annotations

from typing import Any

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.scheduler import Options
from ctrlmgr.controllers.scheduler.controller import build
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

NODES = "/api/v1/nodes"
NAMESPACED = "/api/v1/namespaces/a/pods"


class Scene:
    """A cluster with a namespace, and a scheduler that tests run step by step."""

    def kinds(self) -> Kinds:
        return builtin_kinds()

    def __init__(self) -> None:
        self.stage = WorkedStage(self._build, kinds=self.kinds())
        self.stage.namespace("a")

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options())

    def node(self, name: str, cpu: str = "2", **more: Any) -> None:
        held = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **more.get("labels", {})}}
        self.stage.create(NODES, {"metadata": metadata, "status": {"capacity": held, "allocatable": held}})
        # The taint of a new node that has not reported is not included.
        self.stage.patch(f"{NODES}/{name}", {"spec": {"taints": more.get("taints")}})
        self.stage.work()

    def pod(self, name: str, cpu: str = "1", **spec: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        labels = spec.pop("labels", {})
        self.stage.create(
            NAMESPACED, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}
        )

    def important(self, name: str, value: int) -> None:
        self.stage.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        self.stage.work()

    def places(self) -> dict[str, str]:
        self.stage.work()
        pods = [each.to_dict() for each in self.stage.log.snapshot(PODS).objects]
        return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in pods}

    def status(self, name: str) -> dict[str, Any]:
        pod = self.stage.stored(PODS, name, "a")
        assert pod is not None
        status: dict[str, Any] = pod.to_dict()["status"]
        return status

    def told(self, reason: str) -> list[str]:
        return [message for _, each, message in self.context.told.events if each == reason]


def test_a_pod_is_bound_to_the_best_scoring_node() -> None:
    scene = Scene()
    scene.node("small")
    scene.node("large", cpu="8")
    scene.pod("p")
    assert scene.places() == {"p": "large"}
    assert scene.told("Scheduled") == ["Successfully assigned a/p to large"]
    assert scene.context.told.actions["Scheduled"] == "Binding"
    scheduled = next(each for each in scene.status("p")["conditions"] if each["type"] == "PodScheduled")
    assert scheduled["status"] == "True"


def test_an_unschedulable_pod_has_a_reason_and_is_retried_after_a_change() -> None:
    scene = Scene()
    scene.node("full", cpu="500m")
    scene.node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}])
    scene.pod("p")
    assert scene.places() == {"p": ""}
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )
    assert scene.told("FailedScheduling") == [message]
    found = {key: scene.status("p")["conditions"][0][key] for key in ("type", "status", "reason", "message")}
    assert found == {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    scene.node("new")
    assert scene.places() == {"p": ""}, "its back-off is not over"
    scene.stage.pass_by(1)
    assert scene.places() == {"p": "new"}


def test_without_nodes_the_message_says_so() -> None:
    scene = Scene()
    scene.pod("p")
    assert scene.places() == {"p": ""}
    assert scene.told("FailedScheduling") == ["no nodes available to schedule pods"]
    scene.stage.pass_by(1)
    scene.node("n")
    assert scene.places() == {"p": "n"}


def test_a_bound_pod_counts_at_once() -> None:
    scene = Scene()
    scene.node("n")
    for number in range(3):
        scene.pod(f"p{number}")
    assert sorted(scene.places().values()) == ["", "n", "n"]
    scene.stage.delete(
        f"{NAMESPACED}/{min(name for name, node in scene.places().items() if node)}", gracePeriodSeconds=0
    )
    scene.stage.pass_by(1)
    assert sorted(scene.places().values()) == ["n", "n"]


def test_a_pod_with_a_higher_priority_is_scheduled_first() -> None:
    scene = Scene()
    scene.important("high", 100)
    scene.pod("low", cpu="2")
    scene.pod("high", cpu="2", priorityClassName="high")
    scene.node("n")
    scene.stage.pass_by(1)
    assert scene.places() == {"low": "", "high": "n"}


def test_a_pod_with_a_lower_priority_is_preempted() -> None:
    scene = Scene()
    scene.important("high", 100)
    scene.node("n")
    scene.pod("victim", cpu="2")
    assert scene.places() == {"victim": "n"}
    scene.pod("p", cpu="2", priorityClassName="high")
    scene.stage.work()
    assert scene.told("FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert scene.status("p")["nominatedNodeName"] == "n"
    uid = scene.stage.stored(PODS, "p", "a")
    assert uid is not None
    assert scene.told("Preempted") == [f"Preempted by pod {uid.uid} on node n"]
    assert (scene.context.told.actions["Preempted"], scene.context.told.actions["FailedScheduling"]) == (
        "Preempting",
        "Scheduling",
    )
    target = next(each for each in scene.status("victim")["conditions"] if each["type"] == "DisruptionTarget")
    assert (target["reason"], target["message"]) == (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    scene.stage.delete(f"{NAMESPACED}/victim", gracePeriodSeconds=0)
    scene.stage.pass_by(1)
    assert scene.places() == {"p": "n"}


def test_a_pod_with_scheduling_gates_waits_until_they_are_removed() -> None:
    scene = Scene()
    scene.node("n")
    scene.pod("p", schedulingGates=[{"name": "wait"}])
    assert scene.places() == {"p": ""}
    assert scene.told("FailedScheduling") == []
    scene.stage.patch(f"{NAMESPACED}/p", {"spec": {"schedulingGates": []}})
    assert scene.places() == {"p": "n"}


def test_pods_of_other_schedulers_are_ignored() -> None:
    scene = Scene()
    scene.node("n")
    scene.pod("p", schedulerName="mine")
    assert scene.places() == {"p": ""}


def test_a_restarted_scheduler_continues() -> None:
    scene = Scene()
    scene.node("n")
    scene.pod("p")
    scene.stage.work()
    scene.pod("q")
    scene.pod("r")
    scene.stage.start()
    assert sorted(scene.places().values()) == ["", "n", "n"]


def test_spread_and_anti_affinity_consider_new_pods() -> None:
    scene = Scene()
    for name in ("one", "two"):
        scene.node(name, cpu="8")
    selector = {"matchLabels": {"app": "x"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(3):
        scene.pod(f"p{number}", labels={"app": "x"}, affinity=alone)
    assert sorted(scene.places().values()) == ["", "one", "two"]
    assert scene.told("FailedScheduling")[-1].startswith(
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
    )
