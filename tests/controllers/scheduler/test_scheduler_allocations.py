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
from tests.controllers.scheduler.test_scheduler import Scene

GROUP = "/apis/resource.k8s.io/v1"
CLAIMS = f"{GROUP}/namespaces/a/resourceclaims"
DRIVER = "gpus.example.com"
IN_VAIN = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


class Devices(Scene):
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
def scene() -> Devices:
    return Devices()


def test_a_claim_is_allocated_on_the_node_of_its_pod_and_reserved_for_it(scene: Devices) -> None:
    scene.claim("mine", 'device.attributes["gpus.example.com"].model == "b"')
    scene.user("p", "mine")
    assert scene.places() == {"p": "n2"}
    fields = scene.fields("mine")
    assert fields["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert [each["name"] for each in fields["status"]["reservedFor"]] == ["p"]
    allocation = fields["status"]["allocation"]
    result = {"request": "r", "driver": DRIVER, "pool": "n2", "device": "gpu-0"}
    assert allocation["devices"] == {"results": [result]}
    field = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    assert allocation["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert allocation["allocationTimestamp"]


def test_a_device_is_allocated_once_until_its_claim_is_deallocated(scene: Devices) -> None:
    for name in "abcde":
        scene.claim(name)
        scene.user(name, name)
    assert [*scene.places().values()].count("") == 1
    given = [device for name in "abcde" for device in scene.devices(name)]
    assert len(given) == len(set(given)) == 4
    waiting = next(name for name, node in scene.places().items() if not node)
    told = f"0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, {IN_VAIN}"
    assert scene.told("FailedScheduling") == [told]
    free = next(name for name in "abcde" if scene.devices(name))
    scene.stage.patch(f"{CLAIMS}/{free}/status", {"status": {"allocation": None, "reservedFor": None}})
    scene.stage.pass_by(60)
    assert scene.places()[waiting]


def test_a_restarted_scheduler_knows_allocated_devices(scene: Devices) -> None:
    scene.claim("all", count=2)
    scene.user("p", "all")
    place = scene.places()["p"]
    scene.stage.start()
    scene.claim("more", count=2)
    scene.user("q", "more")
    assert {*scene.places().values()} == {"n1", "n2"}
    assert all(not each.startswith(place) for each in scene.devices("more"))


def test_two_claims_of_a_pod_are_allocated_on_one_node(scene: Devices) -> None:
    scene.claim("one")
    scene.claim("two")
    scene.user("p", "one", "two")
    node = scene.places()["p"]
    assert sorted([*scene.devices("one"), *scene.devices("two")]) == [f"{node}/gpu-0", f"{node}/gpu-1"]


def test_a_failing_selector_is_a_scheduler_error(scene: Devices) -> None:
    scene.claim("mine", 'device.attributes["gpus.example.com"].speed == 1')
    scene.user("p", "mine")
    assert scene.places() == {"p": ""}
    why = "claim a/mine: selector #0: CEL runtime error: no such key: speed"
    assert scene.told("FailedScheduling") == [f'running "DynamicResources" filter plugin: {why}']
    (condition,) = scene.status("p")["conditions"]
    assert condition["reason"] == "SchedulerError"


def test_an_attribute_of_a_domain_that_no_device_has_is_no_error(scene: Devices) -> None:
    scene.claim("mine", 'has(device.attributes["other.example.com"].model)')
    scene.user("p", "mine")
    assert scene.places() == {"p": ""}
    assert "cannot allocate all claims" in scene.told("FailedScheduling")[0]


def test_an_unused_claim_on_an_unsuitable_node_is_deallocated(scene: Devices) -> None:
    scene.claim("mine", 'device.attributes["gpus.example.com"].model == "a"')
    scene.user("p", "mine")
    assert scene.places() == {"p": "n1"}
    scene.stage.patch(f"{CLAIMS}/mine/status", {"status": {"reservedFor": None}})
    scene.user("q", "mine", nodeSelector={"kubernetes.io/hostname": "n2"})
    scene.places()
    assert "deallocation of ResourceClaim completed" in scene.told("FailedScheduling")[0]
    assert scene.devices("mine") == []


def test_a_claim_in_use_is_not_deallocated(scene: Devices) -> None:
    scene.claim("mine")
    scene.user("p", "mine", nodeSelector={"kubernetes.io/hostname": "n1"})
    scene.places()
    scene.user("q", "mine", nodeSelector={"kubernetes.io/hostname": "n2"})
    scene.places()
    assert "still not schedulable" in scene.told("FailedScheduling")[0]
    assert scene.devices("mine") == ["n1/gpu-0"]


def test_pods_share_a_claim(scene: Devices) -> None:
    scene.claim("mine")
    scene.user("p", "mine")
    scene.user("q", "mine")
    assert len({*scene.places().values()}) == 1
    assert [each["name"] for each in scene.fields("mine")["status"]["reservedFor"]] == ["p", "q"]


def test_a_new_device_makes_a_pod_schedulable(scene: Devices) -> None:
    scene.node("n3")
    scene.claim("mine", count=3)
    scene.user("p", "mine")
    assert scene.places() == {"p": ""}
    scene.slice("n3", [{"name": f"gpu-{at}"} for at in range(3)])
    scene.stage.pass_by(60)
    assert scene.places() == {"p": "n3"}


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
