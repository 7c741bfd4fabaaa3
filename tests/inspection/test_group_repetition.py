"""Tests of repeated decisions about PodGroups: which pods fit, where, and which pods are preempted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.eventlog import Author, Cause, EventType, Proposal
from ctrlmgr.inspection.database import open_database
from ctrlmgr.inspection.scheduling_decision import lines, of
from tests.inspection.story import START, obj
from tests.inspection.test_scheduling_decision import FAR, GROUPS, Log

REQUESTS = {"requests": {"cpu": "2"}}
SPEC: dict[str, Any] = {
    "schedulerName": "default-scheduler",
    "containers": [{"name": "c", "image": "i", "resources": REQUESTS}],
}
MEMBER: dict[str, Any] = {**SPEC, "schedulingGroup": {"podGroupName": "g"}, "priority": 9}
UNSCHEDULABLE = "pod group is unschedulable"


class GroupLog(Log):
    """A log of a cluster with PodGroups, in which the scheduler writes with one cause for each reconcile."""

    def scheduler_writes(self, new: Object, reconcile: int = 7) -> None:
        cause = Cause(reconcile, "kube-scheduler", "a/p", 1, START, ())
        self.log.append([Proposal(EventType.MODIFIED, new, None)], author=Author("system:kube-scheduler"), cause=cause)

    def node(self, name: str, **labels: str) -> None:
        status = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}
        self.add(obj("Node", name, "", meta={"labels": labels}, spec={}, status=status))

    def group(self, **spec: Any) -> None:
        policy = {"gang": {"minCount": 2}}
        self.add(obj("PodGroup", "g", "a", GROUPS, spec={"schedulingPolicy": policy, **spec}))

    def members(self, *names: str) -> None:
        for name in names:
            self.add(obj("Pod", name, "a", spec=MEMBER, meta={"creationTimestamp": "2026-01-02T03:04:05Z"}))

    def bind(self, name: str, node: str, reconcile: int = 7) -> None:
        self.scheduler_writes(obj("Pod", name, "a", spec={**MEMBER, "nodeName": node}), reconcile)

    def refuse(self, name: str, message: str, reconcile: int = 7) -> None:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        meta = {"creationTimestamp": "2026-01-02T03:04:05Z"}
        self.scheduler_writes(
            obj("Pod", name, "a", spec=MEMBER, status={"conditions": [condition]}, meta=meta), reconcile
        )

    def tell_group(self, status: str, reconcile: int = 7, **spec: Any) -> None:
        condition = {"type": "PodGroupScheduled", "status": status, "reason": "r", "message": "m"}
        fields = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
        new = obj("PodGroup", "g", "a", GROUPS, spec=fields, status={"conditions": [condition]})
        self.scheduler_writes(new, reconcile)

    def why_of(self, name: str) -> list[str]:
        with open_database(self.url) as database:
            placed = of(database, Key("a", name), until=FAR)
            assert placed is not None
            return [*lines(placed)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GroupLog]:
    log = GroupLog(tmp_path)
    yield log
    log.log.close()


RACKS: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}


def test_the_domains_of_a_group_are_compared(log: GroupLog) -> None:
    log.node("a1", rack="a")
    for name in ("b1", "b2"):
        log.node(name, rack="b")
    log.group(**RACKS)
    log.members("p", "q")
    log.tell_group("True", **RACKS)
    log.bind("p", "b2")
    log.bind("q", "b1", reconcile=8)
    found = log.why_of("q")
    assert found[-3:] == [
        "  pod group a/g: 2 of 2 waiting pods fit; the gang needs 2 pods",
        "    on nodes with rack=a: 1 pods fit",
        "    on nodes with rack=b: 2 pods fit",
    ]
    (chosen,) = [each for each in found if "b1" in each]
    assert chosen == "  b1  the only suitable node", "the other pod of the group counts on its node"
    assert any("b2  rejected by NodeResourcesFit" in each for each in found)
    assert not any("because of" in each for each in found)


def test_the_victims_of_a_group_are_named(log: GroupLog) -> None:
    log.node("m")
    low = {**SPEC, "priority": 0}
    for node in ("n", "m"):
        log.add(obj("Pod", f"low-{node}", "a", spec={**low, "nodeName": node}))
    log.group(priority=9)
    log.members("p", "q")
    log.tell_group("False", priority=9)
    log.refuse("p", "0/2 nodes are available: 2 Insufficient cpu.")
    found = log.why_of("p")
    assert found[-3:] == [
        "  pod group a/g: 0 of 2 waiting pods fit; the gang needs 2 pods",
        "    preemption for the group: a/low-m, a/low-n are deleted",
        f"    {UNSCHEDULABLE}",
    ]


def test_a_gang_of_which_too_few_pods_fit_is_explained(log: GroupLog) -> None:
    log.group()
    log.members("p", "q")
    log.tell_group("False")
    message = f"{UNSCHEDULABLE}, waiting for minCount pods from a gang to be scheduled"
    log.refuse("p", message)
    log.refuse("q", "0/1 nodes are available: 1 Insufficient cpu.")
    assert "  n  the only suitable node" in log.why_of("p")
    assert log.why_of("p")[-2:] == [
        "  pod group a/g: 1 of 2 waiting pods fit; the gang needs 2 pods",
        f"    {UNSCHEDULABLE}",
    ]
    assert any("n  rejected by NodeResourcesFit" in each for each in log.why_of("q"))


def test_only_the_writes_of_the_last_decision_count(log: GroupLog) -> None:
    log.group()
    log.members("p", "q")
    log.tell_group("False")
    log.refuse("p", "first")
    log.refuse("q", "first")
    log.node("m")
    log.tell_group("True", reconcile=8)
    log.bind("p", "n", reconcile=8)
    log.bind("q", "m", reconcile=9)
    assert log.why_of("q")[-1] == "  pod group a/g: 2 of 2 waiting pods fit; the gang needs 2 pods"
    assert "  m  the only suitable node" in log.why_of("q")


def test_a_pod_that_joined_later_is_decided_alone(log: GroupLog) -> None:
    log.node("m")
    log.group()
    log.members("p", "q")
    log.tell_group("True")
    log.bind("p", "n")
    log.bind("q", "m", reconcile=8)
    log.node("k")
    log.members("r")
    log.bind("r", "k", reconcile=9)
    assert "  k  the only suitable node" in log.why_of("r")
