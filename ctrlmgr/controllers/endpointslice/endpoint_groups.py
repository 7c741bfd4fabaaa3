"""Computes a Service's desired endpoints, grouped by their ports, for its EndpointSlices.

Guarantees, all as in Kubernetes 1.36 (`k8s.io/endpointslice`: `reconciler.go`, `utils.go`, `util/endpointset.go`):
- Every pod with an address of the IP family is one endpoint, unless the pod has ended (phase Failed or Succeeded). A
  pod that is being deleted stays an endpoint with the condition `terminating` until it no longer exists.
- A pod on a node that does not exist is left out, unless the Service publishes not-ready addresses.
- Pods whose ports resolve to the same numbers are in one group. If a pod lacks a port of the Service, the pod's group
  also lacks the port.
- The ports of a group are sorted in kube-controller-manager's order. The endpoints of a group are in the order of the
  pods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.core import CLUSTER_IP_NONE, IPV4, IPV6, Pod, Service, ServicePort, ip_family
from ctrlmgr.api.discovery import Endpoint, EndpointConditions, EndpointPort
from ctrlmgr.controllers.endpoints.subsets import Resolved
from ctrlmgr.controllers.go_hash import fnv1a_128
from ctrlmgr.engine.validation.ip_validation import parse_ip

Identity: TypeAlias = tuple[str, str, str, str]
"""The identity of an endpoint: its addresses, its hostname, and the namespace and name of its target."""

PortSet: TypeAlias = frozenset[EndpointPort]

ZoneOf: TypeAlias = Callable[[str], str | None]
"""The type of a function that returns the zone of the node with the given name. The function returns an empty string if
the node has no zone, and None if the node does not exist.
"""

_CONDITIONS = {flags: EndpointConditions(*flags) for flags in itertools.product((False, True), repeat=3)}


class Group(NamedTuple):
    """The endpoints of a Service that have the same ports."""

    ports: list[EndpointPort]
    endpoints: dict[Identity, Endpoint]


def address_types(service: Service) -> list[str]:
    """Return the IP families of a Service's slices, the primary family first.

    If the families are unknown, return both families.

    Services that were stored before dual-stack Services existed have no `ipFamilies`; the cluster IP determines their
    family.
    """
    families = [family for family in service.spec.ip_families or () if family in (IPV4, IPV6)]
    if families:
        return list(dict.fromkeys(families))
    cluster_ip = service.spec.cluster_ip
    return [ip_family(cluster_ip)] if cluster_ip not in ("", CLUSTER_IP_NONE) else [IPV4, IPV6]


def desired_groups(service: Service, pods: Iterable[Pod], address_type: str, zone_of: ZoneOf) -> dict[PortSet, Group]:
    """Return the endpoints of one IP family, grouped by their ports; `pods` are the pods that the Service selects.

    If no pod has an address of the family, return one empty group.
    """
    ports = service.spec.ports or []
    names = [(target, port.protocol) for port in ports if isinstance(target := port.target, str)]
    publish = service.spec.publish_not_ready_addresses
    groups: dict[Resolved, Group] = {}
    for pod in pods:
        if pod.is_terminal or not pod.ips:
            continue
        resolved = tuple(map(pod.named_ports.get, names))
        group = groups.get(resolved)
        if group is None:
            group = groups[resolved] = Group(sorted_ports(_slice_ports(ports, resolved)), {})
        zone = zone_of(pod.spec.node_name)
        if zone is None and not publish:
            continue
        endpoint = _endpoint(service, pod, address_type, zone)
        if endpoint is not None:
            group.endpoints[identity(endpoint)] = endpoint
    return {frozenset(group.ports): group for group in groups.values()}


def _endpoint(service: Service, pod: Pod, address_type: str, zone: str | None) -> Endpoint | None:
    found = pod.addresses.get(address_type)
    if found is None:
        return None
    address = canonical_ip(found.address.ip)
    if address is None:
        return None
    spec, serving, terminating = pod.spec, pod.is_ready, pod.is_terminating
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    is_named = spec.hostname and spec.subdomain == service.metadata.name
    return Endpoint(
        [address],
        _CONDITIONS[ready, serving, terminating],
        spec.hostname if is_named else None,
        found.address.target_ref,
        None,
        spec.node_name or None,
        zone or None,
    )


@lru_cache(maxsize=16384)
def canonical_ip(text: str) -> str | None:
    """Return an address in Go's canonical form; None if the string is not an IP address."""
    address = parse_ip(text)
    return None if address is None else str(address)


def identity(endpoint: Endpoint) -> Identity:
    """Return an endpoint's identity (`hashEndpoint`)."""
    addresses = endpoint.addresses
    key = addresses[0] if len(addresses) == 1 else " ".join(sorted(addresses))
    target = endpoint.target_ref
    if target is None:
        return (key, endpoint.hostname or "", "", "")
    return (key, endpoint.hostname or "", target.namespace, target.name)


def _slice_ports(ports: Sequence[ServicePort], resolved: Resolved) -> Iterator[EndpointPort]:
    """Yield the ports that pods offer. Each pod offers a numeric target port, even if the pod does not declare it."""
    numbers = iter(resolved)
    for port in ports:
        number = target if isinstance(target := port.target, int) else next(numbers)
        if number is not None:
            yield EndpointPort(port.name, port.protocol, number, port.app_protocol)


def sorted_ports(ports: Iterable[EndpointPort]) -> list[EndpointPort]:
    """Return `ports` in kube-controller-manager's order (`NewPortMapKey`)."""
    found = list(ports)
    if len(found) > 1:
        found.sort(key=_port_order)
    return found


@lru_cache(maxsize=4096)
def _port_order(port: EndpointPort) -> int:
    fields: Mapping[str, tuple[str, str | int | None]] = {
        "Name": ("string", port.name),
        "Protocol": ("v1.Protocol", port.protocol),
        "Port": ("int32", port.port),
        "AppProtocol": ("string", port.app_protocol),
    }
    dumped = (f"{name}:(*{kind}){'<nil>' if value is None else value}" for name, (kind, value) in fields.items())
    return fnv1a_128(f"(v1.EndpointPort){{{' '.join(dumped)}}}".encode())
