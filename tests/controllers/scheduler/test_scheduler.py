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


class SchedulerCluster:
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

    def recorded(self, reason: str) -> list[str]:
        return [message for _, each, message in self.context.recorded.events if each == reason]


def test_a_pod_is_bound_to_the_best_scoring_node() -> None:
    cluster = SchedulerCluster()
    cluster.node("small")
    cluster.node("large", cpu="8")
    cluster.pod("p")
    assert cluster.places() == {"p": "large"}
    assert cluster.recorded("Scheduled") == ["Successfully assigned a/p to large"]
    assert cluster.context.recorded.actions["Scheduled"] == "Binding"
    scheduled = next(each for each in cluster.status("p")["conditions"] if each["type"] == "PodScheduled")
    assert scheduled["status"] == "True"


def test_an_unschedulable_pod_has_a_reason_and_is_retried_after_a_change() -> None:
    cluster = SchedulerCluster()
    cluster.node("full", cpu="500m")
    cluster.node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    message = (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). "
        "no new claims to deallocate, preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )
    assert cluster.recorded("FailedScheduling") == [message]
    found = {key: cluster.status("p")["conditions"][0][key] for key in ("type", "status", "reason", "message")}
    assert found == {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    cluster.node("new")
    assert cluster.places() == {"p": ""}, "its back-off is not over"
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "new"}


def test_without_nodes_the_message_says_so() -> None:
    cluster = SchedulerCluster()
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    assert cluster.recorded("FailedScheduling") == ["no nodes available to schedule pods"]
    cluster.stage.pass_by(1)
    cluster.node("n")
    assert cluster.places() == {"p": "n"}


def test_a_bound_pod_counts_at_once() -> None:
    cluster = SchedulerCluster()
    cluster.node("n")
    for number in range(3):
        cluster.pod(f"p{number}")
    assert sorted(cluster.places().values()) == ["", "n", "n"]
    cluster.stage.delete(
        f"{NAMESPACED}/{min(name for name, node in cluster.places().items() if node)}", gracePeriodSeconds=0
    )
    cluster.stage.pass_by(1)
    assert sorted(cluster.places().values()) == ["n", "n"]


def test_a_pod_with_a_higher_priority_is_scheduled_first() -> None:
    cluster = SchedulerCluster()
    cluster.important("high", 100)
    cluster.pod("low", cpu="2")
    cluster.pod("high", cpu="2", priorityClassName="high")
    cluster.node("n")
    cluster.stage.pass_by(1)
    assert cluster.places() == {"low": "", "high": "n"}


def test_a_pod_with_a_lower_priority_is_preempted() -> None:
    cluster = SchedulerCluster()
    cluster.important("high", 100)
    cluster.node("n")
    cluster.pod("victim", cpu="2")
    assert cluster.places() == {"victim": "n"}
    cluster.pod("p", cpu="2", priorityClassName="high")
    cluster.stage.work()
    assert cluster.recorded("FailedScheduling") == ["0/1 nodes are available: 1 Insufficient cpu."]
    assert cluster.status("p")["nominatedNodeName"] == "n"
    uid = cluster.stage.stored(PODS, "p", "a")
    assert uid is not None
    assert cluster.recorded("Preempted") == [f"Preempted by pod {uid.uid} on node n"]
    assert (cluster.context.recorded.actions["Preempted"], cluster.context.recorded.actions["FailedScheduling"]) == (
        "Preempting",
        "Scheduling",
    )
    target = next(each for each in cluster.status("victim")["conditions"] if each["type"] == "DisruptionTarget")
    assert (target["reason"], target["message"]) == (
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    cluster.stage.delete(f"{NAMESPACED}/victim", gracePeriodSeconds=0)
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "n"}


def test_a_pod_with_scheduling_gates_waits_until_they_are_removed() -> None:
    cluster = SchedulerCluster()
    cluster.node("n")
    cluster.pod("p", schedulingGates=[{"name": "wait"}])
    assert cluster.places() == {"p": ""}
    assert cluster.recorded("FailedScheduling") == []
    cluster.stage.patch(f"{NAMESPACED}/p", {"spec": {"schedulingGates": []}})
    assert cluster.places() == {"p": "n"}


def test_pods_of_other_schedulers_are_ignored() -> None:
    cluster = SchedulerCluster()
    cluster.node("n")
    cluster.pod("p", schedulerName="mine")
    assert cluster.places() == {"p": ""}


def test_a_restarted_scheduler_continues() -> None:
    cluster = SchedulerCluster()
    cluster.node("n")
    cluster.pod("p")
    cluster.stage.work()
    cluster.pod("q")
    cluster.pod("r")
    cluster.stage.start()
    assert sorted(cluster.places().values()) == ["", "n", "n"]


def test_spread_and_anti_affinity_consider_new_pods() -> None:
    cluster = SchedulerCluster()
    for name in ("one", "two"):
        cluster.node(name, cpu="8")
    selector = {"matchLabels": {"app": "x"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for number in range(3):
        cluster.pod(f"p{number}", labels={"app": "x"}, affinity=alone)
    assert sorted(cluster.places().values()) == ["", "one", "two"]
    assert cluster.recorded("FailedScheduling")[-1].startswith(
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
    )
