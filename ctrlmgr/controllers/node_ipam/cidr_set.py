"""Divides a pool of addresses into ranges of equal size, and tracks which of these ranges are used.

Guarantees, which are the same as in Kubernetes' `pkg/controller/nodeipam/ipam/cidrset`: ranges are allocated in
rotation, so that a released range is not reused immediately. If a network outside of the controller uses addresses of
the pool, the ranges that overlap it are marked as used. Networks outside of the pool are ignored.
"""

from __future__ import annotations

import ipaddress
from typing import TypeAlias

from ctrlmgr.errors import SettingsError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MOST_BITS = 16
"""The maximum difference between the prefix lengths of a node's range and its pool."""
_DEFAULT_MASK = {4: 24, 6: 64}


class Pool:
    """A pool of addresses that is divided into ranges of one size."""

    def __init__(self, pool: Network, mask: int) -> None:
        """Create a set that divides `pool` into ranges with the prefix length `mask`.

        Raises `SettingsError` if the prefix length is unsuitable for the pool.
        """
        if not pool.prefixlen <= mask <= pool.max_prefixlen:
            raise SettingsError(f"controllers.cluster_cidr: {pool} cannot be cut into ranges with a mask of {mask}")
        if pool.version == 6 and mask - pool.prefixlen > MOST_BITS:
            raise SettingsError(
                f"controllers.cluster_cidr: the mask of a node's range may be at most {MOST_BITS} longer than {pool}'s"
            )
        self.pool = pool
        self._size = 1 << (pool.max_prefixlen - mask)
        self._mask = mask
        self._count = 1 << (mask - pool.prefixlen)
        self._taken: set[int] = set()
        self._next = 0

    def occupy(self, network: Network) -> None:
        """Mark the ranges that overlap `network` as used."""
        self._taken.update(self._indexes(network))

    def release(self, network: Network) -> None:
        """Release the ranges that overlap `network`."""
        self._taken.difference_update(self._indexes(network))

    def allocate(self) -> Network | None:
        """Allocate and return the next free range; return None if all ranges are used."""
        if len(self._taken) >= self._count:
            return None
        index = self._next
        while index in self._taken:
            index = (index + 1) % self._count
        self._taken.add(index)
        self._next = (index + 1) % self._count
        first = int(self.pool.network_address) + index * self._size
        return (
            ipaddress.ip_network((first, self._mask))
            if self.pool.version == 4
            else ipaddress.IPv6Network((first, self._mask))
        )

    def _indexes(self, network: Network) -> range:
        if network.version != self.pool.version or not _overlap(network, self.pool):
            return range(0)
        base = int(self.pool.network_address)
        first = max(int(network.network_address) - base, 0) // self._size
        last = min((int(network.broadcast_address) - base) // self._size, self._count - 1)
        return range(first, last + 1)


def _overlap(a: Network, b: Network) -> bool:
    return int(a.network_address) <= int(b.broadcast_address) and int(b.network_address) <= int(a.broadcast_address)


def pools(cluster: str, both: int, ipv4: int, ipv6: int) -> list[Pool]:
    """Return the pools for the networks in `cluster` (one or two), divided into ranges with these prefix lengths.

    The prefix length 0 stands for the default of the IP family. Raises `SettingsError` if a prefix length is
    unsuitable, or if `both` is set and there are two IP families.
    """
    networks = [ipaddress.ip_network(part) for part in (cluster or "10.244.0.0/16").split(",")]
    if len(networks) > 1 and both:
        raise SettingsError(
            "controllers.node_cidr_mask_size: in a dual-stack cluster, set node_cidr_mask_size_ipv4 and _ipv6 instead"
        )
    given = {4: ipv4 or (both if networks[0].version == 4 else 0), 6: ipv6 or (both if networks[0].version == 6 else 0)}
    return [Pool(each, given[each.version] or _DEFAULT_MASK[each.version]) for each in networks]
