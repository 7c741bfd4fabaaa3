"""Property test of Services of all types with random changes; the address and port ranges are so small that they are
often full.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.errors import ApiError, NotFound
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from tests.kinds.core.service.service_stage import Stage

STEPS = 250
NAMES = "abcdef"
RANGES = [
    Ranges.parse("10.96.0.0/29", "30000-30005"),
    Ranges.parse("10.96.0.0/29,fd00:10:96::/125", "30000-30005"),
    Ranges.parse("fd00:10:96::/125,10.96.0.0/28", "30000-30017"),
]
ADDRESSES = ["None", "10.96.0.1", "10.96.0.3", "fd00:10:96::3", "FD00:10:96::0004", "10.96.0.7", "10.96.0.003", "x"]
NODE_PORTS = [0, 0, 0, 0, 30001, 30002, 30003, 40000]


class Client:
    """A client that writes mostly valid Services."""

    def __init__(self, ranges: Ranges, seed: int) -> None:
        self.stage = Stage(ranges, seed)
        self.random = random.Random(seed)

    def ports(self) -> list[dict[str, Any]]:
        count = self.random.choice([1, 1, 1, 2, 3])
        ports = [{"name": f"p{index}", "port": 80 + index} for index in range(count)]
        for port in ports:
            if self.random.random() < 0.3:
                port |= {"port": 53, "protocol": self.random.choice(["TCP", "UDP"])}
            if node_port := self.random.choice(NODE_PORTS):
                port["nodePort"] = node_port
        return ports

    def spec(self) -> dict[str, Any]:
        """Generate a Service spec in which fields that are invalid for the type are rare."""
        kind = self.random.choice(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])
        spec: dict[str, Any] = {"type": kind, "externalName": "a.example", "ports": self.ports()}
        rare = {
            "clusterIP": self.random.choice(ADDRESSES),
            "selector": {"a": "b"},
            "ipFamilies": self.random.choice([["IPv4"], ["IPv6"], ["IPv6", "IPv4"]]),
            "ipFamilyPolicy": self.random.choice(["SingleStack", "PreferDualStack", "RequireDualStack"]),
            "healthCheckNodePort": self.random.choice(NODE_PORTS),
            "allocateLoadBalancerNodePorts": self.random.random() < 0.5,
        }
        spec |= {field: value for field, value in rare.items() if self.random.random() < 0.15}
        if kind in ("NodePort", "LoadBalancer"):
            spec["externalTrafficPolicy"] = self.random.choice(["Cluster", "Local"])
        elif kind == "ClusterIP" and self.random.random() < 0.9:
            for port in spec["ports"]:
                port.pop("nodePort", None)
        return spec

    def write(self) -> None:
        """Make one random request to create, change or delete a Service."""
        stage, name, spec = self.stage, self.random.choice(NAMES), self.spec()
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        change = {field: spec[field] for field in self.random.sample(sorted(spec), k=min(len(spec), 2))}
        ways: list[Callable[[], object]] = [
            lambda: stage.patch({"spec": change}, name),
            lambda: stage.patch({"spec": {"type": spec["type"], "externalName": "a.example"}}, name),
            lambda: stage.patch({"spec": change}, name, dry_run=True),
            lambda: stage.update(body, name),
            lambda: stage.update(stage.get(name), name),
            lambda: stage.delete(name),
        ]
        try:
            stage.get(name)
        except NotFound:
            ways = [lambda: stage.create(spec, name), lambda: stage.create(spec, name, dry_run=True)]
        self.random.choice(ways)()


@pytest.mark.parametrize("seed", range(12))
def test_claims_equal_used_values_without_duplicates(seed: int) -> None:
    client = Client(RANGES[seed % len(RANGES)], seed)
    stage, ranges = client.stage, client.stage.strategy.allocator.ranges
    done = 0
    for _ in range(STEPS):
        before = dict(stage.state.objects)
        try:
            client.write()
        except ApiError as error:
            refusal: ApiError | None = error
        else:
            refusal = None
            done += 1
        if refusal is not None:
            assert refusal.code in (422, 500), "that a claim was taken or gone must be found out before the append"
            assert stage.state.objects == before
        assert stage.claimed() == stage.used()
        assert all(int(name) in ranges.ports for name in stage.claimed() if name.isdigit())
    assert done > STEPS / 4, "most of what is drawn should be tried to the end"
