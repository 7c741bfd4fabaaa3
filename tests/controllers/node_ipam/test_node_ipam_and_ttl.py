from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from ctrlmgr.api.resource import NODES
from ctrlmgr.controllers import node_ipam
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.node_ipam import controller as ipam
from ctrlmgr.controllers.node_ipam.cidr_set import Pool, pools
from ctrlmgr.controllers.ttl import controller as ttl
from ctrlmgr.controllers.ttl.controller import STEPS, next_step
from ctrlmgr.errors import SettingsError
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

SERVICE_CIDR = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/24"]}}


def test_ranges_are_allocated_in_turn_and_released() -> None:
    pool = Pool(ipaddress.ip_network("10.0.0.0/22"), 24)
    first = [str(pool.allocate()) for _ in range(3)]
    assert first == ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]
    pool.release(ipaddress.ip_network("10.0.1.0/24"))
    assert [str(pool.allocate()) for _ in range(3)] == ["10.0.3.0/24", "10.0.1.0/24", "None"]


@pytest.mark.parametrize(
    ("foreign", "first"),
    [
        ("10.0.0.0/25", "10.0.1.0/24"),
        ("10.0.0.0/23", "10.0.2.0/24"),
        ("9.0.0.0/7", "10.0.0.0/24"),
        ("8.0.0.0/5", "None"),
        ("fd00::/64", "10.0.0.0/24"),
    ],
)
def test_ranges_that_overlap_foreign_ranges_are_in_use(foreign: str, first: str) -> None:
    pool = Pool(ipaddress.ip_network("10.0.0.0/22"), 24)
    pool.occupy(ipaddress.ip_network(foreign, strict=False))
    assert str(pool.allocate()) == first


@pytest.mark.parametrize(
    ("cluster", "both", "ipv4", "ipv6", "ranges"),
    [
        ("", 0, 0, 0, ["10.244.0.0/24"]),
        ("10.0.0.0/16,fd00::/48", 0, 0, 0, ["10.0.0.0/24", "fd00::/64"]),
        ("10.0.0.0/16,fd00::/56", 0, 26, 62, ["10.0.0.0/26", "fd00::/62"]),
        ("10.0.0.0/16", 20, 0, 0, ["10.0.0.0/20"]),
    ],
)
def test_the_sizes_of_ranges(cluster: str, both: int, ipv4: int, ipv6: int, ranges: list[str]) -> None:
    assert [str(pool.allocate()) for pool in pools(cluster, both, ipv4, ipv6)] == ranges


@pytest.mark.parametrize(
    ("cluster", "both", "ipv4"), [("10.0.0.0/16", 8, 0), ("10.0.0.0/16,fd00::/48", 24, 0), ("fd00::/40", 64, 0)]
)
def test_invalid_mask_sizes_are_refused(cluster: str, both: int, ipv4: int) -> None:
    with pytest.raises(SettingsError, match="cidr"):
        pools(cluster, both, ipv4, 0)


def ranges(stage: WorkedStage) -> dict[str, Any]:
    return {each.name: each.to_dict()["spec"].get("podCIDRs") for each in stage.log.snapshot(NODES).objects}


def test_nodes_get_ranges_outside_those_of_services_and_other_nodes() -> None:
    recorded: list[StageContext] = []

    def built(stage: WorkedStage) -> Any:
        recorded.append(StageContext(stage))
        return ipam.build(recorded[-1], node_ipam.Options(allocate_node_cidrs=True, cluster_cidr="10.0.0.0/22"))

    stage = WorkedStage(built)
    stage.create("/apis/networking.k8s.io/v1/servicecidrs", SERVICE_CIDR)
    stage.create("/api/v1/nodes", {"metadata": {"name": "own"}, "spec": {"podCIDR": "10.0.1.0/24"}})
    stage.start()
    stage.work()
    for name in ("a", "b", "c"):
        stage.create("/api/v1/nodes", {"metadata": {"name": name}})
        stage.work()
    assert ranges(stage) == {"own": ["10.0.1.0/24"], "a": ["10.0.2.0/24"], "b": ["10.0.3.0/24"], "c": None}
    assert recorded[-1].recorded.reasons() == ["CIDRNotAvailable"]
    stage.delete("/api/v1/nodes/own")
    stage.work()
    stage.pass_by(10)
    assert ranges(stage)["c"] == ["10.0.1.0/24"]


def test_without_the_setting_no_ranges_are_allocated() -> None:
    stage = WorkedStage(lambda stage: ipam.build(StageContext(stage), node_ipam.Options()))
    stage.create("/api/v1/nodes", {"metadata": {"name": "a"}})
    stage.work()
    assert ranges(stage) == {"a": None}


@pytest.mark.parametrize(
    ("step", "nodes", "seconds"),
    [(0, 100, 0), (0, 101, 15), (1, 90, 15), (1, 89, 0), (0, 5000, 300), (5, 10, 0), (2, 1000, 30), (5, 9000, 600)],
)
def test_the_ttl_grows_in_steps_that_overlap(step: int, nodes: int, seconds: int) -> None:
    assert STEPS[next_step(step, nodes)].seconds == seconds


def test_the_ttl_annotation_is_restored() -> None:
    stage = WorkedStage(lambda stage: ttl.build(StageContext(stage), NoOptions()))
    stage.create("/api/v1/nodes", {"metadata": {"name": "a", "annotations": {ttl.ANNOTATION: "77"}}})
    stage.work()
    stage.patch("/api/v1/nodes/a", {"metadata": {"annotations": {ttl.ANNOTATION: None}}})
    stage.work()
    assert stage.send("GET", "/api/v1/nodes/a").body["metadata"]["annotations"] == {ttl.ANNOTATION: "0"}
