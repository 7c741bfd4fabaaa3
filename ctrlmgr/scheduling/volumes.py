"""Volumes that a pod's claims wait for: which a node could have, and whether that is enough for the pod.

Guarantees, those of kube-scheduler's VolumeBinding for claims whose class has them wait for a pod
(`pkg/scheduler/framework/plugins/volumebinding/binder.go`): the claims are seen to by size, the smallest first, and
each takes the smallest volume that the node can reach and that none before it has taken. A claim for which there is
none is to be provisioned, if its class can do that for the node; one for which a node has been chosen stays with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector

Topology = Mapping[str, frozenset[str]]
"""Labels that a node must have, each with one of these values."""


class Candidate(NamedTuple):
    """A volume that a claim could have."""

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
    """Where it can be, any of these; none: everywhere."""


def allotted(delayed: Sequence[Delayed], node: str, labels: Mapping[str, str]) -> dict[Key, str] | None:
    """Return which volume each claim has if the pod goes to a node; "": it is to be provisioned; None: it cannot go."""
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
