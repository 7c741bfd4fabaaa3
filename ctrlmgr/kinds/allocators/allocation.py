"""One write's search for addresses and ports: what may be had by name, and what is next.

Guarantees: nothing is given that is held in the write's view, or that the write itself was given before.
A dry run claims nothing, so it is told what Kubernetes tells one: requests are only checked loosely, and the values
it would be given are placeholders (`dryRunAllocator`, `portallocator/operation.go`).

The messages are those of Kubernetes' `ipallocator` and `portallocator`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.addresses import parse_ip
from ctrlmgr.kinds.allocators.claims import is_claimed
from ctrlmgr.kinds.allocators.ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from ctrlmgr.kinds.allocators.search import Searcher
from ctrlmgr.kinds.allocators.service_cidrs import Pool, Pools

FULL = "range is full"
_LARGEST = 2**31 - 1
_DRY_RUN_PORT = 32769


class Allocator:
    """What there is to give out, and how to find what is left of it."""

    def __init__(self, ranges: Ranges) -> None:
        """Take the ranges."""
        self.ranges = ranges
        self.addresses = Pools(ranges.addresses)
        self.ports = Searcher(ranges.ports)

    def begin(self, ctx: Context) -> Allocation:
        """Begin a write."""
        return Allocation(ctx, self)


class Allocation:
    """What one write takes."""

    def __init__(self, ctx: Context, allocator: Allocator) -> None:
        """Begin with nothing taken."""
        self._view = ctx.view
        self._random = ctx.random
        self._dry_run = ctx.dry_run
        self._allocator = allocator
        self._ranges = allocator.ranges
        self._ports: set[int] = set()

    def address_problem(self, family: str, text: str) -> str:
        """Say why a certain address cannot be had; the empty string means that it can."""
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
        """Return a free address, None if all of the family's ranges are full."""
        pools = self._allocator.addresses.of(self._view, family)
        if pools and self._dry_run:
            return pools[0].range.base
        for addresses, searcher in pools:
            index = searcher.find(self._view, self._random)
            if index is not None:
                return addresses[index]
        return None

    def claim_port(self, port: int) -> str:
        """Claim a certain port; return why it cannot be had, or the empty string."""
        if not self._dry_run and port not in self._ranges.ports:
            return f"provided port is not in the valid range. The range of valid ports is {self._ranges.ports}"
        if port in self._ports or is_claimed(self._view, NODE_PORTS, str(port)):
            return "provided port is already allocated"
        self._ports.add(port)
        return ""

    def next_port(self) -> int | None:
        """Take and return a free port, None if the range is full."""
        if self._dry_run:
            port = max(self._ports, default=_DRY_RUN_PORT - 1) + 1
        else:
            first = self._ranges.ports.first
            index = self._allocator.ports.find(self._view, self._random, {port - first for port in self._ports})
            if index is None:
                return None
            port = first + index
        self._ports.add(port)
        return port if port <= _LARGEST else port - 2 * (_LARGEST + 1)  # as Go makes an int32 of a dry run's guess
