from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.repair.port_findings import collect_ports, find_port_findings, port_claim
from ctrlmgr.controllers.repair.repair_findings import Finding, ServiceValue
from ctrlmgr.kinds.allocators.service_ranges import NODE_PORTS, PortRange
from ctrlmgr.testing.builders import a_service
from tests.controllers.repair.cluster import RepairCluster, rounds

PORTS = PortRange(30000, 30003)


def with_ports(name: str, *ports: int | tuple[int, str], health: int = 0) -> Object:
    listed = [(port, "TCP") if isinstance(port, int) else port for port in ports]
    fields = a_service(name).to_dict()
    fields["spec"]["ports"] = [{"port": 80, "nodePort": port, "protocol": protocol} for port, protocol in listed]
    fields["spec"]["healthCheckNodePort"] = health
    return Object.from_dict(fields)


def claim(port: int, holder: str = "web") -> Object:
    fields = port_claim(ServiceValue(str(port), a_service(holder))).to_dict()
    fields["metadata"]["uid"] = f"uid-of-{port}"
    return Object.from_dict(fields)


def find(services: Sequence[Object], claims: Sequence[Object]) -> list[tuple[str, str, str, str]]:
    found: list[Finding] = find_port_findings(services, claims, PORTS)
    return [(each.problem, each.reason, each.subject.name, each.message) for each in found]


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param(with_ports("web", 30000, 30001), [30000, 30001], id="two"),
        pytest.param(with_ports("web", (30000, "TCP"), (30000, "UDP")), [30000], id="one for both protocols"),
        pytest.param(with_ports("web", 30000, 30000), [30000, 30000], id="twice the same"),
        pytest.param(with_ports("web", 30000, health=30001), [30000, 30001], id="health check"),
        pytest.param(with_ports("web", 30000, health=30000), [30000, 30000], id="health check where a port is"),
        pytest.param(with_ports("web", (30000, "UDP"), health=30000), [30000], id="health check beside UDP"),
        pytest.param(a_service(), [], id="none"),
    ],
)
def test_ports_of_a_service(service: Object, expected: list[int]) -> None:
    assert collect_ports(service) == expected


def test_correct_services_and_claims_have_no_findings() -> None:
    services = [with_ports("web", 30000, (30000, "UDP")), with_ports("db", 30001, health=30002)]
    assert find(services, [claim(30000), claim(30001, "db"), claim(30002, "db")]) == []


@pytest.mark.parametrize(
    ("service", "claims", "expected"),
    [
        pytest.param(
            with_ports("web", 30000),
            [],
            ("repair", "PortNotAllocated", "web", "Port 30000 is not allocated; repairing"),
            id="no claim",
        ),
        pytest.param(
            with_ports("web", 30000),
            [claim(30000, "gone")],
            ("repair", "PortNotAllocated", "web", "Port 30000 is not allocated; repairing"),
            id="somebody else's claim",
        ),
        pytest.param(
            with_ports("web", 31000),
            [claim(31000)],
            (
                "outOfRange",
                "PortOutOfRange",
                "web",
                "Port 31000 is not within the port range 30000-30003; please recreate service",
            ),
            id="out of range, and its claim is not a leak",
        ),
        pytest.param(
            with_ports("web", 30000, 30000),
            [claim(30000)],
            (
                "duplicate",
                "PortAlreadyAllocated",
                "web",
                "Port 30000 was assigned to multiple services; please recreate service",
            ),
            id="twice in one Service",
        ),
        pytest.param(
            with_ports("web", 30000),
            [claim(30000), claim(30001, "gone")],
            (
                "leak",
                "PortLeaked",
                "30001",
                "the node port 30001 for Service default/gone appears to have leaked: cleaning up",
            ),
            id="a leak",
        ),
    ],
)
def test_findings_of_one_service(service: Object, claims: list[Object], expected: tuple[str, str, str, str]) -> None:
    assert find([service], claims) == [expected]


def test_a_service_without_a_free_port_is_reported() -> None:
    services = [with_ports("all", 30000, 30001, 30002), with_ports("twin", 30000)]
    claims = [claim(port, "all") for port in (30000, 30001, 30002)]
    assert [each[1] for each in find(services, claims)] == ["PortAlreadyAllocated"]
    services.append(with_ports("last", 30003))
    full = find(services, [*claims, claim(30003, "last")])[-1]
    message = "Port range 30000-30003 is full; you must widen the port range in order to create new services"
    assert full == ("full", "PortRangeFull", "twin", message)


def test_a_missing_claim_is_created_and_a_wrong_one_corrected() -> None:
    cluster = RepairCluster()
    ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30002}]
    cluster.service(type="NodePort", ports=ports)
    before = cluster.get(NODE_PORTS, "30001").to_dict()
    cluster.remove(cluster.get(NODE_PORTS, "30001"))

    def blame(fields: dict[str, Any]) -> None:
        fields["spec"]["parentRef"]["namespace"] = "elsewhere"

    cluster.tamper(cluster.get(NODE_PORTS, "30002"), blame)
    assert rounds(cluster.repair_ports, 2) == [
        [("PortNotAllocated", "30001", "repaired"), ("PortNotAllocated", "30002", "repaired")],
        [],
    ]
    after = cluster.get(NODE_PORTS, "30001").to_dict()
    assert after.keys() == before.keys()
    assert after["metadata"].keys() == before["metadata"].keys()
    assert cluster.claim(NODE_PORTS, "30002") == "a/web"
    assert [event["involvedObject"]["name"] for event in cluster.events()] == [
        "web"
    ]  # one series, because the recorder does not compare messages


def test_a_leaked_port_is_released_in_the_third_round_without_an_event() -> None:
    cluster = RepairCluster()
    gone = ServiceValue("30005", a_service("gone"))
    cluster.add(port_claim(gone).with_metadata(uid="leaked"))
    assert rounds(cluster.repair_ports, 4) == [
        [("PortLeaked", "30005", "flagged")],
        [("PortLeaked", "30005", "flagged")],
        [("PortLeaked", "30005", "released")],
        [],
    ]
    assert cluster.claims() == {}
    assert cluster.events() == []
