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
from tests.controllers.scheduler.test_scheduler import Scene
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/a/podgroups"


class Grouped(Scene):
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
def scene() -> Iterator[Grouped]:
    switch({"GenericWorkload": True, "GangScheduling": True})
    scene = Grouped()
    scene.node("n")
    yield scene
    switch({})


def test_a_gang_waits_for_its_group_and_for_enough_pods(scene: Grouped) -> None:
    scene.member("p")
    assert scene.places() == {"p": ""}
    scene.group()
    assert scene.places() == {"p": ""}
    assert scene.context.told.events == []
    assert not scene.status("p").get("conditions"), "a pod that is not queued has no condition"
    scene.member("q")
    assert scene.places() == {"p": "n", "q": "n"}
    assert scene.condition() == ("True", "Scheduled", "")
    scene.member("r", cpu="100m")
    assert scene.places() == {"p": "n", "q": "n"} | {"r": ""}, "the node is full"
    assert scene.condition() == ("True", "Scheduled", ""), "a group that was scheduled stays so"


def test_no_pod_of_a_gang_is_bound_if_too_few_fit(scene: Grouped) -> None:
    scene.group(minimum=3)
    for name in ("p", "q", "r"):
        scene.member(name)
    assert scene.places() == {"p": "", "q": "", "r": ""}
    assert scene.condition() == ("False", "Unschedulable", UNSCHEDULABLE)
    messages = sorted(scene.message(name) for name in ("p", "q", "r"))
    assert messages[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert messages[1:] == [f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"] * 2
    scene.pod("alone", cpu="2")
    assert scene.places()["alone"] == "n", "the node is free for other pods"
    scene.node("m", cpu="4")
    scene.stage.pass_by(1)
    assert scene.places() == {"alone": "n", "p": "m", "q": "m", "r": "m"}
    assert scene.condition()[0] == "True"


def test_more_pods_than_needed_are_bound_if_they_fit(scene: Grouped) -> None:
    scene.group(minimum=2)
    for name in ("p", "q", "r"):
        scene.member(name)
    assert sorted(scene.places().values()) == ["", "n", "n"]
    scene.node("m")
    scene.stage.pass_by(2)
    assert sorted(scene.places().values()) == ["m", "n", "n"]


def test_pods_of_a_basic_group_are_independent(scene: Grouped) -> None:
    scene.group(minimum=None)
    scene.member("p")
    scene.member("q", cpu="5")
    assert scene.places() == {"p": "n", "q": ""}
    assert scene.condition() == ("True", "Scheduled", "")


def test_a_gang_preempts_together(scene: Grouped) -> None:
    scene.important("high", 100)
    scene.node("m")
    for node in ("n", "m"):
        scene.pod(f"low-{node}", cpu="2", nodeSelector={"kubernetes.io/hostname": node})
    assert scene.places() == {"low-n": "n", "low-m": "m"}
    scene.group()
    for name in ("p", "q"):
        scene.member(name, cpu="2", priorityClassName="high")
    scene.stage.work()
    assert scene.condition() == ("False", "Unschedulable", PREEMPTING)
    assert {scene.status(name)["nominatedNodeName"] for name in ("p", "q")} == {"m", "n"}
    scene.stage.pass_by(60)
    for node in ("n", "m"):
        if scene.stage.stored(PODS, f"low-{node}", "a") is not None:
            scene.stage.delete(f"/api/v1/namespaces/a/pods/low-{node}", gracePeriodSeconds=0)
    scene.stage.pass_by(20)
    assert {*scene.places().values()} == {"m", "n"}
    assert scene.condition()[0] == "True"


def test_a_gang_that_fits_nowhere_preempts_nothing(scene: Grouped) -> None:
    scene.important("high", 100)
    scene.pod("low", cpu="2")
    assert scene.places() == {"low": "n"}
    scene.group()
    for name in ("p", "q"):
        scene.member(name, cpu="2", priorityClassName="high")
    assert scene.places() == {"low": "n", "p": "", "q": ""}
    assert scene.told("Preempted") == []
    assert not any(scene.status(name).get("nominatedNodeName") for name in ("p", "q"))
    scene.pod("tiny", cpu="0")
    assert scene.places()["tiny"] == "n", "the model of the node is unchanged"


def test_pods_of_a_group_must_name_one_scheduler(scene: Grouped) -> None:
    scene.group()
    scene.member("p")
    scene.member("q", schedulerName="other")
    assert scene.places() == {"p": "", "q": ""}, "pods of other schedulers count, but are not bound"
    assert scene.message("p") == f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"


@pytest.mark.parametrize("gates", [{"GenericWorkload": True}, {}])
def test_without_the_gates_pods_do_not_wait(gates: dict[str, bool]) -> None:
    switch(gates)
    try:
        scene = Grouped()
        scene.node("n")
        scene.member("p")
        assert scene.places() == {"p": "n"}
    finally:
        switch({})
