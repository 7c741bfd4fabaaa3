"""Tests of PodGroups with topology constraints, with the feature gate TopologyAwareWorkloadScheduling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.controllers.scheduler.pod_groups import CONSTRAINED, FEW_SCHEDULED, UNSCHEDULABLE
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.scheduling.group_placements import NO_PLACEMENTS
from tests.controllers.scheduler.test_gang_scheduling import Grouped

GATES = {"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True}
RACK: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


@pytest.fixture
def scene() -> Iterator[Grouped]:
    switch(GATES)
    yield Grouped()
    switch({})


def rack(scene: Grouped, name: str, *nodes: str, cpu: str = "2") -> None:
    for each in nodes:
        scene.node(each, cpu=cpu, labels={"rack": name})


def gang(scene: Grouped, *names: str, minimum: int = 2, cpu: str = "2", **spec: Any) -> None:
    scene.group(minimum=minimum, **{**RACK, **spec})
    for name in names:
        scene.member(name, cpu=cpu)


def test_all_pods_of_a_group_are_placed_in_one_domain(scene: Grouped) -> None:
    rack(scene, "a", "a1")
    rack(scene, "b", "b1", "b2")
    rack(scene, "c", "c1")
    scene.node("apart", cpu="64")
    gang(scene, "p", "q")
    assert {*scene.places().values()} == {"b1", "b2"}, "the node without the label is in no domain"
    assert scene.condition() == ("True", "Scheduled", "")


def test_the_domain_with_the_most_pods_is_chosen(scene: Grouped) -> None:
    rack(scene, "a", "a1", "a2")
    rack(scene, "b", "b1", "b2", "b3")
    rack(scene, "c", "c1", "c2")
    gang(scene, "p", "q", "r")
    assert {*scene.places().values()} == {"b1", "b2", "b3"}


def test_later_pods_of_a_group_join_the_domain_of_the_first(scene: Grouped) -> None:
    rack(scene, "a", "a1", "a2")
    gang(scene, "p", "q")
    assert {*scene.places().values()} == {"a1", "a2"}
    rack(scene, "b", "b1")
    scene.member("r", cpu="2")
    assert scene.places()["r"] == "", "the free node is in another domain"
    assert scene.message("r").startswith("0/2 nodes are available: 2 Insufficient cpu."), "two nodes are in the domain"
    rack(scene, "a", "a3")
    scene.stage.pass_by(20)
    assert scene.places()["r"] == "a3"


def test_a_group_that_fits_in_no_domain_is_refused(scene: Grouped) -> None:
    rack(scene, "a", "a1")
    rack(scene, "b", "b1")
    gang(scene, "p", "q")
    assert {*scene.places().values()} == {""}
    words = f"0/2 placements are available, first placement status: {UNSCHEDULABLE}"
    assert scene.condition() == ("False", "Unschedulable", words)
    found = sorted(scene.message(name) for name in ("p", "q"))
    assert found[0].endswith(f"preemption: {CONSTRAINED}")
    assert found[1] == f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"


def test_without_a_node_with_the_label_there_is_no_placement(scene: Grouped) -> None:
    scene.node("n")
    gang(scene, "p", "q")
    assert {*scene.places().values()} == {""}
    assert scene.condition() == ("False", "Unschedulable", NO_PLACEMENTS)
    assert scene.message("p") == NO_PLACEMENTS


def test_a_node_that_loses_its_label_is_an_error_for_later_pods(scene: Grouped) -> None:
    rack(scene, "a", "a1", "a2")
    gang(scene, "p", "q")
    assert {*scene.places().values()} == {"a1", "a2"}
    scene.stage.patch("/api/v1/nodes/a1", {"metadata": {"labels": {"rack": None}}})
    scene.member("r")
    assert scene.places()["r"] == ""
    pod = next(name for name, node in scene.places().items() if node == "a1")
    problem = f"no topology domain found for pod a/{pod}"
    assert scene.message("r") == f"cannot determine domain for already scheduled pods: {problem}"
    assert scene.condition()[0] == "True", "the group was scheduled earlier"


@pytest.mark.usefixtures("scene")
def test_the_whole_group_does_not_preempt_within_a_domain() -> None:
    switch({**GATES, "WorkloadAwarePreemption": True})
    scene = Grouped()
    scene.important("high", 100)
    rack(scene, "a", "a1", "a2")
    for node in ("a1", "a2"):
        scene.pod(f"low-{node}", cpu="2", nodeSelector={"kubernetes.io/hostname": node})
    scene.stage.work()
    gang(scene, "p", "q", priorityClassName="high")
    scene.stage.work()
    assert scene.told("Preempted") == []
    words = "workload aware preemption is not supported for pod groups with scheduling constraints"
    assert scene.condition()[2].endswith(f"{UNSCHEDULABLE}, {words}")


def test_a_group_without_a_constraint_may_use_all_nodes(scene: Grouped) -> None:
    rack(scene, "a", "a1")
    rack(scene, "b", "b1")
    gang(scene, "p", "q", schedulingConstraints=None)
    assert {*scene.places().values()} == {"a1", "b1"}
