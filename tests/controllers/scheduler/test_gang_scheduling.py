"""Tests of pods that belong to PodGroups: they wait for each other, and are bound together or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.scheduler import Options
from ctrlmgr.controllers.scheduler.controller import build
from ctrlmgr.controllers.scheduler.pod_groups import FEW_SCHEDULED, PREEMPTING, UNSCHEDULABLE
from ctrlmgr.controllers.scheduler.scheduler_cache import POD_GROUPS
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups"


class Grouped(SchedulerCluster):
    """A cluster that serves PodGroups."""

    def __init__(self) -> None:
        self.stage = WorkedStage(self._build, kinds=builtin_kinds(served=["scheduling.k8s.io/v1alpha2"]))
        self.stage.namespace("a")

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options())

    def group(self, name: str = "g", minimum: int | None = 2, **spec: Any) -> None:
        policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
        self.stage.create(GROUPS, {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, **spec}})

    def member(self, name: str, cpu: str = "1", **spec: Any) -> None:
        self.pod(name, cpu, schedulingGroup={"podGroupName": "g"}, **spec)

    def condition(self) -> tuple[str, str, str]:
        group = self.stage.stored(POD_GROUPS, "g", "a")
        assert group is not None
        (found,) = group.to_dict()["status"]["conditions"]
        assert found["type"] == "PodGroupScheduled"
        return found["status"], found["reason"], found["message"]

    def message(self, name: str) -> str:
        found = next(each for each in self.status(name)["conditions"] if each["type"] == "PodScheduled")
        text: str = found["message"]
        return text


@pytest.fixture
def cluster() -> Iterator[Grouped]:
    switch({"GenericWorkload": True, "GangScheduling": True})
    cluster = Grouped()
    cluster.node("n")
    yield cluster
    switch({})


def test_a_gang_waits_for_its_group_and_for_enough_pods(cluster: Grouped) -> None:
    cluster.member("p")
    assert cluster.places() == {"p": ""}
    cluster.group()
    assert cluster.places() == {"p": ""}
    assert cluster.context.recorded.events == []
    assert not cluster.status("p").get("conditions"), "a pod that is not queued has no condition"
    cluster.member("q")
    assert cluster.places() == {"p": "n", "q": "n"}
    assert cluster.condition() == ("True", "Scheduled", "")
    cluster.member("r", cpu="100m")
    assert cluster.places() == {"p": "n", "q": "n"} | {"r": ""}, "the node is full"
    assert cluster.condition() == ("True", "Scheduled", ""), "a group that was scheduled stays so"


def test_no_pod_of_a_gang_is_bound_if_too_few_fit(cluster: Grouped) -> None:
    cluster.group(minimum=3)
    for name in ("p", "q", "r"):
        cluster.member(name)
    assert cluster.places() == {"p": "", "q": "", "r": ""}
    assert cluster.condition() == ("False", "Unschedulable", UNSCHEDULABLE)
    messages = sorted(cluster.message(name) for name in ("p", "q", "r"))
    assert messages[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert messages[1:] == [f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"] * 2
    cluster.pod("alone", cpu="2")
    assert cluster.places()["alone"] == "n", "the node is free for other pods"
    cluster.node("m", cpu="4")
    cluster.stage.pass_by(1)
    assert cluster.places() == {"alone": "n", "p": "m", "q": "m", "r": "m"}
    assert cluster.condition()[0] == "True"


def test_more_pods_than_needed_are_bound_if_they_fit(cluster: Grouped) -> None:
    cluster.group(minimum=2)
    for name in ("p", "q", "r"):
        cluster.member(name)
    assert sorted(cluster.places().values()) == ["", "n", "n"]
    cluster.node("m")
    cluster.stage.pass_by(2)
    assert sorted(cluster.places().values()) == ["m", "n", "n"]


def test_pods_of_a_basic_group_are_independent(cluster: Grouped) -> None:
    cluster.group(minimum=None)
    cluster.member("p")
    cluster.member("q", cpu="5")
    assert cluster.places() == {"p": "n", "q": ""}
    assert cluster.condition() == ("True", "Scheduled", "")


def test_a_gang_preempts_together(cluster: Grouped) -> None:
    cluster.important("high", 100)
    cluster.node("m")
    for node in ("n", "m"):
        cluster.pod(f"low-{node}", cpu="2", nodeSelector={"kubernetes.io/hostname": node})
    assert cluster.places() == {"low-n": "n", "low-m": "m"}
    cluster.group()
    for name in ("p", "q"):
        cluster.member(name, cpu="2", priorityClassName="high")
    cluster.stage.work()
    assert cluster.condition() == ("False", "Unschedulable", PREEMPTING)
    assert {cluster.status(name)["nominatedNodeName"] for name in ("p", "q")} == {"m", "n"}
    cluster.stage.pass_by(60)
    for node in ("n", "m"):
        if cluster.stage.stored(PODS, f"low-{node}", "a") is not None:
            cluster.stage.delete(f"/api/v1/namespaces/a/pods/low-{node}", gracePeriodSeconds=0)
    cluster.stage.pass_by(20)
    assert {*cluster.places().values()} == {"m", "n"}
    assert cluster.condition()[0] == "True"


def test_a_gang_that_fits_nowhere_preempts_nothing(cluster: Grouped) -> None:
    cluster.important("high", 100)
    cluster.pod("low", cpu="2")
    assert cluster.places() == {"low": "n"}
    cluster.group()
    for name in ("p", "q"):
        cluster.member(name, cpu="2", priorityClassName="high")
    assert cluster.places() == {"low": "n", "p": "", "q": ""}
    assert cluster.recorded("Preempted") == []
    assert not any(cluster.status(name).get("nominatedNodeName") for name in ("p", "q"))
    cluster.pod("tiny", cpu="0")
    assert cluster.places()["tiny"] == "n", "the model of the node is unchanged"


def test_pods_of_a_group_must_name_one_scheduler(cluster: Grouped) -> None:
    cluster.group()
    cluster.member("p")
    cluster.member("q", schedulerName="other")
    assert cluster.places() == {"p": "", "q": ""}, "pods of other schedulers count, but are not bound"
    assert cluster.message("p") == f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"


@pytest.mark.parametrize("gates", [{"GenericWorkload": True}, {}])
def test_without_the_gates_pods_do_not_wait(gates: dict[str, bool]) -> None:
    switch(gates)
    try:
        cluster = Grouped()
        cluster.node("n")
        cluster.member("p")
        assert cluster.places() == {"p": "n"}
    finally:
        switch({})
