"""Finds the sets of nodes on which a whole PodGroup may be placed, as the plugin TopologyPlacementGenerator does.

Guarantees: if the group has a topology constraint, each set contains the nodes that have the same value of the
constraint's label. Nodes without the label are in no set. If pods of the group already have nodes, only the set with
their nodes is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import Cluster

NO_PLACEMENTS: Final = "no feasible placements found"


class PlacementError(Exception):
    """Raised if the pods of a group that have nodes do not meet the topology constraint of the group."""


class GroupPlacement(NamedTuple):
    """A set of nodes on which a whole PodGroup may be placed."""

    name: str = ""
    """The value of the label that all nodes of the set have; "" if the set contains all nodes."""
    nodes: frozenset[str] | None = None
    """The names of the nodes; None means all nodes."""


ANYWHERE: Final = GroupPlacement()


def placements(label: str, cluster: Cluster, placed: Mapping[Key, str]) -> Sequence[GroupPlacement]:
    """Return the sets of nodes on which a group may be placed, in the order of the nodes of the cluster.

    `label` is the label of the group's topology constraint; "" if the group has no constraint. `placed` contains the
    nodes of the pods of the group that have nodes. Raises `PlacementError`.
    """
    if not label:
        return [ANYWHERE]
    required = _common_value(label, cluster, placed)
    by_value: dict[str, set[str]] = {}
    for node in cluster.list():
        value = node.labels.get(label)
        if value is not None and required in (None, value):
            by_value.setdefault(value, set()).add(node.name)
    return [GroupPlacement(value, frozenset(names)) for value, names in by_value.items()]


def _common_value(label: str, cluster: Cluster, placed: Mapping[Key, str]) -> str | None:
    """Return the value of a label on the nodes of pods; None if there are no pods."""
    common: str | None = None
    for pod, name in sorted(placed.items()):
        node = cluster.nodes.get(name)
        if node is None:
            raise _unclear(f'getting node for pod {pod}: nodeinfo not found for node name "{name}"')
        value = node.labels.get(label)
        if value is None:
            raise _unclear(f"no topology domain found for pod {pod}")
        if common not in (None, value):
            raise _unclear(f"more than 1 domain found for pod group: {common}, {value}")
        common = value
    return common


def _unclear(problem: str) -> PlacementError:
    return PlacementError(f"cannot determine domain for already scheduled pods: {problem}")
