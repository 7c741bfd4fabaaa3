"""Tests of pods for which the scheduler allocates ResourceClaims, from the ResourceSlices of drivers to the claim's
status.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.kinds.builtin import builtin_kinds
from tests.controllers.scheduler.test_scheduler import SchedulerCluster

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/a/resourceclaims"
DRIVER = "gpus.example.com"
IN_VAIN = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


class Devices(SchedulerCluster):
    """Return two nodes with two devices each: devices of model `a` on node n1, and of model `b` on node n2."""

    def __init__(self) -> None:
        super().__init__()
        for node, model in (("n1", "a"), ("n2", "b")):
            self.node(node)
            devices = [{"name": f"gpu-{at}", "attributes": {"model": {"string": model}}} for at in range(2)]
            self.slice(node, devices)
        self.stage.create(f"{GROUP}/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {}})

    def slice(self, node: str, devices: list[dict[str, Any]]) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        self.stage.create(f"{GROUP}/resourceslices", {"metadata": {"name": f"{node}-gpus"}, "spec": spec})

    def claim(self, name: str, expression: str = "true", **request: Any) -> None:
        exactly = {"deviceClassName": "gpus", "selectors": [{"cel": {"expression": expression}}], **request}
        devices = {"requests": [{"name": "r", "exactly": exactly}]}
        self.stage.create(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": devices}})

    def user(self, name: str, *claims: str, **spec: Any) -> None:
        entries = [{"name": each, "resourceClaimName": each} for each in claims]
        self.pod(name, cpu="100m", resourceClaims=entries, **spec)

    def fields(self, claim: str) -> dict[str, Any]:
        found = self.stage.stored(RESOURCE_CLAIMS, claim, "a")
        assert found is not None
        fields: dict[str, Any] = found.to_dict()
        return fields

    def devices(self, claim: str) -> list[str]:
        allocation = (self.fields(claim).get("status") or {}).get("allocation") or {"devices": {"results": []}}
        return [f"{each['pool']}/{each['device']}" for each in allocation["devices"]["results"]]


@pytest.fixture
def cluster() -> Devices:
    return Devices()


def test_a_claim_is_allocated_on_the_node_of_its_pod_and_reserved_for_it(cluster: Devices) -> None:
    cluster.claim("mine", 'device.attributes["gpus.example.com"].model == "b"')
    cluster.user("p", "mine")
    assert cluster.places() == {"p": "n2"}
    fields = cluster.fields("mine")
    assert fields["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert [each["name"] for each in fields["status"]["reservedFor"]] == ["p"]
    allocation = fields["status"]["allocation"]
    result = {"request": "r", "driver": DRIVER, "pool": "n2", "device": "gpu-0"}
    assert allocation["devices"] == {"results": [result]}
    field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert allocation["allocationTimestamp"]


def test_a_device_is_allocated_once_until_its_claim_is_deallocated(cluster: Devices) -> None:
    for name in "abcde":
        cluster.claim(name)
        cluster.user(name, name)
    assert [*cluster.places().values()].count("") == 1
    given = [device for name in "abcde" for device in cluster.devices(name)]
    assert len(given) == len(set(given)) == 4
    waiting = next(name for name, node in cluster.places().items() if not node)
    recorded = f"0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, {IN_VAIN}"
    assert cluster.recorded("FailedScheduling") == [recorded]
    free = next(name for name in "abcde" if cluster.devices(name))
    cluster.stage.patch(f"{CLAIMS}/{free}/status", {"status": {"allocation": None, "reservedFor": None}})
    cluster.stage.pass_by(60)
    assert cluster.places()[waiting]


def test_a_restarted_scheduler_knows_allocated_devices(cluster: Devices) -> None:
    cluster.claim("all", count=2)
    cluster.user("p", "all")
    place = cluster.places()["p"]
    cluster.stage.start()
    cluster.claim("more", count=2)
    cluster.user("q", "more")
    assert {*cluster.places().values()} == {"n1", "n2"}
    assert all(not each.startswith(place) for each in cluster.devices("more"))


def test_two_claims_of_a_pod_are_allocated_on_one_node(cluster: Devices) -> None:
    cluster.claim("one")
    cluster.claim("two")
    cluster.user("p", "one", "two")
    node = cluster.places()["p"]
    assert sorted([*cluster.devices("one"), *cluster.devices("two")]) == [f"{node}/gpu-0", f"{node}/gpu-1"]


def test_a_failing_selector_is_a_scheduler_error(cluster: Devices) -> None:
    cluster.claim("mine", 'device.attributes["gpus.example.com"].speed == 1')
    cluster.user("p", "mine")
    assert cluster.places() == {"p": ""}
    why = "claim a/mine: selector #0: CEL runtime error: no such key: speed"
    assert cluster.recorded("FailedScheduling") == [f'running "DynamicResources" filter plugin: {why}']
    (condition,) = cluster.status("p")["conditions"]
    assert condition["reason"] == "SchedulerError"


def test_an_attribute_of_a_domain_that_no_device_has_is_no_error(cluster: Devices) -> None:
    cluster.claim("mine", 'has(device.attributes["other.example.com"].model)')
    cluster.user("p", "mine")
    assert cluster.places() == {"p": ""}
    assert "cannot allocate all claims" in cluster.recorded("FailedScheduling")[0]


def test_an_unused_claim_on_an_unsuitable_node_is_deallocated(cluster: Devices) -> None:
    cluster.claim("mine", 'device.attributes["gpus.example.com"].model == "a"')
    cluster.user("p", "mine")
    assert cluster.places() == {"p": "n1"}
    cluster.stage.patch(f"{CLAIMS}/mine/status", {"status": {"reservedFor": None}})
    cluster.user("q", "mine", nodeSelector={"kubernetes.io/hostname": "n2"})
    cluster.places()
    assert "deallocation of ResourceClaim completed" in cluster.recorded("FailedScheduling")[0]
    assert cluster.devices("mine") == []


def test_a_claim_in_use_is_not_deallocated(cluster: Devices) -> None:
    cluster.claim("mine")
    cluster.user("p", "mine", nodeSelector={"kubernetes.io/hostname": "n1"})
    cluster.places()
    cluster.user("q", "mine", nodeSelector={"kubernetes.io/hostname": "n2"})
    cluster.places()
    assert "still not schedulable" in cluster.recorded("FailedScheduling")[0]
    assert cluster.devices("mine") == ["n1/gpu-0"]


def test_pods_share_a_claim(cluster: Devices) -> None:
    cluster.claim("mine")
    cluster.user("p", "mine")
    cluster.user("q", "mine")
    assert len({*cluster.places().values()}) == 1
    assert [each["name"] for each in cluster.fields("mine")["status"]["reservedFor"]] == ["p", "q"]


def test_a_new_device_makes_a_pod_schedulable(cluster: Devices) -> None:
    cluster.node("n3")
    cluster.claim("mine", count=3)
    cluster.user("p", "mine")
    assert cluster.places() == {"p": ""}
    cluster.slice("n3", [{"name": f"gpu-{at}"} for at in range(3)])
    cluster.stage.pass_by(60)
    assert cluster.places() == {"p": "n3"}


class RuledDevices(Devices):
    """Nodes with devices, in a cluster that serves DeviceTaintRules."""

    def kinds(self) -> Kinds:
        return builtin_kinds(served=["resource.k8s.io/v1beta2"])


@pytest.fixture
def ruled() -> Iterator[Devices]:
    switch({"DRADeviceTaintRules": True})
    yield RuledDevices()
    switch({})


@pytest.mark.parametrize(
    ("effect", "nodes"), [("NoSchedule", {"n1", ""}), ("NoExecute", {"n1", ""}), ("None", {"n1", "n2"})]
)
def test_a_device_taint_rule_excludes_devices_until_it_is_deleted(ruled: Devices, effect: str, nodes: set[str]) -> None:
    """The rule taints the devices of node n2."""
    path = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
    spec = {"deviceSelector": {"driver": DRIVER, "pool": "n2"}, "taint": {"key": "k", "effect": effect}}
    ruled.stage.create(path, {"metadata": {"name": "r"}, "spec": spec})
    for name in ("a", "b", "c"):
        ruled.claim(name)
        ruled.user(name, name)
    assert {*ruled.places().values()} == nodes
    ruled.stage.delete(f"{path}/r")
    ruled.stage.pass_by(60)
    assert {*ruled.places().values()} == {"n1", "n2"}
