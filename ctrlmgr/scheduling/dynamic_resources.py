"""The requirements of a pod's resource claims, as in kube-scheduler's plugin DynamicResources.

Devices are not allocated here: a claim without allocation fits on no node. An allocated claim limits the pod to the
nodes that can reach its devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ctrlmgr.scheduling.node_selection import NodeSelector

PLUGIN: Final = "DynamicResources"
NOT_ALLOCATED: Final = "cannot allocate all claims"
ELSEWHERE: Final = "resourceclaim not available on the node"
IN_USE: Final = "resourceclaim in use"


class Devices(NamedTuple):
    """The requirements of a pod's claims: selectors that must all match, or a problem on every node."""

    selectors: tuple[NodeSelector, ...] = ()
    is_allocated: bool = True
    """Whether all claims of the pod are allocated."""
    problem: str = ""

    def refusal(self, name: str, labels: Mapping[str, str]) -> str:
        """Return why a node is infeasible for the pod, "" if it is feasible."""
        if not all(each.matches(name, labels) for each in self.selectors):
            return ELSEWHERE
        return "" if self.is_allocated else NOT_ALLOCATED


NO_DEVICES: Final = Devices()
