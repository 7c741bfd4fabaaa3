from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.api.core import (
    EndpointAddress,
    EndpointPort,
    Endpoints,
    EndpointSubset,
    Namespace,
    ObjectReference,
    Pod,
    Service,
    ip_family,
)
from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.testing.builders import a_namespace, a_pod, a_service, container_port, endpoints


def pod_with(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Pod:
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": spec or {}, "status": status or {}}
    return Object.from_dict(body).view(Pod)


@pytest.mark.parametrize(
    ("address", "family"),
    [
        pytest.param("10.0.0.1", "IPv4", id="dotted"),
        pytest.param("fd00::1", "IPv6", id="with colons"),
        pytest.param("::ffff:10.0.0.1", "IPv4", id="an IPv4 address mapped into IPv6 is IPv4"),
        pytest.param("fe80::1%eth0", "IPv4", id="one with a zone is no address to Go"),
        pytest.param("not:an:address", "IPv4", id="what is no address counts as IPv4"),
        pytest.param("", "IPv4", id="none counts as IPv4"),
    ],
)
def test_ip_family(address: str, family: str) -> None:
    assert ip_family(address) == family


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        pytest.param([{"type": "Ready", "status": "True"}], True, id="ready when the condition is True"),
        pytest.param([{"type": "Ready", "status": "False"}], False, id="not ready when it is False"),
        pytest.param([{"type": "Ready", "status": "Unknown"}], False, id="not ready when it is Unknown"),
        pytest.param([{"type": "ContainersReady", "status": "True"}], False, id="not ready without the condition"),
        pytest.param(None, False, id="not ready without any"),
        pytest.param(
            [{"type": "Ready", "status": "False"}, {"type": "Ready", "status": "True"}],
            False,
            id="the first one counts",
        ),
    ],
)
def test_a_pod_is_ready_by_its_condition(conditions: list[dict[str, str]] | None, ready: bool) -> None:
    assert pod_with(status={"conditions": conditions}).is_ready is ready


@pytest.mark.parametrize(
    ("phase", "terminal"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True), ("", False)],
)
def test_a_pod_is_terminal_by_its_phase(phase: str, terminal: bool) -> None:
    assert a_pod(phase=phase).view(Pod).is_terminal is terminal


def test_ready_changed_at_reads_the_transition_time() -> None:
    pod = a_pod(ready_since="2026-01-02T03:04:05Z").view(Pod)
    assert pod.ready_changed_at == parse_time("2026-01-02T03:04:05Z")


def test_ready_changed_at_is_none_without_a_transition_time() -> None:
    assert a_pod(ready=True).view(Pod).ready_changed_at is None
    assert a_pod(ready=None).view(Pod).ready_changed_at is None


@pytest.mark.parametrize(
    ("status", "ips"),
    [
        pytest.param(
            {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}, ("1.1.1.1", "::1"), id="listed"
        ),
        pytest.param({"podIP": "1.1.1.1"}, ("1.1.1.1",), id="the primary one alone is a list of one"),
        pytest.param({"podIP": "1.1.1.1", "podIPs": None}, ("1.1.1.1",), id="a null list is an empty one"),
        pytest.param({}, (), id="none yet"),
    ],
)
def test_a_pods_addresses(status: dict[str, Any], ips: tuple[str, ...]) -> None:
    assert pod_with(status=status).ips == ips


def test_the_first_address_of_each_family_is_the_endpoint() -> None:
    pod = a_pod("p", ips=["10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"]).view(Pod)
    assert {family: found.address.ip for family, found in pod.addresses.items()} == {
        "IPv4": "10.0.0.1",
        "IPv6": "fd00::1",
    }


def test_an_endpoint_address_names_the_pod_and_its_node() -> None:
    address = a_pod("p", namespace="ns", ips=["10.0.0.1"], node="n1", uid="u1").view(Pod).addresses["IPv4"].address
    assert address == EndpointAddress(
        "10.0.0.1", node_name="n1", target_ref=ObjectReference("Pod", namespace="ns", name="p", uid="u1")
    )


def test_a_pod_without_a_node_has_an_empty_node_name() -> None:
    assert a_pod(node="").view(Pod).addresses["IPv4"].address.node_name == ""


def test_named_ports_need_name_and_protocol() -> None:
    ports = [container_port("dns", 53, "UDP"), container_port("dns", 5353), container_port("dns", 54, "UDP")]
    assert a_pod(ports=ports).view(Pod).named_ports == {("dns", "UDP"): 53, ("dns", "TCP"): 5353}


def test_a_port_without_protocol_is_tcp() -> None:
    pod = pod_with(spec={"containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]})
    assert pod.named_ports == {("http", "TCP"): 8080}


def test_sidecars_follow_containers_and_other_init_containers_are_ignored() -> None:
    def init(restart_policy: str | None, number: int, *names: str) -> dict[str, Any]:
        restart = {"restartPolicy": restart_policy} if restart_policy else {}
        return {"ports": [container_port(name, number) for name in names], **restart}

    spec = {
        "containers": [{"ports": [container_port("http", 1)]}],
        "initContainers": [init(None, 2, "http", "setup"), init("Always", 3, "http", "proxy")],
    }
    assert pod_with(spec=spec).named_ports == {("http", "TCP"): 1, ("proxy", "TCP"): 3}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(8080, 8080, id="a number"),
        pytest.param("http", "http", id="a name"),
        pytest.param("8080", "8080", id="digits in a string are a name"),
        pytest.param(None, 80, id="the service's port when there is none"),
        pytest.param(0, 80, id="the service's port when it is 0"),
    ],
)
def test_a_service_ports_target(target: int | str | None, expected: int | str) -> None:
    service = a_service(ports=[{"port": 80, "targetPort": target}]).view(Service)
    assert [port.target for port in service.spec.ports or ()] == [expected]


@pytest.mark.parametrize(
    ("service", "family"),
    [
        pytest.param(a_service(families=["IPv6", "IPv4"]), "IPv6", id="the first of ipFamilies"),
        pytest.param(a_service(families=[], cluster_ip="fd00::10"), "IPv6", id="else the cluster IP's"),
        pytest.param(a_service(families=[], cluster_ip="10.96.0.1"), "IPv4", id="else the cluster IP's, IPv4"),
        pytest.param(a_service(families=[], cluster_ip="None"), None, id="else the pods tell, headless"),
        pytest.param(a_service(families=[], cluster_ip=""), None, id="else the pods tell, no cluster IP yet"),
    ],
)
def test_a_services_primary_family(service: Object, family: str | None) -> None:
    assert service.view(Service).primary_family == family


@pytest.mark.parametrize(
    ("service", "selects"),
    [
        pytest.param(a_service(), True, id="with a selector"),
        pytest.param(a_service(selector={}), True, id="an empty selector is one"),
        pytest.param(a_service(selects_nothing=True), False, id="without a selector"),
        pytest.param(a_service(type="ExternalName"), False, id="an ExternalName"),
    ],
)
def test_services_with_a_selector_have_controlled_endpoints(service: Object, selects: bool) -> None:
    assert service.view(Service).selects_endpoints is selects


@pytest.mark.parametrize(("cluster_ip", "headless"), [("None", True), ("", True), ("10.96.0.1", False)])
def test_a_service_is_headless_without_a_cluster_ip(cluster_ip: str, headless: bool) -> None:
    assert a_service(cluster_ip=cluster_ip).view(Service).is_headless is headless


@pytest.mark.parametrize(("phase", "terminating"), [("Active", False), ("Terminating", True)])
def test_a_namespace_is_terminating_by_its_phase(phase: str, terminating: bool) -> None:
    assert a_namespace(phase=phase).view(Namespace).is_terminating is terminating


def test_subsets_encode_as_go_does() -> None:
    subset = EndpointSubset(
        addresses=[EndpointAddress("10.0.0.1", "h", "", ObjectReference("Pod", "ns", "p", "u"))],
        ports=[EndpointPort("http", 8080, "TCP", "kubernetes.io/h2c"), EndpointPort(port=1, protocol="UDP")],
    )
    assert msgspec.json.encode(subset) == (
        b'{"addresses":[{"ip":"10.0.0.1","hostname":"h","nodeName":"",'
        b'"targetRef":{"kind":"Pod","namespace":"ns","name":"p","uid":"u"}}],'
        b'"ports":[{"name":"http","port":8080,"protocol":"TCP","appProtocol":"kubernetes.io/h2c"},'
        b'{"port":1,"protocol":"UDP"}]}'
    )


def test_endpoints_read_their_subsets() -> None:
    subsets = [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]
    view = endpoints(subsets=subsets).view(Endpoints)
    assert view.subsets == [EndpointSubset([EndpointAddress("10.0.0.1")], None, [EndpointPort("", 80, "TCP")])]


def test_null_lists_and_missing_sections_read_as_empty() -> None:
    bare = Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}).view(Pod)
    assert (bare.ips, bare.named_ports, bare.is_ready) == ((), {}, False)
    nulls = pod_with(spec={"containers": [{"ports": None}], "initContainers": None}, status={"conditions": None})
    assert (nulls.named_ports, nulls.is_ready) == ({}, False)
