"""Evaluates affinity between pods, which requires, forbids or prefers certain neighbours of a pod.

The guarantees are those of Kubernetes' plugin InterPodAffinity:

- Two pods are neighbours if their nodes have the same value of the term's topology key.
- A pod's affinity is met by existing pods that match all its terms. The first pod of a group is feasible on any node,
  if the pod matches its own terms. The anti-affinity of existing pods also excludes nodes.
- The preferences of the pod and of existing pods are added up; required terms of existing pods count with a weight of
  1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.profile import Profile
from ctrlmgr.scheduling.scheduling_view import AffinityTerm

NO_AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
HIGHEST: Final = 100

_Counts: TypeAlias = "dict[tuple[str, str], int]"
Namespaces: TypeAlias = Mapping[str, Mapping[str, str]]
"""The labels of each namespace."""


def term_matches(term: AffinityTerm, owner: PodInfo, other: PodInfo, namespaces: Namespaces) -> bool:
    """Return whether an affinity term of `owner` matches the pod `other`."""
    if term.label_selector is None or not _reaches(term, owner, other.namespace, namespaces):
        return False
    return term.label_selector.matches(other.labels)


def _reaches(term: AffinityTerm, owner: PodInfo, namespace: str, namespaces: Namespaces) -> bool:
    if term.namespaces and namespace in term.namespaces:
        return True
    if term.namespace_selector is not None:
        return term.namespace_selector.matches(namespaces.get(namespace, {}))
    return not term.namespaces and namespace == owner.namespace


class HardAffinity:
    """The required affinity terms of a pod, and the terms of existing pods that match it, evaluated over all nodes."""

    def __init__(self, pod: PodInfo, nodes: Sequence[NodeInfo], namespaces: Namespaces) -> None:
        """Count the matching pods in each topology domain."""
        self._pod = pod
        self._namespaces = namespaces
        self._affinity: Sequence[AffinityTerm] = pod.affinity.required or ()
        self._anti: Sequence[AffinityTerm] = pod.required_anti_affinity
        self._required: _Counts = {}
        self._unwanted: _Counts = {}
        self._existing: _Counts = {}
        cares = bool(self._affinity or self._anti)
        self.busy = [node for node in nodes if node.with_affinity]
        """The nodes that have pods with affinities, which are usually few."""
        for node in self.busy:
            for other in node.with_required_anti_affinity.values():
                self._count_existing(other, node, 1)
        for node in nodes if cares else ():
            for other in node.pods.values():
                self._count_own(other, node, 1)

    @property
    def is_idle(self) -> bool:
        """Return whether the affinity excludes no node."""
        return not self._affinity and not self._anti and not self._existing

    def copy(self) -> HardAffinity:
        """Return a copy of the counts; changes of the copy do not change these counts."""
        fresh = HardAffinity.__new__(HardAffinity)
        fresh.__dict__.update(self.__dict__)
        fresh._required, fresh._unwanted = dict(self._required), dict(self._unwanted)
        fresh._existing = dict(self._existing)
        return fresh

    def count(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        """Count a pod on a node; a `sign` of 1 adds the pod, and -1 removes it."""
        self._count_existing(other, node, sign)
        self._count_own(other, node, sign)

    def refusal(self, node: NodeInfo) -> str:
        """Return the reason why a node is infeasible; "" if the node is feasible."""
        if self._affinity and not self._is_wanted(node):
            return NO_AFFINITY
        for term in self._anti:
            value = node.labels.get(term.topology_key)
            if value is not None and self._unwanted.get((term.topology_key, value), 0) > 0:
                return ANTI_AFFINITY
        if self._existing and any(self._existing.get(pair, 0) > 0 for pair in node.labels.items()):
            return EXISTING_ANTI_AFFINITY
        return ""

    def _is_wanted(self, node: NodeInfo) -> bool:
        found = True
        for term in self._affinity:
            value = node.labels.get(term.topology_key)
            if value is None:
                return False
            found = found and self._required.get((term.topology_key, value), 0) > 0
        return found or (not any(self._required.values()) and self._matches_all(self._pod))

    def _matches_all(self, other: PodInfo) -> bool:
        return all(term_matches(each, self._pod, other, self._namespaces) for each in self._affinity)

    def _count_existing(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        for term in other.required_anti_affinity:
            if term_matches(term, other, self._pod, self._namespaces):
                _count(self._existing, term, node, sign)

    def _count_own(self, other: PodInfo, node: NodeInfo, sign: int) -> None:
        if self._affinity and self._matches_all(other):
            for term in self._affinity:
                _count(self._required, term, node, sign)
        for term in self._anti:
            if term_matches(term, self._pod, other, self._namespaces):
                _count(self._unwanted, term, node, sign)


def _count(counts: _Counts, term: AffinityTerm, node: NodeInfo, weight: int) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None:
        pair = (term.topology_key, value)
        counts[pair] = counts.get(pair, 0) + weight


def affinity_scores(
    pod: PodInfo,
    feasible: Sequence[NodeInfo],
    nodes: Iterable[NodeInfo],
    busy: Iterable[NodeInfo],
    namespaces: Namespaces,
    profile: Profile,
) -> dict[str, int] | None:
    """Return the score of each feasible node; None if there are no preferences.

    `HardAffinity` defines `busy`.
    """
    sums: _Counts = {}
    wants, shuns = pod.affinity.preferred or (), pod.anti_affinity.preferred or ()
    if profile.ignores_preferences and not (wants or shuns):
        return None
    for node in nodes if pod.has_affinity else busy:
        others = node.pods if pod.has_affinity else node.with_affinity
        for other in others.values():
            for each in wants:
                if term_matches(each.pod_affinity_term, pod, other, namespaces):
                    _count(sums, each.pod_affinity_term, node, each.weight)
            for each in shuns:
                if term_matches(each.pod_affinity_term, pod, other, namespaces):
                    _count(sums, each.pod_affinity_term, node, -each.weight)
            if other.has_affinity:
                _count_preferences(sums, other, node, pod, namespaces, profile.hard_affinity_weight)
    if not sums:
        return None
    return _normalized({node.name: sum(sums.get(pair, 0) for pair in node.labels.items()) for node in feasible})


def _count_preferences(
    sums: _Counts, other: PodInfo, node: NodeInfo, pod: PodInfo, namespaces: Namespaces, weight: int
) -> None:
    """Add the preferences of an existing pod that match the new pod; `weight` is the weight of its required terms."""
    for term in (other.affinity.required or ()) if weight else ():
        if term_matches(term, other, pod, namespaces):
            _count(sums, term, node, weight)
    for each in other.affinity.preferred or ():
        if term_matches(each.pod_affinity_term, other, pod, namespaces):
            _count(sums, each.pod_affinity_term, node, each.weight)
    for each in other.anti_affinity.preferred or ():
        if term_matches(each.pod_affinity_term, other, pod, namespaces):
            _count(sums, each.pod_affinity_term, node, -each.weight)


def _normalized(raw: Mapping[str, int]) -> dict[str, int]:
    least, most = min(0, *raw.values()), max(0, *raw.values())
    span = most - least
    return {name: int(HIGHEST * ((score - least) / span)) if span else 0 for name, score in raw.items()}
