"""Computes the scores of the feasible nodes for a pod.

Guarantees: each plugin's score is 0 to 100; the weights are those of the profile. A plugin that
does not apply to a pod adds nothing to the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.node_selection import NodeAffinity
from ctrlmgr.scheduling.pod_affinity import affinity_scores
from ctrlmgr.scheduling.profile import DEFAULT, WEIGHTS, Profile
from ctrlmgr.scheduling.resource_scores import balance_scores, fit_scores
from ctrlmgr.scheduling.scheduling_view import SpreadConstraint
from ctrlmgr.scheduling.spread import spread_scores
from ctrlmgr.scheduling.taints import PREFER_NO_SCHEDULE, is_tolerated

HIGHEST: Final = 100
_MEGABYTE: Final = 1024 * 1024
_SMALL_IMAGE: Final = 23 * _MEGABYTE
_LARGE_IMAGE: Final = 1000 * _MEGABYTE

Given = Sequence[int] | int
"""The scores of a plugin in the order of the nodes; a single score if all nodes have the same score."""


class Scores:
    """The scores of all plugins for each feasible node."""

    def __init__(
        self,
        names: Sequence[str] = (),
        given: Mapping[str, Given] | None = None,
        weights: Mapping[str, int] = WEIGHTS,
    ) -> None:
        """Store the unweighted scores of each plugin for the nodes with these names."""
        self._names = names
        self._given = given or {}
        self._weights = weights

    def add(self, more: Mapping[str, tuple[int, Sequence[int]]]) -> None:
        """Add the scores of extenders.

        For each extender, `more` contains its weight, and its scores in the order of the nodes.
        """
        if more:
            self._given = {**self._given, **{name: scores for name, (_, scores) in more.items()}}
            self._weights = {**self._weights, **{name: weight for name, (weight, _) in more.items()}}

    def of(self, name: str) -> dict[str, int]:
        """Return the weighted score of each plugin for a node."""
        at = self._names.index(name)
        return {
            plugin: self._weights[plugin] * (found if isinstance(found, int) else found[at])
            for plugin, found in self._given.items()
        }

    def sums(self) -> dict[str, int]:
        """Return the total score of each node."""
        same = sum(self._weights[plugin] * found for plugin, found in self._given.items() if isinstance(found, int))
        totals = [same] * len(self._names)
        for plugin, found in self._given.items():
            if not isinstance(found, int):
                weight = self._weights[plugin]
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
    spread: Sequence[SpreadConstraint],
    profile: Profile = DEFAULT,
) -> Scores:
    """Return the scores of the feasible nodes; `busy` contains the nodes that have pods with affinities.

    `spread` contains the pod's topology spread constraints.
    """
    nodes = cluster.list()
    names = [node.name for node in feasible]
    strict = bool(pod.spread) or profile.default_spread is not None
    plugins: dict[str, Callable[[], Given | dict[str, int] | None]] = {
        "TaintToleration": lambda: _taints(pod, feasible),
        "NodeAffinity": lambda: _preferred_nodes(pod, feasible, profile.added_affinity),
        "NodeResourcesFit": lambda: fit_scores(pod, feasible, profile.strategy),
        "PodTopologySpread": lambda: spread_scores(pod, spread, feasible, nodes, strict=strict),
        "InterPodAffinity": lambda: affinity_scores(pod, feasible, nodes, busy, cluster.namespaces, profile),
        "NodeResourcesBalancedAllocation": lambda: balance_scores(pod, feasible, profile.balanced),
        "ImageLocality": lambda: _images(pod, feasible, cluster),
    }
    given: dict[str, Given] = {}
    for plugin, compute in plugins.items():
        found = compute() if plugin in profile.weights else None
        if isinstance(found, dict):
            given[plugin] = [found[name] for name in names]
        elif found is not None:
            given[plugin] = found
    for app_score in profile.app_scores:
        given[app_score.name] = app_score.scores(pod, feasible)
    return Scores(names, given, profile.weights)


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


def _preferred_nodes(pod: PodInfo, feasible: Sequence[NodeInfo], added: NodeAffinity | None) -> Given | None:
    affinities = [each for each in (pod.node_affinity, added) if each is not None]
    preferred = [term for each in affinities for term in each.preferred or ()]
    if not preferred:
        return None
    sums = [
        sum(each.weight for each in preferred if each.preference.matches(node.name, node.labels)) for node in feasible
    ]
    most = max(sums)
    return [HIGHEST * found // most for found in sums] if most else sums


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
