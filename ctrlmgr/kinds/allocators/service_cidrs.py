"""The address ranges of Services: the ranges in the settings, and the ranges of every ready ServiceCIDR (KEP-1880).

Guarantees:
- A ServiceCIDR is used while it is ready and not being deleted. A ServiceCIDR without the condition Ready counts as
  ready. If several ServiceCIDRs have the same range, the range is used as long as one of them is ready.
- The ranges in the settings are searched first, and they are used even before their ServiceCIDR exists.
- Addresses are allocated only for IP families with a range in the settings, as in Kubernetes' API server.

Source: Kubernetes' `pkg/registry/core/service/ipallocator/cidrallocator.go`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.strategy import View
from ctrlmgr.kinds.allocators.search import Searcher
from ctrlmgr.kinds.allocators.service_ranges import SHORTEST_IPV6_PREFIX, AddressRange, Network

SERVICE_CIDRS: Final = Resource("networking.k8s.io", "servicecidrs")
READY: Final = "Ready"


class Condition(msgspec.Struct, frozen=True, gc=False):
    """The fields of a ServiceCIDR condition that this module reads."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    cidrs: list[str] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[Condition] | None = None


class ServiceCIDR(msgspec.Struct, frozen=True, gc=False):
    """The fields of a ServiceCIDR that this module reads; `object.view(ServiceCIDR)` decodes them."""

    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def ready(self) -> Condition | None:
        """The condition Ready of the ServiceCIDR; None if it has no such condition."""
        return next((each for each in self.status.conditions or () if each.type == READY), None)


def networks(service_cidr: Object) -> list[Network]:
    """Return the address ranges of a ServiceCIDR."""
    return [ipaddress.ip_network(cidr) for cidr in service_cidr.view(ServiceCIDR).spec.cidrs or ()]


def gives(service_cidr: Object) -> bool:
    """Return whether addresses of this ServiceCIDR may be allocated to Services."""
    ready = service_cidr.view(ServiceCIDR).ready
    return not service_cidr.is_terminating and (ready is None or ready.status == "True")


class Pool(NamedTuple):
    """One address range, and the search for free addresses in the range."""

    range: AddressRange
    searcher: Searcher


_Pools = Mapping[str, Sequence[Pool]]


class Pools:
    """Determines, in any view, the ranges from which addresses of each IP family are allocated."""

    def __init__(self, configured: Sequence[AddressRange]) -> None:
        """Create an instance with the address ranges in the settings, one for each IP family."""
        self._configured = {each.network: each for each in configured}
        self._families = frozenset(each.family for each in configured)
        # The pools of addresses of the current ServiceCIDRs. The whole mapping of pools is replaced at once, so that no
        # thread combines pools of different ServiceCIDRs. ServiceCIDRs are compared by the identity of Python objects,
        # because different logs can have equal revisions.
        self._last: tuple[Sequence[Object], _Pools] = ((), {})
        self._last = ((), self._of(()))

    def of(self, view: View, family: str) -> Sequence[Pool]:
        """Return the address ranges of an IP family, in the order in which they are searched.

        The result is empty if the IP family is not configured.
        """
        service_cidrs = view.list(SERVICE_CIDRS)
        known, pools = self._last
        if len(known) != len(service_cidrs) or any(a is not b for a, b in zip(known, service_cidrs, strict=True)):
            pools = self._of(service_cidrs)
            self._last = (service_cidrs, pools)
        return pools.get(family, ())

    def _of(self, service_cidrs: Iterable[Object]) -> _Pools:
        giving: dict[Network, bool] = {}
        for service_cidr in service_cidrs:
            for network in networks(service_cidr):
                giving[network] = giving.get(network, False) or gives(service_cidr)
        found: dict[str, list[Pool]] = {}
        for network in dict.fromkeys([*self._configured, *giving]):
            if giving.get(network, True) and _is_countable(network):
                each = self._configured.get(network) or AddressRange(network, reserved=0)
                if each.family in self._families and each.count > 0:
                    found.setdefault(each.family, []).append(Pool(each, self._searcher(each)))
        return found

    def _searcher(self, range: AddressRange) -> Searcher:
        """Return the existing searcher of a range, which has a cached bit array, or a new searcher."""
        known = self._last[1].get(range.family, ())
        return next((pool.searcher for pool in known if pool.range.network == range.network), Searcher(range))


def _is_countable(network: Network) -> bool:
    """Return whether Kubernetes' allocator would accept a range."""
    return network.version == 4 or network.prefixlen >= SHORTEST_IPV6_PREFIX
