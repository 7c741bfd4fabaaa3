"""Which ranges Services get addresses from: the settings' and those of every ServiceCIDR that is ready (KEP-1880).

Guarantees:
- A ServiceCIDR gives addresses while it is ready and not being deleted; one that says nothing is ready. A range of
  several ServiceCIDRs gives while one of them does.
- The settings' ranges come first; they give even before there is a ServiceCIDR of theirs.
- Only families that the settings have a range of are given, as by Kubernetes' API server.

Kubernetes: `pkg/registry/core/service/ipallocator/cidrallocator.go`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.strategy import View
from ctrlmgr.kinds.allocators.ranges import SHORTEST_IPV6_PREFIX, AddressRange, Network
from ctrlmgr.kinds.allocators.search import Searcher

SERVICE_CIDRS: Final = Resource("networking.k8s.io", "servicecidrs")
READY: Final = "Ready"


class Condition(msgspec.Struct, frozen=True, gc=False):
    """What of a condition decides anything."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    cidrs: list[str] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: list[Condition] | None = None


class ServiceCIDR(msgspec.Struct, frozen=True, gc=False):
    """A ServiceCIDR as its readers need it; `object.view(ServiceCIDR)` reads it."""

    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def ready(self) -> Condition | None:
        """Its condition Ready, None if it has none."""
        return next((each for each in self.status.conditions or () if each.type == READY), None)


def networks(service_cidr: Object) -> list[Network]:
    """Return the ranges of a ServiceCIDR."""
    return [ipaddress.ip_network(cidr) for cidr in service_cidr.view(ServiceCIDR).spec.cidrs or ()]


def gives(service_cidr: Object) -> bool:
    """Whether Services may get addresses of it."""
    ready = service_cidr.view(ServiceCIDR).ready
    return not service_cidr.is_terminating and (ready is None or ready.status == "True")


class Pool(NamedTuple):
    """A range and how to find what is free in it."""

    range: AddressRange
    searcher: Searcher


_Pools = Mapping[str, Sequence[Pool]]


class Pools:
    """The ranges to give from, by family, for decisions on any view."""

    def __init__(self, configured: Sequence[AddressRange]) -> None:
        """Take the settings' ranges, one a family."""
        self._configured = {each.network: each for each in configured}
        self._families = frozenset(each.family for each in configured)
        # Replaced at once, so that no thread ever sees the pools of other ServiceCIDRs; what is found goes by the
        # objects themselves, since revisions of different logs are alike.
        self._last: tuple[Sequence[Object], _Pools] = ((), {})
        self._last = ((), self._of(()))

    def of(self, view: View, family: str) -> Sequence[Pool]:
        """Return the ranges of a family in which to look, in this order; none if the family is not configured."""
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
        """Return the searcher that there is, which knows what is claimed, or a new one."""
        known = self._last[1].get(range.family, ())
        return next((pool.searcher for pool in known if pool.range.network == range.network), Searcher(range))


def _is_countable(network: Network) -> bool:
    """Whether Kubernetes' allocator takes a range."""
    return network.version == 4 or network.prefixlen >= SHORTEST_IPV6_PREFIX
