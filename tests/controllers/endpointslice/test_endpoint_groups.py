"""Tests of the computation of endpoints, grouped by ports, from a Service, its pods and their nodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.discovery import Endpoint, EndpointPort
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpointslice.endpoint_groups import (
    Group,
    address_types,
    canonical_ip,
    desired_groups,
    identity,
    sorted_ports,
)
from ctrlmgr.testing.builders import a_pod, a_service, container_port, service_port

ZONES = {"node-a": "zone-1", "node-b": "zone-2", "outside": ""}
DELETED = "2026-01-01T00:00:00Z"


def groups(service: Object, *pods: Object, address_type: str = "IPv4") -> list[Group]:
    found = desired_groups(service.view(Service), [pod.view(Pod) for pod in pods], address_type, ZONES.get)
    assert all(ports == frozenset(group.ports) for ports, group in found.items())
    return [*found.values()]


def only(service: Object, pod: Object, address_type: str = "IPv4") -> dict[str, Any]:
    """Return the only endpoint in the result, as JSON."""
    [group] = groups(service, pod, address_type=address_type)
    [endpoint] = group.endpoints.values()
    found: dict[str, Any] = msgspec.to_builtins(endpoint)
    return found


def count(service: Object, *pods: Object) -> int:
    return sum(len(group.endpoints) for group in groups(service, *pods))


def test_an_endpoint_names_its_pod_node_and_zone() -> None:
    assert only(a_service(), a_pod("p", uid="u1")) == {
        "addresses": ["10.0.0.1"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u1"},
        "nodeName": "node-a",
        "zone": "zone-1",
    }


@pytest.mark.parametrize(
    ("ready", "deleted_at", "publish", "conditions"),
    [
        pytest.param(True, None, False, (True, True, False), id="ready"),
        pytest.param(False, None, False, (False, False, False), id="not ready"),
        pytest.param(None, None, False, (False, False, False), id="nothing said of readiness"),
        pytest.param(True, DELETED, False, (False, True, True), id="deleted but still serving"),
        pytest.param(False, DELETED, False, (False, False, True), id="deleted and no longer serving"),
        pytest.param(False, None, True, (True, False, False), id="published all the same"),
        pytest.param(True, DELETED, True, (True, True, True), id="published, deleted but still serving"),
        pytest.param(False, DELETED, True, (True, False, True), id="published, deleted and no longer serving"),
    ],
)
def test_conditions(ready: bool | None, deleted_at: str | None, publish: bool, conditions: tuple[bool, ...]) -> None:
    found = only(a_service(publish_not_ready=publish), a_pod(ready=ready, deleted_at=deleted_at))["conditions"]
    assert found == dict(zip(("ready", "serving", "terminating"), conditions, strict=True))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(phase="Failed"), id="failed"),
        pytest.param(a_pod(phase="Succeeded"), id="succeeded"),
        pytest.param(a_pod(phase="Succeeded", restart_policy="Always"), id="whatever its restart policy"),
        pytest.param(a_pod(ips=[]), id="without an address"),
        pytest.param(a_pod(ips=["fd00::1"]), id="without an address of the family"),
    ],
)
@pytest.mark.parametrize("publish", [False, True])
def test_terminal_pods_and_pods_without_addresses_are_no_endpoints(pod: Object, publish: bool) -> None:
    assert count(a_service(publish_not_ready=publish), pod) == 0


@pytest.mark.parametrize(
    ("node", "publish", "expected"),
    [
        pytest.param("node-b", False, ("node-b", "zone-2"), id="a node in a zone"),
        pytest.param("outside", False, ("outside", None), id="a node in no zone"),
        pytest.param("missing", False, None, id="a node that does not exist"),
        pytest.param("missing", True, ("missing", None), id="a node that does not exist, but everything is published"),
        pytest.param("", False, None, id="no node"),
        pytest.param("", True, (None, None), id="no node, but everything is published"),
    ],
)
def test_nodes(node: str, publish: bool, expected: tuple[str | None, str | None] | None) -> None:
    service, pod = a_service(publish_not_ready=publish), a_pod(node=node)
    if expected is None:
        assert count(service, pod) == 0
    else:
        found = only(service, pod)
        assert (found.get("nodeName"), found.get("zone")) == expected


@pytest.mark.parametrize(
    ("hostname", "subdomain", "expected"),
    [
        pytest.param("db-0", "web", "db-0", id="a hostname under the service's name"),
        pytest.param("db-0", "other", None, id="a hostname under another name"),
        pytest.param("db-0", "", None, id="a hostname alone"),
        pytest.param("", "web", None, id="a subdomain alone"),
    ],
)
def test_hostnames(hostname: str, subdomain: str, expected: str | None) -> None:
    assert only(a_service(), a_pod(hostname=hostname, subdomain=subdomain)).get("hostname") == expected


@pytest.mark.parametrize(
    ("address_type", "expected"),
    [("IPv4", ["10.0.0.1"]), ("IPv6", ["fd00::1"])],
)
def test_each_family_has_its_address(address_type: str, expected: list[str]) -> None:
    pod = a_pod(ips=["10.0.0.1", "fd00::1"])
    assert only(a_service(), pod, address_type)["addresses"] == expected


@pytest.mark.parametrize(
    ("address", "canonical"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.0.1", "10.0.0.1"),
        ("FD00:0:0::1", "fd00::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", None),
        ("nonsense", None),
    ],
)
def test_addresses_are_formatted_like_go(address: str, canonical: str | None) -> None:
    assert canonical_ip(address) == canonical


def test_an_invalid_address_makes_no_endpoint() -> None:
    assert count(a_service(), a_pod(ips=["nonsense"])) == 0


@pytest.mark.parametrize(
    ("families", "cluster_ip", "expected"),
    [
        pytest.param(["IPv4"], "10.96.0.1", ["IPv4"], id="one family"),
        pytest.param(["IPv6", "IPv4"], "fd00::1", ["IPv6", "IPv4"], id="two families, in their order"),
        pytest.param([], "10.96.0.1", ["IPv4"], id="that of the cluster IP, from before there were families"),
        pytest.param([], "fd00::1", ["IPv6"], id="that of the cluster IP, IPv6"),
        pytest.param([], "None", ["IPv4", "IPv6"], id="both of a headless one"),
        pytest.param([], "", ["IPv4", "IPv6"], id="both of one without a cluster IP"),
    ],
)
def test_families_of_a_service(families: list[str], cluster_ip: str, expected: list[str]) -> None:
    assert address_types(a_service(families=families, cluster_ip=cluster_ip).view(Service)) == expected


NAMED = [service_port("http", 80, target="web"), service_port("metrics", 9000, target=9100)]


@pytest.mark.parametrize(
    ("service_ports", "pod", "expected"),
    [
        pytest.param([service_port()], a_pod(), [("", "TCP", 8080)], id="a number stands for itself"),
        pytest.param([service_port(target=None)], a_pod(), [("", "TCP", 80)], id="no target is the service's own port"),
        pytest.param(
            NAMED,
            a_pod(ports=[container_port("web", 8080)]),
            [("http", "TCP", 8080), ("metrics", "TCP", 9100)],
            id="a name is looked up in the pod",
        ),
        pytest.param(NAMED, a_pod(), [("metrics", "TCP", 9100)], id="a port that the pod does not have is left out"),
        pytest.param([service_port("http", target="web")], a_pod(), [], id="the pod is not, not even without any port"),
        pytest.param(
            [service_port("http", target="web")],
            a_pod(ports=[container_port("web", 8080, "UDP")]),
            [],
            id="the protocol counts",
        ),
        pytest.param(
            [service_port("http", target="web")],
            a_pod(sidecar_ports=[container_port("web", 15001)]),
            [("http", "TCP", 15001)],
            id="sidecars have ports too",
        ),
        pytest.param([], a_pod(), [], id="a service without ports"),
    ],
)
def test_ports(service_ports: list[Any], pod: Object, expected: list[tuple[str, str, int]]) -> None:
    [group] = groups(a_service(ports=service_ports, cluster_ip="None"), pod)
    assert len(group.endpoints) == 1
    assert sorted((port.name, port.protocol, port.port) for port in group.ports) == expected


def test_app_protocols_are_copied() -> None:
    [group] = groups(a_service(ports=[service_port(app_protocol="kubernetes.io/h2c")]), a_pod())
    assert group.ports == [EndpointPort("", "TCP", 8080, "kubernetes.io/h2c")]


def test_pods_with_equal_resolved_ports_share_one_group() -> None:
    service = a_service(ports=[service_port("http", target="web")])
    found = groups(
        service,
        a_pod("p", ports=[container_port("web", 8080)]),
        a_pod("q", ips=["10.0.0.2"], ports=[container_port("web", 9090)]),
        a_pod("r", ips=["10.0.0.3"], ports=[container_port("other", 1), container_port("web", 8080)]),
        a_pod("s", ips=["10.0.0.4"]),
    )
    assert [
        ([port.port for port in group.ports], [each.addresses[0] for each in group.endpoints.values()])
        for group in found
    ] == [([8080], ["10.0.0.1", "10.0.0.3"]), ([9090], ["10.0.0.2"]), ([], ["10.0.0.4"])]


def test_a_family_without_addresses_has_a_group() -> None:
    [group] = groups(a_service(), a_pod(), address_type="IPv6")
    assert group == Group([EndpointPort("", "TCP", 8080)], {})


RECORDED = [
    [("udp", "UDP", 53), ("web", "TCP", 8080)],
    [("http", "TCP", 8080), ("metrics", "TCP", 9100)],
    [("b", "TCP", 2000), ("a", "TCP", 2000)],
    [("num", "SCTP", 7778), ("sctp", "SCTP", 7777)],
    [("dns-udp", "UDP", 5353), ("dns-tcp", "TCP", 5353)],
    [(f"p{number}", "TCP", 200 + number) for number in (3, 5, 4, 0, 1, 2)],
]
"""Ports of EndpointSlices in the order in which Kubernetes 1.36.2 writes them."""


@pytest.mark.parametrize("recorded", RECORDED)
def test_ports_have_the_order_of_kubernetes(recorded: list[tuple[str, str, int]]) -> None:
    ports = [EndpointPort(*port) for port in recorded]
    assert sorted_ports(sorted(ports, key=str)) == ports


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        pytest.param({"zone": "z"}, True, id="the zone does not count"),
        pytest.param({"node_name": "n"}, True, id="nor the node"),
        pytest.param({"hostname": "h"}, False, id="the hostname does"),
        pytest.param({"addresses": ["10.0.0.2"]}, False, id="the address does"),
        pytest.param({"target_ref": None}, False, id="the target does"),
    ],
)
def test_equal_endpoints(changed: dict[str, Any], same: bool) -> None:
    [group] = groups(a_service(), a_pod())
    [endpoint] = group.endpoints.values()
    assert (identity(msgspec.structs.replace(endpoint, **changed)) == identity(endpoint)) is same


def test_the_order_of_addresses_is_ignored() -> None:
    assert identity(Endpoint(["b", "a"])) == identity(Endpoint(["a", "b"]))
