"""Converts the subsets of an Endpoints object to endpoints by IP family and set of ports.

Guarantees, those of `reconcile` (Kubernetes' `pkg/controller/endpointslicemirroring/reconciler.go`), which repacks the
subsets first (`RepackSubsets` in `pkg/api/v1/endpoints/util.go`):
- The result does not depend on how the addresses are divided into subsets. Each address is grouped by the set of all
  ports that it offers.
- If the same address and port are ready in one subset and not ready in another subset, the address counts as not ready.
- Each set of ports has at most `maximum` addresses; ready addresses have precedence. The mirrored slices omit invalid
  IP addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.core import IPV4, IPV6, EndpointAddress, EndpointSubset
from ctrlmgr.api.core import EndpointPort as SubsetPort
from ctrlmgr.api.discovery import Endpoint, EndpointConditions, EndpointPort
from ctrlmgr.controllers.endpointslice.endpoint_groups import Group, PortSet, canonical_ip, identity, sorted_ports

Host: TypeAlias = tuple[str, str]
"""The identity of an address: the IP address, and the uid of its target object."""

_READY = EndpointConditions(ready=True)
_NOT_READY = EndpointConditions(ready=False)


class _Offer(NamedTuple):
    """An address that is available at one port."""

    port: SubsetPort | None
    host: Host
    address: EndpointAddress
    ready: bool


def mirrored_groups(subsets: Iterable[EndpointSubset], maximum: int) -> dict[str, dict[PortSet, Group]]:
    """Return the endpoints of each IP family, grouped by their ports.

    Each set of ports has at most `maximum` endpoints.
    """
    found: dict[str, dict[PortSet, Group]] = {IPV4: {}, IPV6: {}}
    for subset in repack(subsets):
        ports = sorted_ports(map(_slice_port, subset.ports or ()))
        for address, ready in islice(_valid(subset), maximum):
            endpoint = _endpoint(address, ready=ready)
            groups = found[IPV6 if ":" in endpoint.addresses[0] else IPV4]
            group = groups.setdefault(frozenset(ports), Group(ports, {}))
            group.endpoints[identity(endpoint)] = endpoint
    return found


class Skipped(NamedTuple):
    """The number of addresses that are not mirrored, and the number of invalid addresses among them."""

    number: int
    invalid: int


def skipped_addresses(subsets: Iterable[EndpointSubset], maximum: int) -> Skipped:
    """Count the addresses that `mirrored_groups` leaves out; an address counts once for each set of ports."""
    subsets = list(subsets)
    everything = [address for subset in subsets for address in _all(subset)]
    if len(everything) <= maximum and all(map(_is_valid, everything)):
        return Skipped(0, 0)
    number = invalid = 0
    for addresses in map(_all, repack(subsets)):
        valid = 0
        for address in addresses:
            if valid == maximum:
                break
            valid += _is_valid(address)
            invalid += not _is_valid(address)
        number += len(addresses) - valid
    return Skipped(number, invalid)


def _all(subset: EndpointSubset) -> list[EndpointAddress]:
    return [*(subset.addresses or ()), *(subset.not_ready_addresses or ())]


def _is_valid(address: EndpointAddress) -> bool:
    return canonical_ip(address.ip) is not None


def repack(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """Return equivalent subsets with sorted addresses; no two of these subsets have the same addresses."""
    addresses: dict[Host, EndpointAddress] = {}
    offers: dict[SubsetPort | None, dict[Host, bool]] = {}
    for offer in _offers(subsets):
        addresses.setdefault(offer.host, offer.address)
        hosts = offers.setdefault(offer.port, {})
        hosts[offer.host] = offer.ready and hosts.get(offer.host, True)
    packed: dict[frozenset[tuple[Host, bool]], list[SubsetPort]] = {}
    for port, hosts in offers.items():
        ports = packed.setdefault(frozenset(hosts.items()), [])
        if port is not None:
            ports.append(port)
    return [
        EndpointSubset(
            [addresses[host] for host, ready in sorted(hosts) if ready],
            [addresses[host] for host, ready in sorted(hosts) if not ready],
            ports,
        )
        for hosts, ports in packed.items()
    ]


def _offers(subsets: Iterable[EndpointSubset]) -> Iterator[_Offer]:
    """Yield every address at each of its ports; if a subset has no ports, yield its addresses with the port None."""
    for subset in subsets:
        ports: list[SubsetPort | None] = [*(subset.ports or (None,))]
        for addresses, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
            for address in addresses or ():
                host = (address.ip, address.target_ref.uid if address.target_ref is not None else "")
                yield from (_Offer(port, host, address, ready) for port in ports)


def _valid(subset: EndpointSubset) -> Iterator[tuple[EndpointAddress, bool]]:
    for addresses, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
        yield from ((address, ready) for address in addresses or () if _is_valid(address))


def _endpoint(address: EndpointAddress, *, ready: bool) -> Endpoint:
    return Endpoint(
        [canonical_ip(address.ip) or ""],
        _READY if ready else _NOT_READY,
        address.hostname or None,
        address.target_ref,
        None,
        address.node_name or None,
    )


def _slice_port(port: SubsetPort) -> EndpointPort:
    return EndpointPort(port.name, port.protocol, port.port, port.app_protocol)
