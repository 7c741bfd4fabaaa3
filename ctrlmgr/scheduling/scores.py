"""Computes the scores of the feasible nodes for a pod.

Guarantees: each plugin's score is 0 to 100; the weights are those of kube-scheduler's default profile. A plugin that
does not apply to a pod adds nothing to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.pod_affinity import affinity_scores
from ctrlmgr.scheduling.resource_amounts import CPU, MEMORY
from ctrlmgr.scheduling.scheduling_view import Selector
from ctrlmgr.scheduling.spread import spread_scores
from ctrlmgr.scheduling.taints import PREFER_NO_SCHEDULE, is_tolerated

HIGHEST: Final = 100
WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
_MEGABYTE: Final = 1024 * 1024
_SMALL_IMAGE: Final = 23 * _MEGABYTE
_LARGE_IMAGE: Final = 1000 * _MEGABYTE

Given = Sequence[int] | int
"""The scores that a plugin gives, in the order of the nodes; a single score if all nodes have the same score."""


class Scores:
    """The scores of all plugins for each feasible node."""

    def __init__(self, names: Sequence[str] = (), given: Mapping[str, Given] | None = None) -> None:
        """Store the unweighted scores of each plugin for the nodes with these names."""
        self._names = names
        self._given = given or {}

    def of(self, name: str) -> dict[str, int]:
        """Return the weighted score of each plugin for a node."""
        at = self._names.index(name)
        return {
            plugin: WEIGHTS[plugin] * (found if isinstance(found, int) else found[at])
            for plugin, found in self._given.items()
        }

    def sums(self) -> dict[str, int]:
        """Return the total score of each node."""
        same = sum(WEIGHTS[plugin] * found for plugin, found in self._given.items() if isinstance(found, int))
        totals = [same] * len(self._names)
        for plugin, found in self._given.items():
            if not isinstance(found, int):
                weight = WEIGHTS[plugin]
                totals = [total + weight * each for total, each in zip(totals, found, strict=True)]
        return dict(zip(self._names, totals, strict=True))

    def best(self) -> list[str]:
        """Return the nodes with the highest score, in the order in which they were given."""
        sums = self.sums()
        most = max(sums.values(), default=-math.inf)
        return [name for name, found in sums.items() if found == most]


def score(
    pod: PodInfo,
    feasible: Sequence[NodeInfo],
    cluster: Cluster,
    busy: Sequence[NodeInfo],
    default_selector: Selector | None = None,
) -> Scores:
    """Return the scores of the feasible nodes; `busy` are the nodes that have pods with affinities."""
    nodes = cluster.list()
    names = [node.name for node in feasible]
    inputs: dict[str, Given | dict[str, int] | None] = {
        "TaintToleration": _taints(pod, feasible),
        "NodeAffinity": _preferred_nodes(pod, feasible),
        "NodeResourcesFit": _least_allocated(pod, feasible),
        "PodTopologySpread": spread_scores(pod, default_selector, feasible, nodes),
        "InterPodAffinity": affinity_scores(pod, feasible, nodes, busy, cluster.namespaces),
        "NodeResourcesBalancedAllocation": _balanced(pod, feasible),
        "ImageLocality": _images(pod, feasible, cluster),
    }
    given: dict[str, Given] = {}
    for plugin, found in inputs.items():
        if isinstance(found, dict):
            given[plugin] = [found[name] for name in names]
        elif found is not None:
            given[plugin] = found
    return Scores(names, given)


def _taints(pod: PodInfo, feasible: Sequence[NodeInfo]) -> Given:
    """Score nodes by the number of PreferNoSchedule taints that the pod does not tolerate.

    Fewer taints give a higher score.
    """
    if not any(node.taints for node in feasible):
        return HIGHEST
    tolerations = [each for each in pod.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    counts = [
        sum(each.effect == PREFER_NO_SCHEDULE and not is_tolerated(each, tolerations) for each in node.taints)
        for node in feasible
    ]
    most = max(counts)
    return [HIGHEST - HIGHEST * count // most for count in counts] if most else HIGHEST


def _preferred_nodes(pod: PodInfo, feasible: Sequence[NodeInfo]) -> Given | None:
    affinity = pod.node_affinity
    preferred = affinity.preferred if affinity is not None else None
    if not preferred:
        return None
    sums = [
        sum(each.weight for each in preferred if each.preference.matches(node.name, node.labels)) for node in feasible
    ]
    most = max(sums)
    return [HIGHEST * found // most for found in sums] if most else sums


def _least_allocated(pod: PodInfo, feasible: Sequence[NodeInfo]) -> list[int]:
    """Score nodes by the fraction of CPU and memory that would remain free.

    For this score, containers without requests get small default requests.
    """
    requested = pod.defaulted_requests
    cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
    scores = []
    for node in feasible:
        held, used = node.allocatable, node.used_defaulted
        total = parts = 0
        if whole := held.get(CPU, 0):
            parts = 1
            left = whole - used.get(CPU, 0) - cpu
            total = left * HIGHEST // whole if left > 0 else 0
        if whole := held.get(MEMORY, 0):
            parts += 1
            left = whole - used.get(MEMORY, 0) - memory
            total += left * HIGHEST // whole if left > 0 else 0
        scores.append(total // parts if parts else 0)
    return scores


def _balanced(pod: PodInfo, feasible: Sequence[NodeInfo]) -> Given | None:
    """Score nodes by how equal the used fractions of CPU and memory would be.

    Return None if the pod requests neither.
    """
    requested = pod.requests
    if not any(requested.get(name) for name in (CPU, MEMORY)):
        return None
    return [_balance(requested, node) for node in feasible]


def _balance(requested: Mapping[str, int], node: NodeInfo) -> int:
    parts = []
    for name in (CPU, MEMORY):
        held = node.allocatable.get(name, 0)
        if held:
            parts.append(min((node.used.get(name, 0) + requested.get(name, 0)) / held, 1.0))
    spread = abs((parts[0] - parts[1]) / 2) if len(parts) == 2 else 0.0
    return int((1 - spread) * HIGHEST)


def normalized_image(name: str) -> str:
    """Return an image's name; a name without a tag gets the default tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(pod: PodInfo, feasible: Sequence[NodeInfo], cluster: Cluster) -> Given | None:
    """Score nodes by the size of the pod's images on the node, weighted by the number of nodes with each image."""
    spec = pod.view.spec
    pod_images = [normalized_image(each.image) for each in (*(spec.init_containers or ()), *(spec.containers or ()))]
    if not cluster.images:
        return None
    images, nodes = set(pod_images), cluster.list()
    if images.isdisjoint(cluster.images):
        return 0
    spread = {name: sum(name in node.images for node in nodes) / len(nodes) for name in images}
    scores = []
    for node in feasible:
        found = sum(int(node.images[name] * spread[name]) for name in pod_images if name in node.images)
        highest = _LARGE_IMAGE * len(pod_images)
        bounded = min(max(found, _SMALL_IMAGE), highest)
        scores.append(HIGHEST * (bounded - _SMALL_IMAGE) // (highest - _SMALL_IMAGE))
    return scores
