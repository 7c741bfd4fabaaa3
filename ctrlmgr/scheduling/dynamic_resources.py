"""Computes the node requirements of a pod's resource claims, as kube-scheduler's plugin DynamicResources does.

An allocated claim limits the pod to the nodes that can reach its devices. If claims are not allocated yet, `Allocating`
searches for devices on each node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.structured.allocator import Claim, InvalidPoolsError, Solution, UsedDevices, allocate
from ctrlmgr.scheduling.structured.device_reasons import device_reasons
from ctrlmgr.scheduling.structured.pools import Fields, NodePlace, Slice, gather

PLUGIN: Final = "DynamicResources"
NOT_ALLOCATED: Final = "cannot allocate all claims"
ELSEWHERE: Final = "resourceclaim not available on the node"
IN_USE: Final = "resourceclaim in use"

NO_CLAIMS: Final = "no new claims to deallocate"
DEALLOCATED: Final = "deallocation of ResourceClaim completed"
NOT_SCHEDULABLE: Final = "still not schedulable"


class SliceIndex:
    """All ResourceSlices, grouped by the nodes that may reach their pools."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        """Create an index of the given ResourceSlices."""
        self._by_pool: dict[tuple[str, str], list[Slice]] = {}
        self._pools_of: dict[str, set[tuple[str, str]]] = {}
        for each in slices:
            self._by_pool.setdefault(each.pool, []).append(each)
            # Pools with slices for several nodes have the node name "".
            name = "" if each.spec.get("sharedCounters") else each.spec.get("nodeName") or ""
            self._pools_of.setdefault(name, set()).add(each.pool)

    def of(self, node: str) -> list[Slice]:
        """Return the ResourceSlices of all pools that the node may reach."""
        pools = self._pools_of.get(node, set()) | self._pools_of.get("", set())
        return [each for pool in sorted(pools) for each in self._by_pool[pool]]


@dataclass
class Allocating:
    """The claims of a pod that need devices; the search for devices runs only once for each node."""

    claims: Sequence[Claim]
    slices: SliceIndex
    classes: Callable[[str], Fields | None]
    taken: UsedDevices
    _found: dict[str, Solution | str] = field(default_factory=dict)

    def on(self, name: str, labels: Mapping[str, str]) -> Solution | str:
        """Return devices on a node, or the reason why no devices are suitable.

        Raises `AllocationError` if a claim is invalid.
        """
        if name not in self._found:
            self._found[name] = self._search(NodePlace(name, labels))
        return self._found[name]

    def reasons(self, name: str, labels: Mapping[str, str]) -> list[str]:
        """For each device of a node and each request, return the reason why the device was not allocated."""
        pools = gather(NodePlace(name, labels), self.slices.of(name))
        return [*device_reasons(pools, self.claims, self.classes, self.taken)]

    def _search(self, node: NodePlace) -> Solution | str:
        try:
            found = allocate(gather(node, self.slices.of(node.name)), self.claims, self.classes, self.taken)
        except InvalidPoolsError as error:
            return str(error)
        return NOT_ALLOCATED if found is None else found


class Allocated(NamedTuple):
    """An allocated claim of a pod."""

    claim: Key
    selector: NodeSelector | None = None
    """The nodes that can reach the claim's devices; None means every node."""
    is_unused: bool = False
    """Whether no other pod uses the claim, so that the claim may be deallocated."""


class Devices(NamedTuple):
    """The node requirements of a pod's claims, or a problem that excludes every node."""

    allocated: tuple[Allocated, ...] = ()
    allocating: Allocating | None = None
    problem: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the pod has no claims, or its claims have a problem."""
        return not self.allocated and self.allocating is None

    def refusal(self, name: str, labels: Mapping[str, str]) -> str:
        """Return the reason why a node is infeasible for the pod; "" if the node is feasible.

        Raises `AllocationError` if a claim is invalid.
        """
        if self.allocating is not None and isinstance(reason := self.allocating.on(name, labels), str):
            return reason
        return ELSEWHERE if any(True for _ in self._elsewhere(name, labels)) else ""

    def deallocation(self, nodes: Mapping[str, Mapping[str, str]]) -> Key | None:
        """Return an unused claim whose devices are out of reach of at least one of `nodes` (labels by name).

        The method returns None if every unused claim has its devices within reach of all nodes.
        """
        for name, labels in nodes.items():
            for each in self._elsewhere(name, labels):
                if each.is_unused:
                    return each.claim
        return None

    def _elsewhere(self, name: str, labels: Mapping[str, str]) -> list[Allocated]:
        return [each for each in self.allocated if each.selector and not each.selector.matches(name, labels)]


NO_DEVICES: Final = Devices()
