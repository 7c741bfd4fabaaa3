"""Tests of preemption for whole PodGroups, with the feature gate WorkloadAwarePreemption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.scheduler import scheduler_metrics
from ctrlmgr.controllers.scheduler.pod_groups import FEW_SCHEDULED, NOT_ALONE, UNSCHEDULABLE
from ctrlmgr.controllers.scheduler.scheduler_cache import POD_GROUPS
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.scheduling.group_preemption import NO_VICTIMS
from tests.controllers.scheduler.test_gang_scheduling import GROUPS, Grouped

GATES = {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True}


@pytest.fixture
def cluster() -> Iterator[Grouped]:
    switch(GATES)
    cluster = Grouped()
    cluster.important("high", 100)
    for name in ("n", "m"):
        cluster.node(name)
    yield cluster
    switch({})


def fill(cluster: Grouped, **spec: Any) -> None:
    """Fill both nodes with pods of low priority."""
    for node in ("n", "m"):
        cluster.pod(f"low-{node}", cpu="2", nodeSelector={"kubernetes.io/hostname": node}, **spec)
    assert cluster.places() == {"low-n": "n", "low-m": "m"}


def gang(cluster: Grouped, *, count: int = 2, cpu: str = "2", **spec: Any) -> None:
    cluster.group(minimum=count, priorityClassName="high")
    for name in ("p", "q", "r")[:count]:
        cluster.member(name, cpu=cpu, priorityClassName="high", **spec)
    cluster.stage.work()


def victims(cluster: Grouped) -> set[str]:
    return {each.name for each in cluster.stage.log.snapshot(PODS).objects if each.is_terminating}


def waiting_groups() -> float:
    labels = (scheduler_metrics.WAITING, "default-scheduler")
    return float(scheduler_metrics.GROUP_ATTEMPTS.labels(*labels)._value.get())


def test_a_group_preempts_the_pods_that_are_in_its_way(cluster: Grouped) -> None:
    fill(cluster)
    waited = waiting_groups()
    gang(cluster)
    assert cluster.condition() == ("False", "Unschedulable", UNSCHEDULABLE)
    assert victims(cluster) == {"low-n", "low-m"}
    assert waiting_groups() > waited
    group = cluster.stage.stored(POD_GROUPS, "g", "a")
    assert group is not None
    assert {*cluster.recorded("Preempted")} == {f"Preempted by podgroup {group.uid} on node cluster"}
    target = next(each for each in cluster.status("low-n")["conditions"] if each["type"] == "DisruptionTarget")
    assert target["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"
    assert cluster.message("p").endswith(f"preemption: {NOT_ALONE}")
    for node in ("n", "m"):
        cluster.stage.delete(f"/api/v1/namespaces/a/pods/low-{node}", gracePeriodSeconds=0)
    cluster.stage.pass_by(20)
    assert {*cluster.places().values()} == {"m", "n"}
    assert cluster.condition()[0] == "True"


def test_a_group_spares_pods_that_are_not_in_its_way(cluster: Grouped) -> None:
    cluster.node("free")
    fill(cluster)
    gang(cluster)
    assert len(victims(cluster)) == 1, "one pod of the group fits on the free node"
    nominated = {cluster.status(name).get("nominatedNodeName", "") for name in ("p", "q")}
    assert nominated == {"free", ""}, "a pod that fits without preemption is nominated"


def test_a_group_that_cannot_fit_preempts_nothing(cluster: Grouped) -> None:
    fill(cluster)
    gang(cluster, count=3)
    assert victims(cluster) == set()
    assert cluster.condition() == ("False", "Unschedulable", f"{UNSCHEDULABLE}, {UNSCHEDULABLE}")
    for node in ("n", "m"):
        cluster.stage.delete(f"/api/v1/namespaces/a/pods/low-{node}", gracePeriodSeconds=0)
    cluster.stage.pass_by(20)
    assert {*cluster.places().values()} == {""}, "the model of the nodes is as before the search"
    assert cluster.message("p") == f"{UNSCHEDULABLE}, {FEW_SCHEDULED}"


def test_a_group_without_a_higher_priority_preempts_nothing(cluster: Grouped) -> None:
    fill(cluster)
    cluster.group()
    for name in ("p", "q"):
        cluster.member(name, cpu="2", priorityClassName="high")
    cluster.stage.work()
    assert victims(cluster) == set(), "the priority of the group counts, not the priorities of its pods"
    assert cluster.condition() == ("False", "Unschedulable", f"{UNSCHEDULABLE}, {NO_VICTIMS}")


def test_pods_that_never_preempt_keep_their_group_from_preempting(cluster: Grouped) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.stage.create(classes, {"metadata": {"name": "calm"}, "value": 100, "preemptionPolicy": "Never"})
    fill(cluster)
    cluster.group(priorityClassName="calm")
    for name in ("p", "q"):
        cluster.member(name, cpu="2", priorityClassName="calm")
    cluster.stage.work()
    assert victims(cluster) == set()
    assert cluster.condition()[2] == f"{UNSCHEDULABLE}, not eligible due to preemptionPolicy=Never."


@pytest.mark.parametrize(("mode", "expected"), [("Pod", 1), ("PodGroup", 2)])
def test_the_pods_of_a_group_are_preempted_together_if_its_mode_says_so(
    cluster: Grouped, mode: str, expected: int
) -> None:
    policy = {"schedulingPolicy": {"basic": {}}, "disruptionMode": mode}
    cluster.stage.create(GROUPS, {"metadata": {"name": "low"}, "spec": policy})
    fill(cluster, schedulingGroup={"podGroupName": "low"})
    gang(cluster, count=1)
    assert len(victims(cluster)) == expected


def test_the_priority_of_a_group_is_that_of_its_class(cluster: Grouped) -> None:
    cluster.group(priorityClassName="high")
    cluster.group("plain")
    for name, priority in (("g", 100), ("plain", 0)):
        group = cluster.stage.stored(POD_GROUPS, name, "a")
        assert group is not None
        assert group.to_dict()["spec"]["priority"] == priority
    wrong = {"metadata": {"name": "wrong"}, "spec": {"schedulingPolicy": {"basic": {}}, "priority": 3}}
    answer = cluster.stage.send("POST", GROUPS, wrong)
    words = "priority set in the pod group (3) must match the priority computed (0)"
    assert answer.code == 403
    assert answer.body["message"].endswith(f"{words} based on the priority class set in the spec")
