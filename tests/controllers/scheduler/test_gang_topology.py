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
def cluster() -> Iterator[Grouped]:
    switch(GATES)
    yield Grouped()
    switch({})


def rack(cluster: Grouped, name: str, *nodes: str, cpu: str = "2") -> None:
    for each in nodes:
        cluster.node(each, cpu=cpu, labels={"rack": name})


def gang(cluster: Grouped, *names: str, minimum: int = 2, cpu: str = "2", **spec: Any) -> None:
    cluster.group(minimum=minimum, **{**RACK, **spec})
    for name in names:
        cluster.member(name, cpu=cpu)


def test_all_pods_of_a_group_are_placed_in_one_domain(cluster: Grouped) -> None:
    rack(cluster, "a", "a1")
    rack(cluster, "b", "b1", "b2")
    rack(cluster, "c", "c1")
    cluster.node("apart", cpu="64")
    gang(cluster, "p", "q")
    assert {*cluster.places().values()} == {"b1", "b2"}, "the node without the label is in no domain"
    assert cluster.condition() == ("True", "Scheduled", "")


def test_the_domain_with_the_most_pods_is_chosen(cluster: Grouped) -> None:
    rack(cluster, "a", "a1", "a2")
    rack(cluster, "b", "b1", "b2", "b3")
    rack(cluster, "c", "c1", "c2")
    gang(cluster, "p", "q", "r")
    assert {*cluster.places().values()} == {"b1", "b2", "b3"}


def test_later_pods_of_a_group_join_the_domain_of_the_first(cluster: Grouped) -> None:
    rack(cluster, "a", "a1", "a2")
    gang(cluster, "p", "q")
    assert {*cluster.places().values()} == {"a1", "a2"}
    rack(cluster, "b", "b1")
    cluster.member("r", cpu="2")
    assert cluster.places()["r"] == "", "the free node is in another domain"
    assert cluster.message("r").startswith("0/2 nodes are available: 2 Insufficient cpu."), (
        "two nodes are in the domain"
    )
    rack(cluster, "a", "a3")
    cluster.stage.pass_by(20)
    assert cluster.places()["r"] == "a3"


def test_a_group_that_fits_in_no_domain_is_refused(cluster: Grouped) -> None:
    rack(cluster, "a", "a1")
    rack(cluster, "b", "b1")
    gang(cluster, "p", "q")
    assert {*cluster.places().values()} == {""}
    words = f"0/2 placements are available, first placement status: {UNSCHEDULABLE}"
    assert cluster.condition() == ("False", "Unschedulable", words)
    found = sorted(cluster.message(name) for name in ("p", "q"))
    assert found[0].endswith(f"preemption: {CONSTRAINED}")
    assert found[1] == f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"


def test_without_a_node_with_the_label_there_is_no_placement(cluster: Grouped) -> None:
    cluster.node("n")
    gang(cluster, "p", "q")
    assert {*cluster.places().values()} == {""}
    assert cluster.condition() == ("False", "Unschedulable", NO_PLACEMENTS)
    assert cluster.message("p") == NO_PLACEMENTS


def test_a_node_that_loses_its_label_is_an_error_for_later_pods(cluster: Grouped) -> None:
    rack(cluster, "a", "a1", "a2")
    gang(cluster, "p", "q")
    assert {*cluster.places().values()} == {"a1", "a2"}
    cluster.stage.patch("/api/v1/nodes/a1", {"metadata": {"labels": {"rack": None}}})
    cluster.member("r")
    assert cluster.places()["r"] == ""
    pod = next(name for name, node in cluster.places().items() if node == "a1")
    problem = f"no topology domain found for pod a/{pod}"
    assert cluster.message("r") == f"cannot determine domain for already scheduled pods: {problem}"
    assert cluster.condition()[0] == "True", "the group was scheduled earlier"


@pytest.mark.usefixtures("cluster")
def test_the_whole_group_does_not_preempt_within_a_domain() -> None:
    switch({**GATES, "WorkloadAwarePreemption": True})
    cluster = Grouped()
    cluster.important("high", 100)
    rack(cluster, "a", "a1", "a2")
    for node in ("a1", "a2"):
        cluster.pod(f"low-{node}", cpu="2", nodeSelector={"kubernetes.io/hostname": node})
    cluster.stage.work()
    gang(cluster, "p", "q", priorityClassName="high")
    cluster.stage.work()
    assert cluster.recorded("Preempted") == []
    words = "workload aware preemption is not supported for pod groups with scheduling constraints"
    assert cluster.condition()[2].endswith(f"{UNSCHEDULABLE}, {words}")


def test_a_group_without_a_constraint_may_use_all_nodes(cluster: Grouped) -> None:
    rack(cluster, "a", "a1")
    rack(cluster, "b", "b1")
    gang(cluster, "p", "q", schedulingConstraints=None)
    assert {*cluster.places().values()} == {"a1", "b1"}
