from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, Key, Resource
from ctrlmgr.errors import ApiError, InternalError, Invalid, StatusCause
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from tests.kinds.core.service.service_stage import NOW, Stage, causes

PORTS: dict[str, Any] = {"ports": [{"port": 80}]}
NODE_PORT = {"type": "NodePort", **PORTS}
LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", **PORTS}
SMALL = Ranges.parse("10.96.0.0/29", "30000-30003")


def kinds_of_change(stage: Stage) -> list[tuple[EventType, Resource, str]]:
    return [(each.type, each.object.resource, each.object.name) for each in stage.companions]


def node_ports(service: dict[str, Any]) -> list[int]:
    return [port.get("nodePort", 0) for port in service["spec"]["ports"]]


def test_an_address_is_claimed_with_its_service_by_an_ip_address_object() -> None:
    stage = Stage()
    address = stage.create(PORTS | {"clusterIP": "10.96.0.9"})["spec"]["clusterIP"]
    claim = stage.state.get(IP_ADDRESSES, Key("", address))
    assert claim is not None
    fields = claim.to_dict()
    assert len(fields["metadata"].pop("uid")) == 36
    assert fields == {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": "10.96.0.9",
            "resourceVersion": "2",
            "creationTimestamp": NOW,
            "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4",
                "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            },
        },
        "spec": {"parentRef": {"resource": "services", "namespace": "ns", "name": "s"}},
    }
    assert claim.metadata == Object(IP_ADDRESSES, claim.body).metadata


def test_a_node_port_claim_is_an_unserved_object() -> None:
    stage = Stage()
    stage.create(NODE_PORT | {"ports": [{"port": 80, "nodePort": 30007}]})
    claim = stage.state.get(NODE_PORTS, Key("", "30007"))
    assert claim is not None
    assert claim.to_dict()["spec"] == {"parentRef": {"resource": "services", "namespace": "ns", "name": "s"}}
    assert claim.metadata == Object(NODE_PORTS, claim.body).metadata


def test_an_address_has_one_claim_in_any_notation() -> None:
    stage = Stage()
    service = stage.create(PORTS | {"clusterIP": "FD00:10:96:0:0::00AB"}, "a")
    assert service["spec"]["clusterIP"] == "FD00:10:96:0:0::00AB"
    assert stage.claimed() == {"fd00:10:96::ab": "ns/a"}
    with pytest.raises(Invalid, match="failed to allocate IP fd00:10:96::ab: provided IP is already allocated"):
        stage.create(PORTS | {"clusterIP": "fd00:10:96::ab"}, "b")


def test_automatic_allocation_avoids_the_lower_band() -> None:
    stage = Stage()
    for number in range(50):
        spec = stage.create(NODE_PORT | {"ipFamilyPolicy": "RequireDualStack"}, f"s{number}")["spec"]
        four, six = spec["clusterIPs"]
        assert tuple(map(int, four.split("."))) > (10, 96, 1, 0)
        assert int(six.rpartition(":")[2], 16) > 256
        assert spec["ports"][0]["nodePort"] >= 30086


ADDRESSES_REFUSED = [
    ("10.96.0.0", "the provided network does not match the current range"),
    ("10.96.255.255", "the provided network does not match the current range"),
    ("10.97.0.1", "the provided network does not match the current range"),
    ("fd00:10:96::", "the provided network does not match the current range"),
    ("fd00:10:97::1", "the provided network does not match the current range"),
    ("10.96.0.7", "provided IP is already allocated"),
]


@pytest.mark.parametrize(("address", "problem"), ADDRESSES_REFUSED)
def test_unavailable_addresses_are_refused(address: str, problem: str) -> None:
    stage = Stage()
    stage.create(PORTS | {"clusterIP": "10.96.0.7"}, "first")
    with pytest.raises(Invalid) as refusal:
        stage.create(PORTS | {"clusterIP": address})
    message = f'Invalid value: ["{address}"]: failed to allocate IP {address}: {problem}'
    assert causes(refusal.value) == [("spec.clusterIPs", message)]
    assert str(refusal.value) == f'Service "s" is invalid: spec.clusterIPs: {message}'


@pytest.mark.parametrize("address", ["10.96.0.1", "10.96.255.254", "fd00:10:96::1", "fd00:10:96::ffff"])
def test_both_ends_of_a_range_can_be_requested(address: str) -> None:
    stage = Stage()
    stage.create(PORTS | {"clusterIP": address})
    assert stage.claimed() == {address: "ns/s"}


def test_a_full_range_has_kubernetes_error_and_reserves_the_first_address() -> None:
    stage = Stage(SMALL)
    for number in range(5):
        stage.create(PORTS, str(number))
    assert set(stage.claimed()) == {f"10.96.0.{last}" for last in range(2, 7)}
    with pytest.raises(InternalError) as refusal:
        stage.create(PORTS)
    assert str(refusal.value) == "Internal error occurred: failed to allocate a serviceIP: range is full"
    assert refusal.value.details is not None
    assert refusal.value.details.causes == (StatusCause(message="failed to allocate a serviceIP: range is full"),)
    stage.create(PORTS | {"clusterIP": "10.96.0.1"}, "kubernetes")
    stage.delete("3", "ns")
    stage.create(PORTS)
    assert stage.used() == stage.claimed()


def test_a_full_range_of_ports_has_kubernetes_error() -> None:
    stage = Stage(SMALL)
    ports = [{"port": number, "name": f"p{number}"} for number in range(1, 5)]
    stage.create({"type": "NodePort", "ports": ports}, "a")
    with pytest.raises(InternalError, match="failed to allocate a nodePort: range is full"):
        stage.create(NODE_PORT, "b")
    stage.create({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, **PORTS}, "c")
    with pytest.raises(InternalError, match="failed to allocate a HealthCheck NodePort 0: range is full"):
        stage.patch({"spec": {"externalTrafficPolicy": "Local"}}, "c")
    with pytest.raises(InternalError, match="failed to allocate a nodePort: range is full"):
        stage.patch({"spec": {"allocateLoadBalancerNodePorts": True}}, "c")


def test_a_requested_health_check_port_in_use_is_an_internal_error() -> None:
    stage = Stage()
    stage.create(NODE_PORT | {"ports": [{"port": 80, "nodePort": 30007}]}, "a")
    problem = "failed to allocate requested HealthCheck NodePort 30007: provided port is already allocated"
    with pytest.raises(InternalError, match=problem):
        stage.create(LOCAL | {"healthCheckNodePort": 30007}, "b")


PORTS_CREATED = [
    ([{"port": 53, "nodePort": 30053}, {"port": 53, "protocol": "UDP"}], [30053, 30053]),
    ([{"port": 53}, {"port": 53, "protocol": "UDP", "nodePort": 30053}], [30053, 30053]),
    ([{"port": 53, "nodePort": 30053}, {"port": 53, "protocol": "UDP", "nodePort": 30053}], [30053, 30053]),
    ([{"port": 53, "nodePort": 30053}, {"port": 53, "protocol": "UDP", "nodePort": 30054}], [30053, 30054]),
]


@pytest.mark.parametrize(("ports", "given"), PORTS_CREATED)
def test_protocols_of_one_port_share_a_node_port(ports: list[dict[str, Any]], given: list[int]) -> None:
    stage = Stage()
    named = [port | {"name": f"p{index}"} for index, port in enumerate(ports)]
    assert node_ports(stage.create({"type": "NodePort", "ports": named})) == given
    assert stage.used() == stage.claimed()


def test_different_ports_of_a_new_service_have_different_node_ports() -> None:
    ports = [{"port": 53, "name": "a", "nodePort": 30053}, {"port": 54, "name": "b", "nodePort": 30053}]
    with pytest.raises(Invalid) as refusal:
        Stage().create({"type": "NodePort", "ports": ports})
    message = "Invalid value: 30053: provided port is already allocated"
    assert causes(refusal.value) == [("spec.ports[1].nodePort", message)]


def test_an_update_keeps_unrelated_allocations() -> None:
    stage = Stage()
    stage.create(LOCAL)
    stage.patch({"metadata": {"labels": {"a": "b"}}})
    assert stage.companions == []


def test_a_change_of_type_allocates_and_releases_in_the_same_append() -> None:
    stage = Stage()
    spec = stage.create(PORTS | {"clusterIP": "10.96.0.9"})["spec"]
    spec = stage.patch({"spec": LOCAL | {"ports": [{"port": 80, "nodePort": 30007}]}})["spec"]
    health = str(spec["healthCheckNodePort"])
    assert kinds_of_change(stage) == [(EventType.ADDED, NODE_PORTS, "30007"), (EventType.ADDED, NODE_PORTS, health)]
    stage.patch({"spec": {"type": "NodePort", "externalTrafficPolicy": "Cluster"}})
    assert kinds_of_change(stage) == [(EventType.DELETED, NODE_PORTS, health)]
    stage.patch({"spec": {"type": "ExternalName", "externalName": "a.example", "externalTrafficPolicy": "Cluster"}})
    assert kinds_of_change(stage) == [
        (EventType.DELETED, IP_ADDRESSES, "10.96.0.9"),
        (EventType.DELETED, NODE_PORTS, "30007"),
    ]
    stage.patch({"spec": {"type": "ClusterIP"}})
    assert [each[:2] for each in kinds_of_change(stage)] == [(EventType.ADDED, IP_ADDRESSES)]


def test_a_port_released_by_an_update_is_not_available_in_it() -> None:
    stage = Stage()
    stage.create(LOCAL | {"healthCheckNodePort": 30007})
    with pytest.raises(Invalid, match="provided port is already allocated"):
        stage.patch({"spec": {"externalTrafficPolicy": "Cluster", "ports": [{"port": 80, "nodePort": 30007}]}})


def test_node_ports_are_claimed_when_the_type_supports_them() -> None:
    stage = Stage()
    spec = {"type": "ExternalName", "externalName": "a.example", "ports": [{"port": 80, "nodePort": 30007}]}
    stage.create(spec)
    assert stage.claimed() == {}
    stage.create(NODE_PORT | {"ports": [{"port": 80, "nodePort": 30007}]}, "other")
    with pytest.raises(Invalid, match="provided port is already allocated"):
        stage.patch({"spec": {"type": "NodePort"}})


def test_a_deletion_releases_allocations_and_deletes_endpoints() -> None:
    stage = Stage()
    stage.create(LOCAL | {"clusterIP": "10.96.0.9", "ports": [{"port": 80, "nodePort": 30007}]})
    stage.create(PORTS | {"clusterIP": "10.96.0.10"}, "other")
    endpoints = Object.from_dict(
        {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "ns", "uid": "e"}}
    )
    stage.state.append([Proposal(EventType.ADDED, endpoints, 0)])
    stage.delete()
    assert stage.claimed() == {"10.96.0.10": "ns/other"}
    assert stage.state.get(ENDPOINTS, Key("ns", "s")) is None


def test_endpoints_with_finalizers_are_kept() -> None:
    stage = Stage()
    stage.create(PORTS)
    metadata = {"name": "s", "namespace": "ns", "uid": "e", "finalizers": ["example.com/hold"]}
    endpoints = Object.from_dict({"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata})
    stage.state.append([Proposal(EventType.ADDED, endpoints, 0)])
    stage.delete()
    assert stage.state.get(ENDPOINTS, Key("ns", "s")) is not None


def test_a_release_keeps_a_claim_of_another_service() -> None:
    stage = Stage()
    stage.create(PORTS | {"clusterIP": "10.96.0.9"})
    claim = stage.state.get(IP_ADDRESSES, Key("", "10.96.0.9"))
    assert claim is not None
    foreign = Object(IP_ADDRESSES, claim.body.replace(b'"name":"s"', b'"name":"t"'))
    stage.state.append([Proposal(EventType.MODIFIED, foreign, claim.revision)])
    stage.delete()
    assert stage.claimed() == {"10.96.0.9": "ns/t"}


def test_a_dry_run_claims_nothing_and_returns_kubernetes_result() -> None:
    stage = Stage()
    stage.create(PORTS | {"clusterIP": "10.96.0.9"}, "taken")
    spec = stage.create(LOCAL | {"ipFamilyPolicy": "RequireDualStack"}, dry_run=True)["spec"]
    assert spec["clusterIPs"] == ["10.96.0.0", "fd00:10:96::"]
    assert (spec["ports"][0]["nodePort"], spec["healthCheckNodePort"]) == (32769, 32770)
    assert stage.create(PORTS | {"clusterIP": "10.96.0.9"}, dry_run=True)["spec"]["clusterIP"] == "10.96.0.9"
    assert stage.companions == []
    assert stage.claimed() == {"10.96.0.9": "ns/taken"}
    stage.patch({"spec": NODE_PORT}, "taken", dry_run=True)
    assert stage.companions == []


DRY_RUNS_REFUSED = [
    (
        PORTS | {"clusterIP": "10.97.0.1"},
        "the provided IP (10.97.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16",
    ),
    (NODE_PORT | {"ports": [{"port": 80, "nodePort": 30007}]}, "provided port is already allocated"),
]


@pytest.mark.parametrize(("spec", "problem"), DRY_RUNS_REFUSED)
def test_a_dry_run_detects_fewer_conflicts_than_a_write(spec: dict[str, Any], problem: str) -> None:
    stage = Stage()
    stage.create(NODE_PORT | {"ports": [{"port": 80, "nodePort": 30007}]}, "taken")
    with pytest.raises(Invalid) as refusal:
        stage.create(spec, dry_run=True)
    assert causes(refusal.value)[0][1].endswith(problem)


@pytest.mark.parametrize("spec", [PORTS, PORTS | {"clusterIP": "10.96.0.9"}])
def test_a_service_without_a_name_allocates_nothing(spec: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        Stage().create(spec, "")
    assert refusal.value.code == 422
    ((field, message),) = causes(refusal.value)
    assert field == "spec.clusterIPs"
    assert message.endswith('" is invalid: spec.parentRef.name: Required value')


def test_equal_random_numbers_allocate_equal_values() -> None:
    first, second = (Stage(seed=7).create(LOCAL)["spec"] for _ in range(2))
    assert first == second != Stage(seed=8).create(LOCAL)["spec"]
