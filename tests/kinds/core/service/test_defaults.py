from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.kinds.core.service.defaults import link_addresses
from ctrlmgr.kinds.core.service.strategy import ServiceStrategy
from tests.kinds.core.service.service_stage import Stage

PLAIN = {"sessionAffinity": "None", "type": "ClusterIP", "internalTrafficPolicy": "Cluster"}
EXTERNAL = {"externalTrafficPolicy": "Cluster"}
DEFAULTS = [
    ({}, PLAIN),
    ({"type": ""}, PLAIN),
    ({"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}, PLAIN),
    (
        {"sessionAffinity": "ClientIP"},
        PLAIN | {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}},
    ),
    (
        {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
        PLAIN | {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
    ),
    (
        {
            "ports": [
                {"port": 80},
                {"port": 81, "targetPort": "http", "protocol": "UDP"},
                {"port": 82, "targetPort": ""},
            ]
        },
        PLAIN
        | {
            "ports": [
                {"port": 80, "protocol": "TCP", "targetPort": 80},
                {"port": 81, "protocol": "UDP", "targetPort": "http"},
                {"port": 82, "protocol": "TCP", "targetPort": 82},
            ]
        },
    ),
    ({"type": "NodePort"}, PLAIN | {"type": "NodePort"} | EXTERNAL),
    (
        {"type": "LoadBalancer"},
        PLAIN | {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": True} | EXTERNAL,
    ),
    (
        {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "externalTrafficPolicy": "Local"},
        PLAIN | {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "externalTrafficPolicy": "Local"},
    ),
    ({"externalIPs": ["198.51.100.1"]}, PLAIN | {"externalIPs": ["198.51.100.1"]} | EXTERNAL),
    ({"internalTrafficPolicy": "Local"}, PLAIN | {"internalTrafficPolicy": "Local"}),
    ({"type": "ExternalName"}, {"sessionAffinity": "None", "type": "ExternalName"}),
    ({"type": "Odd"}, {"sessionAffinity": "None", "type": "Odd"}),
]


@pytest.mark.parametrize(("spec", "filled_in"), DEFAULTS)
def test_omitted_fields_are_defaulted(spec: dict[str, Any], filled_in: dict[str, Any]) -> None:
    service = {"metadata": {"name": "s"}, "spec": spec}
    for _ in range(2):
        ServiceStrategy().default(service)
        assert service["spec"] == filled_in


def test_a_missing_spec_is_defaulted_like_an_empty_one() -> None:
    service: dict[str, Any] = {"metadata": {"name": "s"}}
    ServiceStrategy().default(service)
    assert service["spec"] == PLAIN


def test_only_load_balancers_get_a_default_ip_mode() -> None:
    for kind, mode in (("LoadBalancer", "VIP"), ("ClusterIP", None)):
        ingress = [{"ip": "198.51.100.1"}, {"hostname": "a.example"}, {"ip": "198.51.100.2", "ipMode": "Proxy"}]
        service: dict[str, Any] = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": ingress}}}
        ServiceStrategy().default(service)
        points = service["status"]["loadBalancer"]["ingress"]
        assert [point.get("ipMode") for point in points] == [mode, None, "Proxy"]
        assert "ipMode" not in ingress[0], "what was given may be shared"


LINKED = [
    ({"clusterIP": "a"}, None, ["a"]),
    ({"clusterIP": "a", "clusterIPs": ["b"]}, None, ["b"]),
    ({"clusterIPs": ["b"]}, None, ["b"]),
    ({"clusterIP": "a"}, {"clusterIP": "a", "clusterIPs": ["a", "b"]}, ["a", "b"]),
    ({"clusterIP": "c", "clusterIPs": ["a", "b"]}, {"clusterIP": "a", "clusterIPs": ["a", "b"]}, ["c"]),
    ({"clusterIPs": ["a", "b"]}, {"clusterIP": "a", "clusterIPs": ["a", "b"]}, []),
    ({"clusterIP": "c", "clusterIPs": ["a"]}, {"clusterIP": "a", "clusterIPs": ["a", "b"]}, ["a"]),
    ({"clusterIP": "c"}, {}, ["c"]),
    ({}, {}, None),
]


@pytest.mark.parametrize(("new", "old", "linked"), LINKED)
def test_cluster_ip_and_cluster_ips_are_synchronized(
    new: dict[str, Any], old: dict[str, Any] | None, linked: list[str] | None
) -> None:
    link_addresses(new, old)
    assert new.get("clusterIPs") == linked


def test_a_manifest_without_allocated_fields_can_be_applied_again() -> None:
    stage = Stage()
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    spec = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "ipFamilyPolicy": "PreferDualStack",
        "ports": ports,
    }
    first = stage.create(spec)
    again = stage.update({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
    assert again == first


def test_a_node_port_follows_its_ports_name_unless_another_port_requests_it() -> None:
    stage = Stage()
    old = stage.create({"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]})
    first, second = (port["nodePort"] for port in old["spec"]["ports"])
    new = stage.patch({"spec": {"ports": [{"name": "b", "port": 8081}, {"name": "a", "port": 82, "nodePort": second}]}})
    taken, asked = (port["nodePort"] for port in new["spec"]["ports"])
    assert asked == second
    assert taken not in (first, second)


TYPES = {
    "ClusterIP": {},
    "NodePort": {},
    "LoadBalancer": {"externalTrafficPolicy": "Local", "loadBalancerClass": "example.com/a"},
    "ExternalName": {"externalName": "a.example"},
}
FOREIGN = {
    "ClusterIP": {
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
        "loadBalancerClass",
    },
    "NodePort": {"healthCheckNodePort", "allocateLoadBalancerNodePorts", "loadBalancerClass"},
    "LoadBalancer": set(),
    "ExternalName": {
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "ipFamilyPolicy",
        "internalTrafficPolicy",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "allocateLoadBalancerNodePorts",
        "loadBalancerClass",
    },
}


@pytest.mark.parametrize("before", TYPES)
@pytest.mark.parametrize("after", TYPES)
def test_a_changed_type_removes_its_fields(before: str, after: str) -> None:
    stage = Stage()
    stage.create({"type": before, "ports": [{"port": 80}], **TYPES[before]})
    spec = stage.patch({"spec": {"type": after, **TYPES[after]}})["spec"]
    assert not FOREIGN[after] & spec.keys()
    assert all(("nodePort" in port) == (after in ("NodePort", "LoadBalancer")) for port in spec["ports"])
    assert ("clusterIP" in spec) == (after != "ExternalName")
    assert stage.used() == stage.claimed()


def test_the_internal_traffic_policy_of_external_names_is_omitted() -> None:
    spec = {"type": "ExternalName", "externalName": "a.example", "internalTrafficPolicy": "Local"}
    assert "internalTrafficPolicy" not in Stage().create(spec)["spec"]
