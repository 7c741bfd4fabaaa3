"""What the resource claims of a pod ask of its node, as kube-scheduler's plugin DynamicResources says it.

Devices are not allocated here: a claim that nothing has allocated fits on no node. A claim that is allocated limits the
pod to the nodes from which its devices can be reached.
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
    """What a pod's claims ask of nodes: that each selector matches; or why there is no node for it at all."""

    selectors: tuple[NodeSelector, ...] = ()
    is_allocated: bool = True
    """Whether all claims of the pod have their devices."""
    problem: str = ""

    def refusal(self, name: str, labels: Mapping[str, str]) -> str:
        """Return why a node cannot take the pod, "" if it can."""
        if not all(each.matches(name, labels) for each in self.selectors):
            return ELSEWHERE
        return "" if self.is_allocated else NOT_ALLOCATED


NO_DEVICES: Final = Devices()
