"""Volumes for a pod's unbound claims: which ones a node can reach, and whether they suffice.

Guarantees, those of kube-scheduler's VolumeBinding for claims whose class waits for a pod
(`pkg/scheduler/framework/plugins/volumebinding/binder.go`): each claim, smallest first, gets the smallest volume that
the node can reach and that no claim before it got. Otherwise it is provisioned, if its class can do that for the node.
A claim with a selected node keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector

Topology = Mapping[str, frozenset[str]]
"""Labels that a node must have, each with one of these values."""


class Candidate(NamedTuple):
    """A possible volume for a claim."""

    name: str
    reached_from: NodeSelector | None = None
    """None: from every node."""


class Delayed(NamedTuple):
    """A claim that waits for a pod to be scheduled."""

    claim: Key
    size: int
    candidates: tuple[Candidate, ...] = ()
    """Smallest first."""
    selected: str = ""
    """The node for which it is being provisioned."""
    can_be_provisioned: bool = False
    topologies: tuple[Topology, ...] = ()
    """Alternatives for its location; none: everywhere."""


def allotted(delayed: Sequence[Delayed], node: str, labels: Mapping[str, str]) -> dict[Key, str] | None:
    """Return the volume of each claim if the pod is bound to a node; "": to be provisioned; None: infeasible."""
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
