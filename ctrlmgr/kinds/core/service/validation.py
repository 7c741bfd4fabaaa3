"""Validates Services, except their addresses.

Guarantees: the errors are the same as in `validateService` and `ValidateServiceUpdate` in Kubernetes'
`pkg/apis/core/validation/validation.go`. If the old Service contained addresses that are not in canonical form, the new
Service may keep them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.validation.ip_validation import validate_endpoint_ip, validate_legacy_cidr, validate_legacy_ip
from ctrlmgr.engine.validation.label_validation import validate_labels
from ctrlmgr.engine.validation.name_formats import (
    dns1123_label,
    dns1123_subdomain,
    port_name,
    port_number,
    qualified_name,
)
from ctrlmgr.kinds.core.service.address_validation import (
    validate_address_change,
    validate_addresses,
    validate_family_change,
)
from ctrlmgr.kinds.core.service.spec import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    is_externally_accessible,
    is_headless,
    items,
    needs_health_check,
)

TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
LONGEST_AFFINITY = 86400

_ANNOTATIONS = Path("metadata.annotations")
_SPEC = Path("spec")
_PORTS = Path("spec.ports")
_SELECTOR = Path("spec.selector")
_BALANCER_CLASS = Path("spec.loadBalancerClass")
_EXTERNAL_POLICY = Path("spec.externalTrafficPolicy")
_INTERNAL_POLICY = Path("spec.internalTrafficPolicy")
_HEALTH_CHECK_PORT = Path("spec.healthCheckNodePort")
_TYPES = frozenset((CLUSTER_IP, NODE_PORT, LOAD_BALANCER, EXTERNAL_NAME))
_PROTOCOLS = frozenset(("SCTP", "TCP", "UDP"))
_AFFINITIES = frozenset(("ClientIP", NONE))
_POLICIES = frozenset(("Cluster", "Local"))
_BEYOND = frozenset(
    (
        "allocateLoadBalancerNodePorts",
        "externalIPs",
        "externalTrafficPolicy",
        "healthCheckNodePort",
        "loadBalancerClass",
        "loadBalancerSourceRanges",
    )
)
"""The fields that must not be set if the Service is reachable only inside the cluster."""
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")

_BALANCERS_ONLY = "may only be used when `type` is 'LoadBalancer'"


def validate_service(service: Unstructured, old: Unstructured | None) -> list[FieldError]:
    """Validate a Service after defaulting and allocation; `old` is None if the Service is created."""
    spec, was = service["spec"], (old or {}).get("spec") or {}
    annotations = service["metadata"].get("annotations") or {}
    old_annotations = ((old or {}).get("metadata") or {}).get("annotations") or {}
    is_plain = spec.get("type") == CLUSTER_IP and _BEYOND.isdisjoint(spec) and SOURCE_RANGES not in annotations
    return [
        *(_topology(annotations) if annotations else ()),
        *_type_rules(spec),
        *_ports(spec),
        *(validate_labels(spec["selector"], _SELECTOR) if spec.get("selector") else ()),
        *_affinity(spec),
        *validate_addresses(spec, was or None),
        *(_distinct_ports(spec) if is_plain else ()),
        *(() if is_plain else _reachable(spec, was, annotations, old_annotations)),
        *_internal_traffic(spec),
        *_distribution(spec.get("trafficDistribution")),
    ]


def _reachable(
    spec: Unstructured, was: Unstructured, annotations: Unstructured, old_annotations: Unstructured
) -> list[FieldError]:
    """Validate the fields for traffic from outside the cluster, and other fields that few Services have."""
    return [
        *_external_addresses(items(spec, "externalIPs"), items(was, "externalIPs")),
        *_known_type(spec.get("type") or ""),
        *_distinct_ports(spec),
        *_source_ranges(spec, was, annotations, old_annotations),
        *_balancer_fields(spec),
        *_external_traffic(spec),
    ]


def validate_change(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate the changes of a Service's spec, regardless of whether the new spec is valid."""
    errors = validate_address_change(new, old) + validate_family_change(new, old)
    both_balance = new.get("type") == old.get("type") == LOAD_BALANCER
    if both_balance and new.get("loadBalancerClass") != old.get("loadBalancerClass"):
        errors.append(invalid(_BALANCER_CLASS, new.get("loadBalancerClass"), "may not change once set"))
    errors += _balancer_class(new)
    port, old_port = new.get("healthCheckNodePort") or 0, old.get("healthCheckNodePort") or 0
    if needs_health_check(new) and needs_health_check(old) and port != old_port:
        errors.append(forbidden(_HEALTH_CHECK_PORT, "field is immutable"))
    return errors


def _topology(annotations: Unstructured) -> list[FieldError]:
    mode, hints = annotations.get(TOPOLOGY_MODE), annotations.get(TOPOLOGY_HINTS)
    if mode is None or hints is None or mode == hints:
        return []
    detail = f"must match annotations[{TOPOLOGY_HINTS}] when both are specified"
    return [invalid(_ANNOTATIONS.key(TOPOLOGY_MODE), mode, detail)]


def _type_rules(spec: Unstructured) -> list[FieldError]:
    kind, headless = spec.get("type"), is_headless(spec)
    if kind == EXTERNAL_NAME:
        return _external_name(spec)
    errors = [] if headless or spec.get("ports") else [required(_PORTS)]
    if headless and kind in (LOAD_BALANCER, NODE_PORT):
        detail = f"may not be set to 'None' for {kind} services"
        errors.append(invalid(_SPEC.child("clusterIPs").at(0), NONE, detail))
    return errors


def _external_name(spec: Unstructured) -> list[FieldError]:
    foreign = [field for field in ("clusterIPs", "ipFamilies") if spec.get(field)]
    if spec.get("ipFamilyPolicy") is not None:
        foreign.append("ipFamilyPolicy")
    errors = [forbidden(_SPEC.child(field), "may not be set for ExternalName services") for field in foreign]
    path = _SPEC.child("externalName")
    if name := (spec.get("externalName") or "").removesuffix("."):
        return errors + [invalid(path, name, problem) for problem in dns1123_subdomain(name)]
    return [*errors, required(path)]


def _ports(spec: Unstructured) -> list[FieldError]:
    ports = items(spec, "ports")
    seen: set[str] = set()
    errors: list[FieldError] = []
    for index, port in enumerate(ports):
        name = port.get("name") or ""
        if name or len(ports) > 1:
            errors += _port_name(name, seen, _PORTS.at(index).child("name"))
        errors += _port(port, index)
    return errors


def _port_name(name: str, seen: set[str], path: Path) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [invalid(path, name, problem) for problem in dns1123_label(name)]
    if name in seen:
        errors.append(duplicate(path, name))
    seen.add(name)
    return errors


def _port(port: Unstructured, index: int) -> list[FieldError]:
    number, target, protocol = port.get("port") or 0, port["targetPort"], port["protocol"]
    errors = _invalid(index, "port", number, problems) if (problems := port_number(number)) else []
    if protocol not in _PROTOCOLS:
        errors.append(not_supported(_PORTS.at(index).child("protocol"), protocol, _PROTOCOLS))
    if problems := _target_problems(target):
        errors += _invalid(index, "targetPort", target, problems)
    if (application := port.get("appProtocol")) is not None:
        errors += _invalid(index, "appProtocol", application, qualified_name(application))
    return errors


def _target_problems(target: int | str) -> list[str]:
    return port_number(target) if isinstance(target, int) else port_name(target)


def _invalid(index: int, field: str, value: int | str, problems: list[str]) -> list[FieldError]:
    return [invalid(_PORTS.at(index).child(field), value, problem) for problem in problems]


def _affinity(spec: Unstructured) -> list[FieldError]:
    affinity = spec["sessionAffinity"]
    if affinity not in _AFFINITIES:
        return [not_supported(_SPEC.child("sessionAffinity"), affinity, _AFFINITIES)]
    if affinity == NONE:
        return []
    seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
    if 0 < seconds <= LONGEST_AFFINITY:
        return []
    path = _SPEC.child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
    return [invalid(path, seconds, f"must be greater than 0 and less than {LONGEST_AFFINITY}")]


def _external_addresses(addresses: Collection[str], existing: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        path = _SPEC.child("externalIPs").at(index)
        errors += validate_legacy_ip(path, address, existing) or validate_endpoint_ip(path, address)
    return errors


def _known_type(kind: str) -> list[FieldError]:
    return [] if kind in _TYPES else [not_supported(_SPEC.child("type"), kind, _TYPES)]


def _distinct_ports(spec: Unstructured) -> list[FieldError]:
    """Validate that the pairs (protocol, port) and (protocol, node port) of a Service are unique."""
    ports = items(spec, "ports")
    errors: list[FieldError] = []
    if spec.get("type") == CLUSTER_IP:
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [forbidden(_node_port(index), detail) for index, port in enumerate(ports) if port.get("nodePort")]
    if len(ports) < 2:
        return errors
    seen: set[Hashable] = set()
    for index, port in enumerate(ports):
        if port.get("nodePort") and _again(seen, (port["protocol"], port["nodePort"])):
            errors.append(duplicate(_node_port(index), port["nodePort"]))
    seen.clear()
    for index, port in enumerate(ports):
        number, protocol = port.get("port") or 0, port["protocol"]
        if _again(seen, (protocol, number)):
            shown = {
                "Name": "",
                "Protocol": protocol,
                "AppProtocol": None,
                "Port": number,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(duplicate(_PORTS.at(index), shown))
    return errors


def _node_port(index: int) -> Path:
    return _PORTS.at(index).child("nodePort")


def _again(seen: set[Hashable], value: Hashable) -> bool:
    known = value in seen
    seen.add(value)
    return known


def _source_ranges(
    spec: Unstructured, was: Unstructured, annotations: Unstructured, old_annotations: Unstructured
) -> list[FieldError]:
    """Validate the source ranges, which are in a field or in the annotation that the field replaced.

    A range may be surrounded by spaces.
    """
    ranges, annotation = items(spec, "loadBalancerSourceRanges"), annotations.get(SOURCE_RANGES, "")
    if not ranges and SOURCE_RANGES not in annotations:
        return []
    path = _SPEC.child("LoadBalancerSourceRanges") if ranges else _ANNOTATIONS.key(SOURCE_RANGES)
    errors = [] if spec.get("type") == LOAD_BALANCER else [forbidden(path, _BALANCERS_ONLY)]
    if ranges:
        existing = [text.strip() for text in items(was, "loadBalancerSourceRanges")]
        for index, text in enumerate(ranges):
            errors += validate_legacy_cidr(path.at(index), text.strip(), existing)
    elif annotation.strip() and annotation != old_annotations.get(SOURCE_RANGES):
        for text in annotation.split(","):
            errors += validate_legacy_cidr(path, text.strip())
    return errors


def _balancer_fields(spec: Unstructured) -> list[FieldError]:
    allocates, balances = spec.get("allocateLoadBalancerNodePorts"), spec.get("type") == LOAD_BALANCER
    errors: list[FieldError] = []
    if allocates is not None and not balances:
        errors.append(forbidden(_SPEC.child("allocateLoadBalancerNodePorts"), _BALANCERS_ONLY))
    return errors + _balancer_class(spec)


def _balancer_class(spec: Unstructured) -> list[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is None:
        return []
    if spec.get("type") != LOAD_BALANCER:
        return [forbidden(_BALANCER_CLASS, _BALANCERS_ONLY)]
    return [invalid(_BALANCER_CLASS, name, problem) for problem in qualified_name(name)]


def _external_traffic(spec: Unstructured) -> list[FieldError]:
    policy = spec.get("externalTrafficPolicy") or ""
    errors: list[FieldError] = []
    if not is_externally_accessible(spec):
        if policy:
            errors.append(invalid(_EXTERNAL_POLICY, policy, "may only be set for externally-accessible services"))
    elif not policy:
        errors.append(required(_EXTERNAL_POLICY))
    elif policy not in _POLICIES:
        errors.append(not_supported(_EXTERNAL_POLICY, policy, _POLICIES))
    return errors + _health_check_port(spec)


def _health_check_port(spec: Unstructured) -> list[FieldError]:
    port = spec.get("healthCheckNodePort") or 0
    if needs_health_check(spec):
        if not port:
            return [required(_HEALTH_CHECK_PORT)]
        return [invalid(_HEALTH_CHECK_PORT, port, problem) for problem in port_number(port)]
    if not port:
        return []
    detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    return [invalid(_HEALTH_CHECK_PORT, port, detail)]


def _internal_traffic(spec: Unstructured) -> list[FieldError]:
    policy = spec.get("internalTrafficPolicy")
    return [] if policy is None or policy in _POLICIES else [not_supported(_INTERNAL_POLICY, policy, _POLICIES)]


def _distribution(distribution: str | None) -> list[FieldError]:
    if distribution is None or distribution in _DISTRIBUTIONS:
        return []
    return [not_supported(_SPEC.child("trafficDistribution"), distribution, _DISTRIBUTIONS)]
