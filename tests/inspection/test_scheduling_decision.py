"""Tests of repeated scheduling decisions: devices, extenders, profiles, and pods that the scheduler does not queue."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.eventlog import Author, Cause, EventLog, EventType, Proposal, open_log
from ctrlmgr.inspection.database import open_database
from ctrlmgr.inspection.scheduling_decision import lines, of, waiting
from ctrlmgr.testing import FakeClock
from tests.inspection.story import START, obj

POD = Key("a", "p")
FAR = 1_000
GPU: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}
RESOURCE, GROUPS = "resource.k8s.io/v1", "scheduling.k8s.io/v1alpha2"


class Log:
    """A log in a file, with one node."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/log.db"
        self.log: EventLog = open_log(self.url, clock=FakeClock(START), random=random.Random(1), migrate=True)
        allocatable = {"cpu": "2", "memory": "4Gi", "pods": "10"}
        self.add(obj("Node", "n", "", spec={}, status={"allocatable": allocatable}))

    def add(self, new: Object) -> None:
        self.log.append([Proposal(EventType.ADDED, new, None)], author=Author("alice"))

    def pod(self, name: str = "p", **spec: Any) -> None:
        fields = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}], **spec}
        self.add(obj("Pod", name, "a", spec=fields))

    def decide(self, *, message: str = "", node: str = "", **spec: Any) -> None:
        """Write the pod as the scheduler does: with a node, or with the reason why it has none."""
        fields = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}], **spec}
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        status = {"conditions": [refused]} if message else {}
        spec_after = {**fields, "nodeName": node} if node else fields
        new = obj("Pod", "p", "a", spec=spec_after, status=status)
        cause = Cause(7, "kube-scheduler", "a/p", 1, START, ())
        self.log.append([Proposal(EventType.MODIFIED, new, None)], author=Author("system:kube-scheduler"), cause=cause)

    def why(self) -> str:
        with open_database(self.url) as database:
            placed = of(database, POD, until=FAR)
            return "\n".join(lines(placed)) if placed is not None else ""

    def waits(self) -> str:
        with open_database(self.url) as database:
            return waiting(database, POD, until=FAR)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    yield log
    log.log.close()


def test_a_refusal_that_the_log_does_not_explain_is_quoted(log: Log) -> None:
    log.pod()
    log.decide(message="0/1 nodes are available: 1 too hot.")
    assert "the scheduler refused the pod because of an extender, a plugin of an app" in log.why()
    assert log.why().endswith(": 0/1 nodes are available: 1 too hot.")
    assert log.waits() == "", "the scheduler has tried the pod"


def test_the_node_of_a_pod_of_another_profile_may_be_refused_by_the_default_profile(log: Log) -> None:
    spec: dict[str, Any] = {"schedulerName": "packing", "nodeSelector": {"zone": "a"}}
    log.pod(**spec)
    log.decide(node="n", **spec)
    assert "the profile packing decided; the lines above show the decision of the default profile" in log.why()
    assert "the scheduler chose n because of an extender" in log.why()


def test_a_bound_pod_has_no_notes(log: Log) -> None:
    log.pod()
    log.decide(node="n")
    assert "the only suitable node" in log.why()
    assert "because of" not in log.why()


def test_each_device_is_explained(log: Log) -> None:
    selector = {"cel": {"expression": "device.driver == 'other'"}}
    log.add(obj("DeviceClass", "gpus", "", RESOURCE, spec={}))
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1, "selectors": [selector]}
    log.add(
        obj("ResourceClaim", "mine", "a", RESOURCE, spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
    )
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{at}"} for at in range(10)]
    log.add(
        obj("ResourceSlice", "s", "", RESOURCE, spec={"driver": "d", "nodeName": "n", "pool": pool, "devices": devices})
    )
    log.pod(**GPU)
    log.decide(message="0/1 nodes are available: 1 cannot allocate all claims.", **GPU)
    found = log.why()
    assert "rejected by DynamicResources: cannot allocate all claims" in found
    reason = "selector #0 of the request does not match: device.driver == 'other'"
    assert f"    device d/n/gpu-0, claim a/mine, request r: {reason}" in found
    assert "    … and 2 more devices" in found


def gang(log: Log, *, exists: bool = True, minimum: int = 3) -> None:
    for name in ("p", "q"):
        log.pod(name, schedulingGroup={"podGroupName": "g"})
    if exists:
        policy = {"gang": {"minCount": minimum}}
        log.add(obj("PodGroup", "g", "a", GROUPS, spec={"schedulingPolicy": policy}))


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda log: log.pod(), ""),
        (lambda log: log.pod(nodeName="n"), ""),
        (lambda log: log.pod(schedulingGates=[{"name": "later"}]), "it has scheduling gates: later"),
        (lambda log: log.pod(schedulerName="mine"), "it names the scheduler mine, which did not write to it"),
        (lambda log: log.pod(**GPU), 'could not find claim "a/mine"'),
        (
            gang,
            "waiting for minCount pods from a gang to appear in scheduling queue: 2 of 3 pods exist",
        ),
        (lambda log: gang(log, minimum=2), ""),
        (
            lambda log: gang(log, exists=False),
            'waiting for pods\'s pod group "g" to appear in scheduling queue',
        ),
    ],
)
def test_a_pod_that_is_not_queued_has_a_reason(log: Log, prepare: Callable[[Log], None], reason: str) -> None:
    prepare(log)
    assert log.why() == ""
    assert log.waits() == reason
