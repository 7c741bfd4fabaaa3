"""Decides which pods with lower priority are deleted, and on which node, so that a pod fits on this node.

The guarantees are those of Kubernetes' plugin DefaultPreemption:

- As few of a node's pods with lower priority as possible are victims. First, all pods with lower priority are removed
  from the model; then each of these pods is added back if the new pod still fits. Pods whose PodDisruptionBudget would
  be violated are added back first, then the other pods by importance.
- The chosen node has the lowest number of violated PodDisruptionBudgets. Among equal nodes, these criteria follow: the
  lowest priority of the node's most important victim, the lowest sum of priorities, the fewest victims, and the latest
  start of the node's most important victims. Of nodes that are equal by all criteria, the first node is chosen.
- A pod does not preempt other pods if its preemption policy is Never, or while victims on its nominated node are
  terminating.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.filters import Filters, Refusal, with_nominated
from ctrlmgr.scheduling.scheduling_view import Selector

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
_OFFSET: Final = 2**31


class Budget(NamedTuple):
    """A PodDisruptionBudget, and the number of its pods that may be disrupted."""

    namespace: str
    selector: Selector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()
    """The names of the budget's pods whose eviction was already granted."""


class Candidate(NamedTuple):
    """A node with its victims, the most important first, and the number of victims whose budget would be violated."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int


class Preemption(NamedTuple):
    """The result of preemption: a candidate node or a message, and whether the pod's nomination is removed."""

    candidate: Candidate | None
    message: str = ""
    clears: bool = False


def importance(pod: PodInfo) -> tuple[int, str, str]:
    """Return a key that sorts more important pods first: by higher priority, then by earlier start time."""
    return -pod.priority, started(pod), pod.key.name


def started(pod: PodInfo) -> str:
    """Return when a pod started (RFC 3339); if the pod has not started, a time in the far future."""
    return pod.view.status.start_time or "9999"


def ineligible(pod: PodInfo, cluster: Cluster, refusals: Mapping[str, Refusal]) -> str:
    """Return the reason why a pod may not preempt other pods now; "" if it may."""
    if pod.view.spec.preemption_policy == "Never":
        return NEVER
    node = cluster.nodes.get(pod.nominated) if pod.nominated else None
    refusal = refusals.get(pod.nominated)
    if node is None or (refusal is not None and not refusal.helps):
        return ""
    going = any(each.priority < pod.priority and _is_preempted(each) for each in node.pods.values())
    return TERMINATING if going else ""


def _is_preempted(pod: PodInfo) -> bool:
    if not pod.is_terminating:
        return False
    found = next((each for each in pod.view.status.conditions or () if each.type == "DisruptionTarget"), None)
    return found is not None and found.status == "True" and found.reason == "PreemptionByScheduler"


def violating(pods: Iterable[PodInfo], budgets: Sequence[Budget]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Split these pods, in order, into pods whose eviction would violate a PodDisruptionBudget, and the other pods."""
    left = [each.allowed for each in budgets]
    broken: list[PodInfo] = []
    sound: list[PodInfo] = []
    for pod in pods:
        breaks = False
        for index, budget in enumerate(budgets):
            if protects(budget, pod):
                left[index] -= 1
                breaks = breaks or left[index] < 0
        (broken if breaks else sound).append(pod)
    return broken, sound


def protects(budget: Budget, pod: PodInfo) -> bool:
    """Return whether a budget counts the eviction of a pod."""
    if budget.namespace != pod.namespace or not pod.labels or pod.key.name in budget.disrupted:
        return False
    selector = budget.selector
    return selector is not None and not selector.is_empty and selector.matches(pod.labels)


def victims_on(
    filters: Filters, node: NodeInfo, budgets: Sequence[Budget], nominated: Mapping[Key, PodInfo] | None = None
) -> Candidate | Refusal:
    """Return a node's victims, or the reason why preemption on the node does not help.

    The function does not change its arguments.
    """
    apart, room = filters.copy(), node.copy()
    less_important = [each for each in node.pods.values() if each.priority < filters.pod.priority]
    if not less_important:
        return Refusal("DefaultPreemption", (NO_VICTIMS,))
    for each in less_important:
        apart.remove(each, room)
    refusal = with_nominated(apart, room, nominated)
    if refusal is not None:
        return refusal
    broken, sound = violating(sorted(less_important, key=importance), budgets)
    victims: list[PodInfo] = []
    violations = 0
    for index, each in enumerate([*broken, *sound]):
        apart.add(each, room)
        if with_nominated(apart, room, nominated) is not None:
            apart.remove(each, room)
            victims.append(each)
            violations += index < len(broken)
    return Candidate(node.name, tuple(sorted(victims, key=importance)), violations)


def pick(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate node with the least disruption; of several equal nodes, return the first."""
    return min(candidates, key=_harm)


def _harm(candidate: Candidate) -> tuple[object, ...]:
    victims = candidate.victims
    highest = victims[0].priority
    earliest = min(started(each) for each in victims if each.priority == highest)
    return (
        candidate.violations,
        highest,
        sum(each.priority + _OFFSET for each in victims),
        len(victims),
        _Latest(earliest),
    )


class _Latest(str):
    """A time that compares in reverse order: a later time sorts before an earlier time."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


def preempt(
    filters: Filters, cluster: Cluster, refusals: Mapping[str, Refusal], budgets: Sequence[Budget], offset: int = 0
) -> Preemption:
    """Return the preemption for a pod that fits on no node; see `candidates` for the arguments."""
    found = candidates(filters, cluster, refusals, budgets, offset)
    return found if isinstance(found, Preemption) else Preemption(pick(found))


def candidates(
    filters: Filters, cluster: Cluster, refusals: Mapping[str, Refusal], budgets: Sequence[Budget], offset: int = 0
) -> list[Candidate] | Preemption:
    """Return the candidate nodes for a pod that fits on no node; nodes without violated budgets are first.

    If there is no candidate, return the reason.

    `refusals` are the refusals of all checked nodes; `offset` is the index of the first node to check for preemption.
    """
    why_not = ineligible(filters.pod, cluster, refusals)
    if why_not:
        return Preemption(None, why_not)
    hopeful = [node for node in cluster.list() if node.name in refusals and refusals[node.name].helps]
    profile = filters.profile
    share = len(hopeful) * profile.candidates_percentage // 100
    candidate_count = min(max(share, profile.fewest_candidates), len(hopeful))
    found: list[Candidate] = []
    vain: dict[str, Refusal] = {}
    for index in range(len(hopeful)):
        node = hopeful[(offset + index) % len(hopeful)]
        outcome = victims_on(filters, node, budgets, cluster.nominated.get(node.name))
        if isinstance(outcome, Refusal):
            vain[node.name] = outcome
        elif outcome.victims:
            found.append(outcome)
            if len(found) >= candidate_count and any(not each.violations for each in found):
                break
    if found:
        sound = [each for each in found if not each.violations]
        return [*sound, *(each for each in found if each.violations)]
    return Preemption(None, _vain(vain, len(cluster.nodes)), clears=True)


def _vain(refusals: Mapping[str, Refusal], nodes: int) -> str:
    counts: dict[str, int] = {}
    for refusal in refusals.values():
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    if nodes > len(refusals):
        counts[NOT_HELPFUL] = counts.get(NOT_HELPFUL, 0) + nodes - len(refusals)
    reasons = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."
