"""Reads the fields of a Service's spec, according to the Service's type.

Guarantees: the functions return the same value for absent, null and empty fields, because these have the same zero
value in Go.

Source: Kubernetes `pkg/api/service/util.go` and `pkg/registry/core/service/strategy.go`.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.validation.ip_validation import canonical_ip
from ctrlmgr.kinds.allocators.allocation_claims import NOTHING, ServiceClaims

CLUSTER_IP = "ClusterIP"
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"
EXTERNAL_NAME = "ExternalName"

NONE = "None"
"""The value of clusterIP in a headless Service. The value `None` is also the default session affinity."""

SINGLE_STACK = "SingleStack"
PREFER_DUAL_STACK = "PreferDualStack"
REQUIRE_DUAL_STACK = "RequireDualStack"


def items(spec: Unstructured, field: str) -> list[Any]:
    """Return a list field as a list; an absent field is an empty list."""
    return spec.get(field) or []


def has_address(spec: Unstructured) -> bool:
    """Return whether Services of this type have a clusterIP; its value may be `None`."""
    return spec.get("type") != EXTERNAL_NAME


def has_node_ports(spec: Unstructured) -> bool:
    """Return whether Services of this type expose their ports on every node."""
    return spec.get("type") in (NODE_PORT, LOAD_BALANCER)


def allocates_node_ports(spec: Unstructured) -> bool:
    """Return whether node ports are allocated for those ports of a Service that have none."""
    kind = spec.get("type")
    return kind == NODE_PORT or (kind == LOAD_BALANCER and spec.get("allocateLoadBalancerNodePorts") is True)


def needs_health_check(spec: Unstructured) -> bool:
    """Return whether load balancers must be able to check which nodes have an endpoint."""
    return spec.get("type") == LOAD_BALANCER and spec.get("externalTrafficPolicy") == "Local"


def is_externally_accessible(spec: Unstructured) -> bool:
    """Return whether traffic from outside the cluster can reach the Service."""
    return has_node_ports(spec) or (spec.get("type") == CLUSTER_IP and bool(spec.get("externalIPs")))


def is_headless(spec: Unstructured) -> bool:
    """Return whether the Service is headless."""
    return items(spec, "clusterIPs") == [NONE]


def is_headless_without_selector(spec: Unstructured) -> bool:
    """Return whether the Service is headless and has no selector, so that other components provide its endpoints.

    The IP families of such a Service are unknown.
    """
    return spec.get("clusterIP") == NONE and not spec.get("selector")


def node_ports(spec: Unstructured) -> list[int]:
    """Return the node ports of the given ports, in the order of the ports."""
    return [port["nodePort"] for port in items(spec, "ports") if port.get("nodePort")]


def holdings(service: Unstructured) -> ServiceClaims:
    """Return the addresses and node ports of a valid Service."""
    spec = service.get("spec") or {}
    if not has_address(spec):
        return NOTHING
    addresses = frozenset([address for text in items(spec, "clusterIPs") if (address := canonical_ip(text))])
    if not has_node_ports(spec):
        return ServiceClaims(addresses, NOTHING.ports)
    ports = set(node_ports(spec))
    if needs_health_check(spec) and (port := spec.get("healthCheckNodePort")):
        ports.add(port)
    return ServiceClaims(addresses, frozenset(ports))
