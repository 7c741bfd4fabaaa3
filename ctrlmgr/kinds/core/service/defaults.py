"""Sets the fields of new and updated Services that clients omit.

The result of `set_defaults` depends only on the Service (`SetDefaults_Service`, `pkg/apis/core/v1/defaults.go`). All
other functions also read the old Service (`pkg/registry/core/service`). The functions that read the old Service make
two kinds of updates possible. First, a client can send a manifest again without the allocated values. Second, a client
can change the Service type without clearing the fields of the old type.
"""

from __future__ import annotations

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.kinds.core.service.spec import (
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NONE,
    has_address,
    has_node_ports,
    is_externally_accessible,
    items,
    needs_health_check,
    node_ports,
)

AFFINITY_SECONDS = 10800


def set_defaults(service: Unstructured) -> None:
    """Set the defaults that depend only on the Service; the spec and its ports are copied before they are changed."""
    spec = service["spec"] = dict(service.get("spec") or {})
    _default_affinity(spec)
    kind = spec["type"] = spec.get("type") or "ClusterIP"
    if spec.get("ports"):
        spec["ports"] = [_default_port(port) for port in spec["ports"]]
    if is_externally_accessible(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("internalTrafficPolicy") is None and kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec["internalTrafficPolicy"] = "Cluster"
    if kind == LOAD_BALANCER:
        if spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        _default_ingress(service)


def _default_affinity(spec: Unstructured) -> None:
    affinity = spec["sessionAffinity"] = spec.get("sessionAffinity") or NONE
    if affinity == NONE:
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}


def _default_port(port: Unstructured) -> Unstructured:
    own = dict(port)
    own["protocol"] = own.get("protocol") or "TCP"
    own["targetPort"] = own.get("targetPort") or own.get("port") or 0
    return own


def _default_ingress(service: Unstructured) -> None:
    status = service.get("status") or {}
    balancer = status.get("loadBalancer") or {}
    ingress = balancer.get("ingress") or ()
    if any(_lacks_mode(point) for point in ingress):
        points = [{**point, "ipMode": "VIP"} if _lacks_mode(point) else point for point in ingress]
        service["status"] = {**status, "loadBalancer": {**balancer, "ingress": points}}


def _lacks_mode(point: Unstructured) -> bool:
    return bool(point.get("ip")) and point.get("ipMode") is None


def keep_allocated(new: Unstructured, old: Unstructured) -> None:
    """Copy allocated values from the old spec if the new spec omits them (`patchAllocatedValues`)."""
    if has_address(old) and has_address(new):
        _keep(new, old, "clusterIP")
        _keep(new, old, "clusterIPs")
    if has_node_ports(old) and has_node_ports(new):
        _keep_node_ports(new, old)
    if needs_health_check(old) and needs_health_check(new):
        _keep(new, old, "healthCheckNodePort")


def _keep(new: Unstructured, old: Unstructured, field: str) -> None:
    if not new.get(field) and (value := old.get(field)):
        new[field] = value


def _keep_node_ports(new: Unstructured, old: Unstructured) -> None:
    """Keep the node port of each port that has the same name as an old port.

    A node port that another port of the new spec requests is not kept.
    """
    used = set(node_ports(old)) & set(node_ports(new))
    known = {port.get("name") or "": port.get("nodePort") or 0 for port in items(old, "ports")}
    for port in items(new, "ports"):
        kept = known.get(port.get("name") or "", 0)
        if kept and not port.get("nodePort") and kept not in used:
            port["nodePort"] = kept


def link_addresses(new: Unstructured, old: Unstructured | None) -> None:
    """If a client obviously changed only one of clusterIP and clusterIPs, make them agree (`normalizeClusterIPs`).

    Clients set either clusterIP alone or both fields. Validation refuses a Service in which clusterIPs alone is set.
    """
    address, addresses = new.get("clusterIP") or "", items(new, "clusterIPs")
    if old is None:
        if address and not addresses:
            new["clusterIPs"] = [address]
        return
    old_address, old_addresses = old.get("clusterIP") or "", items(old, "clusterIPs")
    if old_address == address:
        if not addresses and old_addresses:
            new["clusterIPs"] = old_addresses
    elif addresses == old_addresses:
        new["clusterIPs"] = [address] if address else []


def drop_foreign_fields(new: Unstructured, old: Unstructured) -> None:
    """Clear unchanged fields that Services of the new type do not use (`dropTypeDependentFields`).

    Only unchanged values are cleared, because the client did not request these values but only sent the old values
    again.
    """
    if has_address(old) and not has_address(new):
        _drop_addresses(new, old)
    if has_node_ports(old) and not has_node_ports(new) and set(node_ports(new)) <= set(node_ports(old)):
        for port in items(new, "ports"):
            port.pop("nodePort", None)
    if needs_health_check(old) and not needs_health_check(new):
        _drop_unchanged(new, old, "healthCheckNodePort")
    if old.get("type") == LOAD_BALANCER and new.get("type") != LOAD_BALANCER:
        _drop_unchanged(new, old, "allocateLoadBalancerNodePorts")
        _drop_unchanged(new, old, "loadBalancerClass")
    if is_externally_accessible(old) and not is_externally_accessible(new):
        _drop_unchanged(new, old, "externalTrafficPolicy")


def _drop_addresses(new: Unstructured, old: Unstructured) -> None:
    if new.get("clusterIP") == old.get("clusterIP") and items(new, "clusterIPs") == items(old, "clusterIPs"):
        new.pop("clusterIP", None)
        new.pop("clusterIPs", None)
    if items(new, "ipFamilies") == items(old, "ipFamilies"):
        new.pop("ipFamilies", None)
    _drop_unchanged(new, old, "ipFamilyPolicy")


def _drop_unchanged(new: Unstructured, old: Unstructured, field: str) -> None:
    if new.get(field) == old.get(field):
        new.pop(field, None)


def drop_unused_policy(spec: Unstructured) -> None:
    """Clear the internal traffic policy of a Service without a clusterIP, because it has no traffic inside the cluster.

    Kubernetes stores this policy and removes it when it reads the object (`defaultOnReadInternalTrafficPolicy`).
    """
    if spec.get("type") == EXTERNAL_NAME:
        spec.pop("internalTrafficPolicy", None)
