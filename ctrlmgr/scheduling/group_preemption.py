"""Decides which less important pods are deleted so that a whole PodGroup fits (`preemption/podgrouppreemption.go`).

Guarantees, as in Kubernetes with the feature gate WorkloadAwarePreemption:

- Victims may be on all nodes. As few as possible are chosen: first, all pods with lower priority are removed from the
  model; then each victim is added back if the group still fits. Victims whose PodDisruptionBudget would be violated are
  added back first, then the other victims by importance.
- The pods of a PodGroup with the disruption mode PodGroup are one victim: all of them are deleted, or none.
- The model of the cluster is unchanged when the search ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.scheduling.cluster_model import Cluster, PodInfo
from ctrlmgr.scheduling.preemption import NEVER, Budget, protects, started

NO_VICTIMS: Final = "No preemption victims found for incoming preemptor"


class DisruptedGroup(NamedTuple):
    """A PodGroup whose pods are preempted together."""

    uid: str
    priority: int


GroupOf = Callable[[PodInfo], DisruptedGroup | None]
"""The type of a function that returns the group of a pod; None if the pod is preempted alone."""
Fits = Callable[[], str | None]
"""The type of a function that returns the reason why a group does not fit; None if the group fits.

The function reads the current state of the model, and leaves the model unchanged.
"""


@dataclass(eq=False)
class _Victim:
    """Pods that are preempted together, each with the name of its node."""

    priority: int
    pods: list[tuple[str, PodInfo]] = field(default_factory=list)
    is_removed: bool = False
    """Whether the pods are removed from the model."""

    @property
    def importance(self) -> tuple[object, ...]:
        """Return a key that sorts more important victims first (`moreImportantVictim`)."""
        first = self.pods[0][1]
        is_group = first.group is not None
        return -self.priority, not is_group, -len(self.pods) if is_group else 0, started(first), first.key

    def remove(self, cluster: Cluster) -> None:
        """Remove the pods from the model."""
        for node, pod in self.pods:
            cluster.nodes[node].remove(pod)
        self.is_removed = True

    def restore(self, cluster: Cluster) -> None:
        """Add the pods to the model again."""
        for node, pod in self.pods:
            cluster.nodes[node].add(pod)
        self.is_removed = False


def preempt_for_group(
    cluster: Cluster,
    members: Sequence[PodInfo],
    priority: int,
    group_of: GroupOf,
    budgets: Sequence[Budget],
    fits: Fits,
) -> list[PodInfo] | str:
    """Return the pods to delete so that a group with this priority fits, the most important first.

    If preemption does not help, return the reason.
    """
    if any(each.view.spec.preemption_policy == "Never" for each in members):
        return NEVER
    victims = [each for each in _victims(cluster, group_of) if each.priority < priority]
    if not victims:
        return NO_VICTIMS
    victims.sort(key=lambda each: each.importance)
    for each in victims:
        each.remove(cluster)
    try:
        reason = fits()
        if reason is not None:
            return reason
        _spare(victims, cluster, budgets, fits)
        return [pod for each in victims if each.is_removed for _, pod in each.pods]
    finally:
        for each in victims:
            if each.is_removed:
                each.restore(cluster)


def _victims(cluster: Cluster, group_of: GroupOf) -> Iterable[_Victim]:
    found: dict[str, _Victim] = {}
    for node in cluster.list():
        for pod in node.pods.values():
            group = group_of(pod)
            uid, priority = (pod.uid, pod.priority) if group is None else group
            found.setdefault(uid, _Victim(priority)).pods.append((node.name, pod))
    return found.values()


def _spare(victims: Sequence[_Victim], cluster: Cluster, budgets: Sequence[Budget], fits: Fits) -> None:
    """Restore each victim without which the group still fits."""
    left = [each.allowed for each in budgets]
    breaking = {id(each): any(_violates(pod, budgets, left) for _, pod in each.pods) for each in victims}
    for each in sorted(victims, key=lambda each: not breaking[id(each)]):
        each.restore(cluster)
        if fits() is not None:
            each.remove(cluster)


def _violates(pod: PodInfo, budgets: Sequence[Budget], left: list[int]) -> bool:
    """Return whether the eviction of a pod violates a PodDisruptionBudget; count the eviction in `left`."""
    for index, budget in enumerate(budgets):
        if protects(budget, pod):
            left[index] -= 1
            if left[index] < 0:
                return True
    return False
