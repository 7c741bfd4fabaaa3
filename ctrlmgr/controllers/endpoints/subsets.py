"""Computes the `subsets` of an Endpoints object; each subset lists addresses that offer the same ports.

Guarantees:
- For the same pods, the result and its order equal the result of `RepackSubsets` (Kubernetes'
  `pkg/api/v1/endpoints/util.go`). The result does not depend on the order of the pods.
- Every address is in exactly those subsets whose ports its pod offers. No two subsets have the same addresses.

Kubernetes expands all subsets to (port, address) pairs and packs these pairs again. Pods whose ports resolve to the
same numbers are always in the same subsets. Therefore this module first groups pods by their port numbers, and then
packs the groups; usually, all pods are in one group. An address's identity includes its pod's uid, and a Service's
ports have unique names, so there are no duplicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ctrlmgr.api.core import (
    CLUSTER_IP_NONE,
    EndpointAddress,
    EndpointPort,
    EndpointSubset,
    Pod,
    PodAddress,
    Service,
    ServicePort,
    ip_family,
)
from ctrlmgr.controllers.go_hash import port_order, subset_order

CAPACITY = 1000
"""The maximum number of addresses in an Endpoints object (`maxCapacity`)."""

Resolved: TypeAlias = tuple[int | None, ...]
"""The port number in one pod for each port of the Service with a named target. A port that the pod does not have is
None. If no port has a named target, the tuple is empty.
"""

_order = itemgetter(0)


class Group(NamedTuple):
    """The addresses of the pods whose ports resolve to the same numbers."""

    ready: list[PodAddress]
    not_ready: list[PodAddress]


def desired_subsets(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """Return the subsets of the Endpoints of `service`, before truncation.

    `pods` are the pods that the Service selects.

    A Service without ports has endpoints only if its cluster IP is "None".
    """
    ports = service.spec.ports or []
    if not ports and service.spec.cluster_ip != CLUSTER_IP_NONE:
        return []
    names = [(target, port.protocol) for port in ports if isinstance(target := port.target, str)]
    return pack(ports, _group(service, names, pods))


def _group(service: Service, names: Sequence[tuple[str, str]], pods: Iterable[Pod]) -> dict[Resolved, Group]:
    """Return the addresses of the pods that belong to the endpoints, grouped by resolved ports.

    A pod is left out if it has ended (phase Failed or Succeeded), has no address of the Service's IP family, or is
    being deleted. If the Service publishes not-ready addresses, terminating pods are included and all addresses count
    as ready (`ShouldPodBeInEndpoints`, `addEndpointSubset`).
    """
    publish = service.spec.publish_not_ready_addresses
    family = service.primary_family
    subdomain = service.metadata.name
    groups: dict[Resolved, Group] = {}
    for pod in pods:
        if pod.is_terminal or (pod.is_terminating and not publish):
            continue
        address = pod.addresses.get(family or ip_family(pod.status.pod_ip))
        if address is None:
            continue
        if pod.spec.hostname and pod.spec.subdomain == subdomain:
            address = address._replace(address=replace(address.address, hostname=pod.spec.hostname))
        resolved = tuple(map(pod.named_ports.get, names))
        group = groups.get(resolved)
        if group is None:
            group = groups[resolved] = Group([], [])
        (group.ready if publish or pod.is_ready else group.not_ready).append(address)
    return groups


def pack(ports: Sequence[ServicePort], groups: Mapping[Resolved, Group]) -> list[EndpointSubset]:
    """Return a subset for each set of groups that offers the same port, in Kubernetes' order.

    If the Service has no ports, there is one subset that contains all addresses and no ports.
    """
    if not ports:
        return [_subset(list(groups.values()), [])] if groups else []
    offering: dict[EndpointPort, list[Resolved]] = {}
    for resolved in groups:
        for port in _endpoint_ports(ports, resolved):
            offering.setdefault(port, []).append(resolved)
    packed: dict[tuple[Resolved, ...], list[EndpointPort]] = {}
    for port, offered_by in offering.items():
        packed.setdefault(tuple(offered_by), []).append(port)
    subsets = [_subset([groups[each] for each in offered_by], found) for offered_by, found in packed.items()]
    if len(subsets) > 1:
        subsets.sort(key=subset_order)
    return subsets


def _endpoint_ports(ports: Sequence[ServicePort], resolved: Resolved) -> Iterator[EndpointPort]:
    """Yield the ports that pods offer. Each pod offers a numeric target port, even if the pod does not declare it."""
    numbers = iter(resolved)
    for port in ports:
        number = target if isinstance(target := port.target, int) else next(numbers)
        if number is not None:
            yield EndpointPort(port.name, number, port.protocol, port.app_protocol)


def _subset(groups: Sequence[Group], ports: list[EndpointPort]) -> EndpointSubset:
    if len(ports) > 1:
        ports.sort(key=port_order)
    ready = _sorted_addresses([group.ready for group in groups])
    not_ready = _sorted_addresses([group.not_ready for group in groups])
    return EndpointSubset(ready or None, not_ready or None, ports or None)


def _sorted_addresses(lists: Sequence[list[PodAddress]]) -> list[EndpointAddress]:
    found = lists[0] if len(lists) == 1 else [address for each in lists for address in each]
    return [each.address for each in sorted(found, key=_order)]


def count_addresses(subsets: Iterable[EndpointSubset]) -> tuple[int, int]:
    """Return the numbers of ready and of not-ready addresses; an address in two subsets counts twice."""
    ready = not_ready = 0
    for subset in subsets:
        ready += len(subset.addresses or ())
        not_ready += len(subset.not_ready_addresses or ())
    return ready, not_ready


def truncate(subsets: list[EndpointSubset]) -> list[EndpointSubset]:
    """Return `subsets` within `CAPACITY`; if they do not exceed it, return the same list.

    Ready addresses have precedence: they are removed only if there are more ready addresses than the capacity. If ready
    addresses are removed, all not-ready addresses are also removed. Each subset keeps its proportional share of the
    capacity, rounded up, until the capacity is reached. Within a subset, the first addresses are kept
    (`truncateEndpoints` in `endpoints_controller.go`).
    """
    ready, not_ready = count_addresses(subsets)
    if ready + not_ready <= CAPACITY:
        return subsets
    cut_ready = ready > CAPACITY
    room = CAPACITY if cut_ready else CAPACITY - ready
    total = ready if cut_ready else not_ready
    left = room
    kept = []
    for subset in subsets:
        addresses = (subset.addresses if cut_ready else subset.not_ready_addresses) or []
        share = addresses[: min(math.ceil(len(addresses) / total * room), left)]
        left -= len(share)
        kept.append(EndpointSubset(*((share, None) if cut_ready else (subset.addresses, share or None)), subset.ports))
    return kept
