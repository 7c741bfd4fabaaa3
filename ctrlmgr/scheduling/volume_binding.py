"""Finds volumes for a pod's unbound claims: which volumes a node can reach, and whether these suffice.

Guarantees, as in kube-scheduler's VolumeBinding for claims whose class waits for a pod
(`pkg/scheduler/framework/plugins/volumebinding/binder.go`): for each claim, beginning with the smallest, the smallest
remaining volume is chosen that the node can reach. If no existing volume fits, but the claim's storage class can
provision volumes for the node, a volume is provisioned. A claim for which a node has been selected keeps that node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector

Topology = Mapping[str, frozenset[str]]
"""Labels that a node must have, each with a list of allowed values."""


class Candidate(NamedTuple):
    """A volume that the scheduler can choose for a claim."""

    name: str
    reached_from: NodeSelector | None = None
    """The nodes that can reach the volume; None means every node."""


class Delayed(NamedTuple):
    """A claim that waits for a pod to be scheduled."""

    claim: Key
    size: int
    candidates: tuple[Candidate, ...] = ()
    """The volumes that may be bound to the claim, the smallest first."""
    selected: str = ""
    """The node that was selected for the claim; the claim's volume is being provisioned for this node."""
    can_be_provisioned: bool = False
    topologies: tuple[Topology, ...] = ()
    """The alternative locations of the volume; empty if the volume can be anywhere."""


def allotted(delayed: Sequence[Delayed], node: str, labels: Mapping[str, str]) -> dict[Key, str] | None:
    """Return the volume of each claim if the pod is bound to the node; None if the node is infeasible.

    The volume name "" means that the volume must be provisioned.
    """
    found: dict[Key, str] = {}
    taken: set[str] = set()
    for each in sorted(delayed, key=lambda each: (each.size, each.claim)):
        if each.selected:
            if each.selected != node:
                return None
            found[each.claim] = ""
            continue
        free = (one for one in each.candidates if one.name not in taken)
        name = next((one.name for one in free if _is_reached(one, node, labels)), "")
        if not name and not _is_provisioned(each, labels):
            return None
        taken.add(name)
        found[each.claim] = name
    return found


def _is_reached(volume: Candidate, node: str, labels: Mapping[str, str]) -> bool:
    return volume.reached_from is None or volume.reached_from.matches(node, labels)


def _is_provisioned(claim: Delayed, labels: Mapping[str, str]) -> bool:
    if not claim.can_be_provisioned:
        return False
    if not claim.topologies:
        return True
    return any(all(labels.get(key) in values for key, values in each.items()) for each in claim.topologies)
