"""Defines a scheduling profile: the plugins that decide about pods, with their weights and arguments.

The default profile is that of kube-scheduler 1.36. Pods select a profile by their `schedulerName`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from ctrlmgr.scheduling.app_plugins import AppFilter, AppScore, SchedulerPlugins
from ctrlmgr.scheduling.node_selection import NodeAffinity
from ctrlmgr.scheduling.resource_amounts import CPU, MEMORY
from ctrlmgr.scheduling.scheduling_view import SpreadConstraint

LEAST, MOST, RATIO = "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"

FILTERS: Final = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)
"""The plugins that refuse nodes, in the order in which they run."""
WEIGHTS: Final[Mapping[str, int]] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
"""The plugins that score nodes, with the weights of their scores."""
PREEMPTION: Final = "DefaultPreemption"


class WeightedResource(NamedTuple):
    """A resource that a scoring strategy considers."""

    name: str
    weight: int = 1


class ShapePoint(NamedTuple):
    """The score (0 to 10) of a node at a utilization in percent; scores between two points are interpolated."""

    utilization: int
    score: int


BASIC: Final = (WeightedResource(CPU), WeightedResource(MEMORY))


@dataclass(frozen=True)
class Strategy:
    """How the plugin NodeResourcesFit scores nodes."""

    type: str = LEAST
    resources: tuple[WeightedResource, ...] = BASIC
    shape: tuple[ShapePoint, ...] = ()

    @property
    def is_default(self) -> bool:
        """Return whether the strategy is that of the default profile."""
        return self.type == LEAST and self.resources == BASIC


@dataclass(frozen=True)
class Profile:
    """The plugins that decide about the pods of one `schedulerName`."""

    scheduler_name: str = "default-scheduler"
    filters: frozenset[str] = frozenset(FILTERS)
    weights: Mapping[str, int] = field(default_factory=lambda: WEIGHTS)
    preempts: bool = True
    deallocates: bool = True
    """Whether DynamicResources deallocates claims of pods that fit on no node."""
    percentage: int = 0
    """In a large cluster, the check stops when this percentage of the nodes is feasible; 0 means a default that depends
    on the size of the cluster.
    """
    strategy: Strategy = Strategy()
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    """Extended resources, and the prefixes of their names, that NodeResourcesFit does not check."""
    balanced: tuple[WeightedResource, ...] = BASIC
    """The resources that NodeResourcesBalancedAllocation compares."""
    added_affinity: NodeAffinity | None = None
    """The node affinity that all pods have in addition to their own."""
    hard_affinity_weight: int = 1
    """The weight with which the required affinity of existing pods counts in scores."""
    default_spread: tuple[SpreadConstraint, ...] | None = None
    """The constraints, without selectors, of pods that have no constraints; None means those of the default profile."""
    fewest_candidates: int = 100
    candidates_percentage: int = 10
    """Preemption stops after this percentage of the nodes are candidates, but not before `fewest_candidates` nodes are.
    """
    bind_timeout: float = 600.0
    """The number of seconds for which a pod waits until its volumes are bound."""
    ignores_preferences: bool = False
    """Whether the preferred affinity of existing pods is ignored if the new pod has no affinity."""

    app_filters: tuple[AppFilter, ...] = ()
    app_scores: tuple[AppScore, ...] = ()
    """The plugins of apps, which run after the plugins of the default profile."""

    @property
    def has_all_filters(self) -> bool:
        """Return whether the profile refuses the same nodes as the default profile."""
        plain = not (self.ignored_resources or self.ignored_groups or self.added_affinity or self.app_filters)
        return plain and len(self.filters) == len(FILTERS)

    def with_plugins(self, plugins: SchedulerPlugins) -> Profile:
        """Return the profile with the plugins of apps added."""
        weights = {**self.weights, **{each.name: each.weight for each in plugins.scores}}
        return replace(self, weights=weights, app_filters=tuple(plugins.filters), app_scores=tuple(plugins.scores))


DEFAULT: Final = Profile()
