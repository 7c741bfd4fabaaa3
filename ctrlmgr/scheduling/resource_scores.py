"""Scores nodes by their free and used resources, as NodeResourcesFit and NodeResourcesBalancedAllocation do.

Guarantees: each score is 0 to 100. For NodeResourcesFit, containers without requests for CPU or memory count with small
default requests. For NodeResourcesBalancedAllocation, missing requests count with 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.profile import MOST, RATIO, ShapePoint, Strategy, WeightedResource
from ctrlmgr.scheduling.resource_amounts import CPU, MEMORY

_HIGHEST: Final = 100
_SCALE: Final = 10
"""The factor by which the scores of a shape (0 to 10) are multiplied to get the scores of nodes."""


def fit_scores(pod: PodInfo, feasible: Sequence[NodeInfo], strategy: Strategy) -> list[int]:
    """Return the score of each node for the plugin NodeResourcesFit."""
    if strategy.is_default:
        return _least_allocated(pod, feasible)
    return [_fit_score(pod, node, strategy) for node in feasible]


def _least_allocated(pod: PodInfo, feasible: Sequence[NodeInfo]) -> list[int]:
    """Score nodes by the fraction of CPU and memory that would remain free; this is the strategy of most clusters."""
    requested = pod.defaulted_requests
    cpu, memory = requested.get(CPU, 0), requested.get(MEMORY, 0)
    scores = []
    for node in feasible:
        held, used = node.allocatable, node.used_defaulted
        total = parts = 0
        if whole := held.get(CPU, 0):
            parts = 1
            left = whole - used.get(CPU, 0) - cpu
            total = left * _HIGHEST // whole if left > 0 else 0
        if whole := held.get(MEMORY, 0):
            parts += 1
            left = whole - used.get(MEMORY, 0) - memory
            total += left * _HIGHEST // whole if left > 0 else 0
        scores.append(total // parts if parts else 0)
    return scores


def _fit_score(pod: PodInfo, node: NodeInfo, strategy: Strategy) -> int:
    total = weights = 0
    for weight, requested, held in _utilizations(pod, node, strategy.resources):
        if strategy.type == RATIO:
            found = _at(strategy.shape, 100 if requested > held else requested * 100 // held)
        elif strategy.type == MOST:
            found = min(requested, held) * _HIGHEST // held
        else:
            found = max(held - requested, 0) * _HIGHEST // held
        # Only this strategy leaves out resources with a score of 0.
        if strategy.type != RATIO or found > 0:
            total, weights = total + found * weight, weights + weight
    if not weights:
        return 0
    return math.floor(total / weights + 0.5) if strategy.type == RATIO else total // weights


def _utilizations(
    pod: PodInfo, node: NodeInfo, resources: Sequence[WeightedResource]
) -> Iterator[tuple[int, int, int]]:
    """For each resource, yield its weight, the requested amount if the pod is on the node, and the node's amount."""
    for name, weight in resources:
        basic = name in (CPU, MEMORY)
        own, used = (pod.defaulted_requests, node.used_defaulted) if basic else (pod.requests, node.used)
        held = node.allocatable.get(name, 0)
        if held and (own.get(name) or not _is_scalar(name)):
            yield weight, used.get(name, 0) + own.get(name, 0), held


def _is_scalar(name: str) -> bool:
    """Return whether a resource is an extended resource or huge pages, which do not count if the pod requests none."""
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def _at(shape: Sequence[ShapePoint], utilization: int) -> int:
    """Return the score of a utilization; scores between two points are interpolated and truncated as in Go."""
    points = [ShapePoint(each.utilization, each.score * _SCALE) for each in shape]
    for index, point in enumerate(points):
        if utilization <= point.utilization:
            if index == 0:
                return point.score
            before = points[index - 1]
            rise = (point.score - before.score) * (utilization - before.utilization)
            return before.score + int(rise / (point.utilization - before.utilization))
    return points[-1].score


def balance_scores(
    pod: PodInfo, feasible: Sequence[NodeInfo], resources: Sequence[WeightedResource]
) -> list[int] | None:
    """Score nodes by how much more equal the used fractions of the resources become if the pod is added.

    Return None if the pod requests none of the resources.
    """
    if not any(pod.requests.get(each.name) for each in resources):
        return None
    counted = [each.name for each in resources if not _is_scalar(each.name) or pod.requests.get(each.name)]
    return [_improvement(pod.requests, node, counted) for node in feasible]


def _improvement(requested: Mapping[str, int], node: NodeInfo, names: Sequence[str]) -> int:
    half = _HIGHEST // 2
    # Go truncates toward 0; the sum in parentheses is never negative.
    return half + (half + _balance(requested, node, names) - _balance({}, node, names)) // 2


def _balance(requested: Mapping[str, int], node: NodeInfo, names: Sequence[str]) -> int:
    parts = []
    for name in names:
        held = node.allocatable.get(name, 0)
        if held:
            parts.append(min((node.used.get(name, 0) + requested.get(name, 0)) / held, 1.0))
    if len(parts) == 2:
        deviation = abs((parts[0] - parts[1]) / 2)
    else:
        mean = sum(parts) / len(parts) if parts else 0.0
        deviation = math.sqrt(sum((each - mean) ** 2 for each in parts) / len(parts)) if len(parts) > 2 else 0.0
    return int((1 - deviation) * _HIGHEST)
