"""Allocates the addresses and ports for one write: both requested values and free values.

Guarantees: a value is not allocated if the state before the write contains a claim on the value. A write never
allocates a value twice. A dry run creates no claims. The results of a dry run are the same as in Kubernetes: requested
values are checked only partly, and allocated values are placeholders (`dryRunAllocator`, `portallocator/operation.go`).

The error messages are the same as in Kubernetes' `ipallocator` and `portallocator`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.ip_validation import parse_ip
from ctrlmgr.kinds.allocators.allocation_claims import is_claimed
from ctrlmgr.kinds.allocators.search import Searcher
from ctrlmgr.kinds.allocators.service_cidrs import Pool, Pools
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges

FULL = "range is full"
_LARGEST = 2**31 - 1
_DRY_RUN_PORT = 32769


class Allocator:
    """The ranges of addresses and ports, and the search for free values in these ranges."""

    def __init__(self, ranges: Ranges) -> None:
        """Create an allocator for the values of `ranges`."""
        self.ranges = ranges
        self.addresses = Pools(ranges.addresses)
        self.ports = Searcher(ranges.ports)

    def begin(self, ctx: Context) -> Allocation:
        """Return an allocation for one write."""
        return Allocation(ctx, self)


class Allocation:
    """The addresses and ports that one write allocates."""

    def __init__(self, ctx: Context, allocator: Allocator) -> None:
        """Create an allocation for a write, with no allocated values yet."""
        self._view = ctx.view
        self._random = ctx.random
        self._dry_run = ctx.dry_run
        self._allocator = allocator
        self._ranges = allocator.ranges
        self._ports: set[int] = set()

    def address_problem(self, family: str, text: str) -> str:
        """Return the reason why an address cannot be allocated; empty if the address can be allocated."""
        pools, address = self._allocator.addresses.of(self._view, family), parse_ip(text)
        if address is None or not any(address in pool.range for pool in pools):
            return self._out_of_range(text, pools)
        taken = not self._dry_run and is_claimed(self._view, IP_ADDRESSES, str(address))
        return "provided IP is already allocated" if taken else ""

    def _out_of_range(self, text: str, pools: Sequence[Pool]) -> str:
        if self._dry_run and pools:
            valid = pools[0].range
            return f"the provided IP ({parse_ip(text)}) is not in the valid range. The range of valid IPs is {valid}"
        return "the provided network does not match the current range"

    def next_address(self, family: str) -> str | None:
        """Return a free address; None if all address ranges of the IP family are full."""
        pools = self._allocator.addresses.of(self._view, family)
        if pools and self._dry_run:
            return pools[0].range.base
        for addresses, searcher in pools:
            index = searcher.find(self._view, self._random)
            if index is not None:
                return addresses[index]
        return None

    def claim_port(self, port: int) -> str:
        """Claim a port; return the reason if the port cannot be claimed, otherwise an empty string."""
        if not self._dry_run and port not in self._ranges.ports:
            return f"provided port is not in the valid range. The range of valid ports is {self._ranges.ports}"
        if port in self._ports or is_claimed(self._view, NODE_PORTS, str(port)):
            return "provided port is already allocated"
        self._ports.add(port)
        return ""

    def next_port(self) -> int | None:
        """Claim a free port and return it; None if the port range is full."""
        if self._dry_run:
            port = max(self._ports, default=_DRY_RUN_PORT - 1) + 1
        else:
            first = self._ranges.ports.first
            index = self._allocator.ports.find(self._view, self._random, {port - first for port in self._ports})
            if index is None:
                return None
            port = first + index
        self._ports.add(port)
        # In a dry run, Go's port number overflows, because Go's type of the port number is int32.
        return port if port <= _LARGEST else port - 2 * (_LARGEST + 1)
