"""Scores: how well each of the nodes that can take a pod suits it.

Guarantees: each plugin gives 0 to 100; the weights are those of kube-scheduler's default profile. A plugin that has
nothing to say about a pod adds nothing to any node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ctrlmgr.scheduling.model import NodeInfo, PodInfo
from ctrlmgr.scheduling.pod_affinity import Namespaces, affinity_scores
from ctrlmgr.scheduling.resources import CPU, MEMORY
from ctrlmgr.scheduling.spread import spread_scores
from ctrlmgr.scheduling.taints import PREFER_NO_SCHEDULE, is_tolerated
from ctrlmgr.scheduling.views import Selector

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

Scores = dict[str, dict[str, int]]
"""By node, what each plugin gives, already weighted."""


def score(
    pod: PodInfo,
    feasible: Sequence[NodeInfo],
    nodes: Sequence[NodeInfo],
    namespaces: Namespaces,
    default_selector: Selector | None = None,
) -> Scores:
    """Score the nodes that can take a pod; `nodes` are all there are."""
    given = {
        "TaintToleration": _taints(pod, feasible),
        "NodeAffinity": _preferred_nodes(pod, feasible),
        "NodeResourcesFit": {node.name: least_allocated(pod, node) for node in feasible},
        "PodTopologySpread": spread_scores(pod, default_selector, feasible, nodes),
        "InterPodAffinity": affinity_scores(pod, feasible, nodes, namespaces),
        "NodeResourcesBalancedAllocation": _balanced(pod, feasible),
        "ImageLocality": _images(pod, feasible, nodes),
    }
    return {
        node.name: {
            plugin: WEIGHTS[plugin] * scores[node.name] for plugin, scores in given.items() if scores is not None
        }
        for node in feasible
    }


def _taints(pod: PodInfo, feasible: Sequence[NodeInfo]) -> dict[str, int]:
    """Few taints of the effect PreferNoSchedule that the pod does not tolerate are better than many."""
    tolerations = [each for each in pod.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    counts = {
        node.name: sum(
            each.effect == PREFER_NO_SCHEDULE and not is_tolerated(each, tolerations) for each in node.taints
        )
        for node in feasible
    }
    most = max(counts.values())
    return {name: HIGHEST - HIGHEST * count // most if most else HIGHEST for name, count in counts.items()}


def _preferred_nodes(pod: PodInfo, feasible: Sequence[NodeInfo]) -> dict[str, int] | None:
    affinity = pod.node_affinity
    preferred = affinity.preferred if affinity is not None else None
    if not preferred:
        return None
    sums = {
        node.name: sum(each.weight for each in preferred if each.preference.matches(node.name, node.labels))
        for node in feasible
    }
    most = max(sums.values())
    return {name: HIGHEST * found // most if most else found for name, found in sums.items()}


def least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """Score a node by the part of CPU and memory that would be left, containers that ask for none counting a little."""
    total = parts = 0
    for name in (CPU, MEMORY):
        held = node.allocatable.get(name, 0)
        if held:
            parts += 1
            wanted = node.used_defaulted.get(name, 0) + pod.defaulted_requests.get(name, 0)
            total += max(held - wanted, 0) * HIGHEST // held
    return total // parts if parts else 0


def _balanced(pod: PodInfo, feasible: Sequence[NodeInfo]) -> dict[str, int] | None:
    """Where CPU and memory would be used up alike is better; not asked for pods that ask for neither."""
    asked = pod.requests
    if not any(asked.get(name) for name in (CPU, MEMORY)):
        return None
    return {node.name: _balance(asked, node) for node in feasible}


def _balance(asked: Mapping[str, int], node: NodeInfo) -> int:
    parts = []
    for name in (CPU, MEMORY):
        held = node.allocatable.get(name, 0)
        if held:
            parts.append(min((node.used.get(name, 0) + asked.get(name, 0)) / held, 1.0))
    spread = abs((parts[0] - parts[1]) / 2) if len(parts) == 2 else 0.0
    return int((1 - spread) * HIGHEST)


def normalized_image(name: str) -> str:
    """Return an image's name with the tag that is meant if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(pod: PodInfo, feasible: Sequence[NodeInfo], nodes: Sequence[NodeInfo]) -> dict[str, int] | None:
    """Nodes that have large images already are better, the more so the more nodes have them."""
    spec = pod.view.spec
    wanted = [normalized_image(each.image) for each in (*(spec.init_containers or ()), *(spec.containers or ()))]
    if not any(node.images for node in feasible):
        return None
    spread = {name: sum(name in node.images for node in nodes) / len(nodes) for name in set(wanted)}
    scores = {}
    for node in feasible:
        found = sum(int(node.images[name] * spread[name]) for name in wanted if name in node.images)
        highest = _LARGE_IMAGE * len(wanted)
        bounded = min(max(found, _SMALL_IMAGE), highest)
        scores[node.name] = HIGHEST * (bounded - _SMALL_IMAGE) // (highest - _SMALL_IMAGE)
    return scores


def best(scores: Scores) -> list[str]:
    """Return the nodes with the highest sum, in the order given."""
    sums = {name: sum(each.values()) for name, each in scores.items()}
    most = max(sums.values(), default=-math.inf)
    return [name for name, found in sums.items() if found == most]
