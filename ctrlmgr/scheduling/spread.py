"""Evaluates topology spread, which measures how equally pods are distributed over zones, hosts or other domains.

The guarantees are those of Kubernetes' plugin PodTopologySpread:

- A hard constraint refuses a node if the skew would be too large. The skew is the number of matching pods in the node's
  domain, minus the number in the domain with the fewest matching pods. The new pod is also counted if it matches the
  constraint. If there are fewer domains than `minDomains`, 0 is subtracted instead.
- A node that lacks the label of a constraint, or that the inclusion policies exclude, is in no domain. Terminating pods
  do not count in the skew. The empty selector of a constraint matches no pods.
- Soft constraints score a node by the pods in its domains, weighted by the number of domains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ctrlmgr.scheduling.cluster_model import Kin, NodeInfo, PodInfo
from ctrlmgr.scheduling.node_selection import selects
from ctrlmgr.scheduling.scheduling_view import Selector, SpreadConstraint
from ctrlmgr.scheduling.taints import first_untolerated

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"
HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
MISSING_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
NOT_SPREAD: Final = "node(s) didn't match pod topology spread constraints"
_UNBOUNDED: Final = 2**31 - 1
HIGHEST: Final = 100


_DEFAULTS: Final = (SpreadConstraint(5, ZONE, SOFT), SpreadConstraint(3, HOST, SOFT))


def constraints_of(
    pod: PodInfo, selector: Selector | None, defaults: Sequence[SpreadConstraint] | None = None
) -> list[SpreadConstraint]:
    """Return the pod's constraints.

    For a pod without constraints, return the defaults with the selector of its peers.
    """
    if pod.spread or selector is None or selector.is_empty:
        return pod.spread
    found = _DEFAULTS if defaults is None else defaults
    return [msgspec.structs.replace(each, label_selector=selector) for each in found]


def _includes(constraint: SpreadConstraint, pod: PodInfo, node: NodeInfo) -> bool:
    """Return whether the pods of a node count for a constraint of `pod`."""
    minds = pod.asks_for_nodes and constraint.node_affinity_policy != "Ignore"
    if minds and not selects(node.name, node.labels, pod.view.spec.node_selector, pod.node_affinity):
        return False
    return constraint.node_taints_policy != "Honor" or first_untolerated(node.taints, pod.tolerations) is None


class _Matching:
    """A counter of a node's pods that match a constraint.

    Pods with the same namespace and labels are compared only once.
    """

    def __init__(self, constraint: SpreadConstraint, namespace: str) -> None:
        self._selector = constraint.label_selector
        self._namespace = namespace
        self._known: dict[Kin, bool] = {}

    def on(self, node: NodeInfo) -> int:
        total = 0
        for kin, count in node.kin.items():
            matches = self._known.get(kin)
            if matches is None:
                matches = self._known[kin] = self._is_about(kin)
            if matches:
                total += count
        return total

    def _is_about(self, kin: Kin) -> bool:
        selector, (namespace, labels) = self._selector, kin
        if selector is None or selector.is_empty or namespace != self._namespace:
            return False
        return selector.matches(dict(labels))


def _selects(constraint: SpreadConstraint, labels: Mapping[str, str]) -> bool:
    return constraint.label_selector is not None and constraint.label_selector.matches(labels)


class HardSpread:
    """The hard constraints of one pod, evaluated over all nodes."""

    def __init__(self, pod: PodInfo, nodes: Iterable[NodeInfo], constraints: Iterable[SpreadConstraint]) -> None:
        """Count the matching pods in each topology domain; `constraints` are all constraints of the pod."""
        self._pod = pod
        self.constraints = [each for each in constraints if each.when_unsatisfiable == HARD]
        self._counts: list[dict[str, int]] = [{} for _ in self.constraints]
        matching = [_Matching(each, pod.namespace) for each in self.constraints]
        for node in nodes if self.constraints else ():
            if self._is_domain(node):
                for constraint, counts, pods in zip(self.constraints, self._counts, matching, strict=True):
                    if _includes(constraint, pod, node):
                        value = node.labels[constraint.topology_key]
                        counts[value] = counts.get(value, 0) + pods.on(node)

    def copy(self) -> HardSpread:
        """Return a copy of the counts; changes of the copy do not change these counts."""
        fresh = HardSpread.__new__(HardSpread)
        fresh._pod, fresh.constraints = self._pod, self.constraints
        fresh._counts = [dict(each) for each in self._counts]
        return fresh

    def count(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """Count a pod on a node; a `sign` of 1 adds the pod, and -1 removes it."""
        if other.namespace != self._pod.namespace or not self._is_domain(node):
            return
        for constraint, counts in zip(self.constraints, self._counts, strict=True):
            if _selects(constraint, other.labels) and _includes(constraint, self._pod, node):
                value = node.labels[constraint.topology_key]
                counts[value] = counts.get(value, 0) + sign

    def refusal(self, node: NodeInfo) -> str:
        """Return the reason why a node is infeasible; "" if the node is feasible."""
        for constraint, counts in zip(self.constraints, self._counts, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            fewest = min(counts.values(), default=_UNBOUNDED)
            if len(counts) < (constraint.min_domains or 1):
                fewest = 0
            itself = _selects(constraint, self._pod.labels)
            if counts.get(value, 0) + itself - fewest > constraint.max_skew:
                return NOT_SPREAD
        return ""

    def _is_domain(self, node: NodeInfo) -> bool:
        return all(each.topology_key in node.labels for each in self.constraints)


def spread_scores(
    pod: PodInfo,
    all_constraints: Sequence[SpreadConstraint],
    feasible: Sequence[NodeInfo],
    nodes: Iterable[NodeInfo],
    *,
    strict: bool,
) -> dict[str, int] | None:
    """Return the score of each feasible node; None if the pod has no soft constraints.

    If `strict` is set, nodes that lack the label of a constraint are ignored.
    """
    constraints = [each for each in all_constraints if each.when_unsatisfiable == SOFT]
    if not constraints:
        return None
    ignored = {node.name for node in feasible if strict and not _has_labels(node, constraints)}
    matching = [_Matching(each, pod.namespace) for each in constraints]
    counts = _domain_counts(pod, constraints, matching, feasible, nodes, ignored, strict=strict)
    weights = [
        math.log((len(feasible) - len(ignored) if each.topology_key == HOST else len(found)) + 2)
        for each, found in zip(constraints, counts, strict=True)
    ]
    raw = {}
    for node in feasible:
        if node.name not in ignored:
            raw[node.name] = _raw_score(node, constraints, matching, counts, weights)
    return _normalized(raw, [node.name for node in feasible])


def _has_labels(node: NodeInfo, constraints: Iterable[SpreadConstraint]) -> bool:
    return all(each.topology_key in node.labels for each in constraints)


def _domain_counts(
    pod: PodInfo,
    constraints: Sequence[SpreadConstraint],
    matching: Sequence[_Matching],
    feasible: Sequence[NodeInfo],
    nodes: Iterable[NodeInfo],
    ignored: set[str],
    *,
    strict: bool,
) -> list[dict[str, int]]:
    """For each constraint except those by host, return the number of matching pods in each feasible domain."""
    counts: list[dict[str, int]] = [{} for _ in constraints]
    for node in feasible:
        for each, found in zip(constraints, counts, strict=True):
            if node.name not in ignored and each.topology_key != HOST:
                found[node.labels.get(each.topology_key, "")] = 0
    # If no feasible node has the label, the counts would not distinguish the nodes.
    counted = [
        each
        for each in zip(constraints, counts, matching, strict=True)
        if each[1] and any(each[0].topology_key in node.labels for node in feasible)
    ]
    for node in nodes if counted else ():
        if not node.kin or (strict and not _has_labels(node, constraints)):
            continue
        for each, found, pods in counted:
            value = node.labels.get(each.topology_key, "")
            if value in found and _includes(each, pod, node):
                found[value] += pods.on(node)
    return counts


def _raw_score(
    node: NodeInfo,
    constraints: Sequence[SpreadConstraint],
    matching: Sequence[_Matching],
    counts: Sequence[Mapping[str, int]],
    weights: Sequence[float],
) -> int:
    score = 0.0
    for each, pods, found, weight in zip(constraints, matching, counts, weights, strict=True):
        value = node.labels.get(each.topology_key)
        if value is not None:
            count = pods.on(node) if each.topology_key == HOST else found[value]
            score += count * weight + (each.max_skew - 1)
    return math.floor(score + 0.5)


def _normalized(raw: Mapping[str, int], names: Iterable[str]) -> dict[str, int]:
    """Return scores that are low for domains with many matching pods; the score of an ignored node is 0."""
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    scores = {}
    for name in names:
        if name not in raw:
            scores[name] = 0
        else:
            scores[name] = HIGHEST * (most + least - raw[name]) // most if most else HIGHEST
    return scores
