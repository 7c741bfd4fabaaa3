"""Decides about all waiting pods of a PodGroup at once, without writes (`pkg/scheduler/schedule_one_podgroup.go`).

Guarantees: the pods get nodes in the order of the queue, and each decision counts the earlier pods of the group. The
group is feasible if one pod is permitted to be bound. A pod that needs preemption counts on its node, and the pod's
victims do not count. The model of the cluster is unchanged after a decision; `apply` changes it.

If the group has a topology constraint, the search is repeated for each set of nodes with the same value of the
constraint's label. The set on which most pods fit is chosen. If the gate WorkloadAwarePreemption is on and the group is
infeasible, victims are chosen for the whole group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.scheduler.binding_writes import Binding, BindingWrites
from ctrlmgr.controllers.scheduler.pod_groups import (
    PREEMPTING,
    UNSCHEDULABLE,
    GroupError,
    PodGroups,
    priority_of,
    topology_of,
)
from ctrlmgr.controllers.scheduler.scheduler_cache import SchedulerCache
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.cycle import FAILED, Decision
from ctrlmgr.scheduling.group_placements import NO_PLACEMENTS, PlacementError
from ctrlmgr.scheduling.group_preemption import preempt_for_group
from ctrlmgr.scheduling.preemption import Budget

_OTHER: Final = "failed to schedule other pod from a pod group: "
_SKIPPED: Final = "All PostFilter plugins are skipped"
_NOT_PREEMPTING: Final = "default preemption plugin is not registered, workload aware preemption is disabled"
_CONSTRAINED: Final = "workload aware preemption is not supported for pod groups with scheduling constraints"

Members = Sequence[tuple[Entry, Object]]


class Scope(NamedTuple):
    """The limits of a decision about one pod of a group."""

    nodes: frozenset[str] | None = None
    """The names of the only nodes to consider; None means all nodes."""
    no_preemption: str = ""
    """The reason why the pod must not preempt other pods; "" if it may."""


WHOLE: Final = Scope()
Deciding = Callable[[Entry, Object, Scope], Decision]
"""The type of a function that decides about one pod in the current state of the model."""


class Choice(NamedTuple):
    """The functions that choose among equally good results."""

    node: Callable[[PodInfo, Sequence[str]], str]
    """Returns one of the nodes for a pod."""
    placement: Callable[[Sequence[str]], str]
    """Returns one of the sets of nodes."""


@dataclass(eq=False)
class Attempt:
    """The attempt to find a node for one pod of the group."""

    entry: Entry
    pod: Object
    decision: Decision
    node: str = ""
    binding: Binding | None = None
    """The reservations of the pod on its node; None if the pod has no node, or must preempt other pods first."""
    permit: str = ""
    """The reason why the pod is not permitted to be bound; empty if the pod is permitted."""


@dataclass
class GroupDecision:
    """The decision about the pods of a group."""

    attempts: list[Attempt] = field(default_factory=list)
    """The attempts for the pods, in order; fewer than the pods if the group has an error or no placement."""
    is_feasible: bool = False
    message: str = UNSCHEDULABLE
    """The reason why the group is infeasible."""
    error: str = ""
    preempts: bool = False
    """Whether the group fits after its victims are deleted."""
    victims: Sequence[PodInfo] = ()
    """The pods that are deleted for the whole group, the most important first."""
    fitting: Mapping[str, int] = field(default_factory=dict)
    """The number of pods that fit on each set of nodes, by the common value of the nodes' label."""

    @property
    def placed(self) -> list[Attempt]:
        """Return the attempts that found a node."""
        return [each for each in self.attempts if each.node]

    @property
    def needs_victims(self) -> bool:
        """Return whether the group is infeasible, and no pod of the group preempts other pods."""
        return not (self.error or self.is_feasible or self.preempts)


class _TrialError(Exception):
    """Raised if an error prevents the decision whether a group fits without its victims."""


class GroupAlgorithm:
    """Decides about the pods of a group; the caller holds the scheduler's lock."""

    def __init__(
        self,
        groups: PodGroups,
        cache: SchedulerCache,
        bindings: BindingWrites,
        choice: Choice,
        budgets: Callable[[], Sequence[Budget]],
    ) -> None:
        """Create an instance that uses `choice` if several results are equally good."""
        self._groups = groups
        self._cache = cache
        self._bindings = bindings
        self._choice = choice
        self._budgets = budgets

    def decide(self, key: Key, members: Members, decide: Deciding, *, preempts: bool) -> GroupDecision:
        """Return the decision about the waiting pods of a group; `preempts` is False if the profile never preempts."""
        found = self._over_placements(key, members, decide)
        if found.needs_victims and self._groups.gates.preemption:
            self._add_victims(found, key, members, decide, preempts=preempts)
        return found

    def apply(self, decision: GroupDecision) -> list[Binding]:
        """Count the pods of a feasible group on their nodes; return the bindings.

        If an error prevents a reservation, set the error of the decision, and return no bindings.
        """
        done: list[Attempt] = []
        try:
            for each in decision.placed:
                self._place(each)
                done.append(each)
        except (CtrlmgrError, GroupError) as error:
            self._revert(done)
            decision.error, decision.is_feasible = f"{_OTHER}{error}", False
            return []
        return [each.binding for each in done if each.binding is not None]

    def _over_placements(self, key: Key, members: Members, decide: Deciding, no_preemption: str = "") -> GroupDecision:
        """Return the decision for the best of all possible sets of nodes."""
        if not self._groups.gates.topology:
            return self._on(None, members, decide, no_preemption)
        try:
            placements = self._groups.placements(key)
        except (GroupError, PlacementError) as error:
            return GroupDecision(error=str(error))
        found: dict[str, GroupDecision] = {}
        for each in placements:
            found[each.name] = self._on(each.nodes, members, decide, no_preemption)
            if found[each.name].error:
                return found[each.name]
        best = self._best(found) if found else GroupDecision(message=NO_PLACEMENTS)
        best.fitting = {name: len(each.placed) for name, each in found.items()}
        return best

    def _best(self, found: Mapping[str, GroupDecision]) -> GroupDecision:
        suitable = {name: each for name, each in found.items() if each.is_feasible or each.preempts}
        if not suitable:
            first = next(iter(found.values()))
            first.message = f"0/{len(found)} placements are available, first placement status: {first.message}"
            return first
        most = max(len(each.placed) for each in suitable.values())
        name = self._choice.placement([name for name, each in suitable.items() if len(each.placed) == most])
        return suitable[name]

    def _on(
        self, nodes: frozenset[str] | None, members: Members, decide: Deciding, no_preemption: str
    ) -> GroupDecision:
        """Return the decision for one set of nodes."""
        attempts = self._attempts(nodes, members, decide, no_preemption)
        found = GroupDecision(attempts)
        failed = next((each for each in attempts if each.decision.reason == FAILED), None)
        if failed is not None:
            found.error = f"{_OTHER}{failed.decision.message}"
        elif any(not each.permit for each in found.placed):
            found.preempts = any(each.binding is None for each in found.placed)
            found.is_feasible = not found.preempts
            found.message = PREEMPTING if found.preempts else ""
        self._revert(found.placed)
        return found

    def _attempts(
        self, nodes: frozenset[str] | None, members: Members, decide: Deciding, no_preemption: str
    ) -> list[Attempt]:
        """Return the attempts for the pods, in order, until the first error; the model counts the pods."""
        found: list[Attempt] = []
        for entry, pod in members:
            scope = Scope(nodes, no_preemption or self._groups.no_preemption(entry.pod))
            attempt = Attempt(entry, pod, decide(entry, pod, scope))
            found.append(attempt)
            try:
                self._try(attempt)
            except (CtrlmgrError, GroupError) as error:
                attempt.decision = Decision(message=str(error), reason=FAILED)
            if attempt.decision.reason == FAILED:
                break
        return found

    def _try(self, attempt: Attempt) -> None:
        """Choose a node for a pod, if there is one, and count the pod on this node; raises the errors of `_place`."""
        candidate = attempt.decision.preemption.candidate if attempt.decision.preemption is not None else None
        if attempt.decision.best:
            attempt.node = self._choice.node(attempt.entry.pod, attempt.decision.best)
        elif candidate is not None:
            attempt.node = candidate.node
        if attempt.node:
            self._place(attempt)

    def _place(self, attempt: Attempt) -> None:
        """Count a pod of the group on its node in the model.

        Raises `GroupError`, and `Conflict` if the pod's claims are unusable.
        """
        node, entry = self._cache.cluster.nodes[attempt.node], attempt.entry
        if attempt.decision.best:
            attempt.binding = self._bindings.reserve(entry, attempt.pod, attempt.node, node.labels)
        for each in _victims(attempt):
            node.remove(each)
        self._cache.assume(entry.pod, attempt.node)
        attempt.permit = self._groups.permit(entry.pod)

    def _revert(self, placed: Sequence[Attempt]) -> None:
        for each in reversed(placed):
            pod = each.entry.pod
            self._cache.withdraw(pod.key)
            if pod.nominated:
                self._cache.cluster.nominate(pod, pod.nominated)
            if each.binding is not None:
                self._bindings.withdraw(each.binding)
            for victim in _victims(each):
                self._cache.cluster.nodes[each.node].add(victim)

    def _add_victims(
        self, found: GroupDecision, key: Key, members: Members, decide: Deciding, *, preempts: bool
    ) -> None:
        """Choose victims for an infeasible group; if there are none, add the reason to the message."""
        try:
            victims = self._victims(key, members, decide) if preempts else _NOT_PREEMPTING
        except (GroupError, _TrialError) as error:
            found.error = str(error)
            return
        if isinstance(victims, str):
            found.message = f"{found.message}, {victims}"
        else:
            found.preempts, found.victims = True, victims

    def _victims(self, key: Key, members: Members, decide: Deciding) -> list[PodInfo] | str:
        group = self._groups.get(key)
        if topology_of(group):
            return _CONSTRAINED

        def fits() -> str | None:
            trial = self._over_placements(key, members, decide, _SKIPPED)
            if trial.error:
                raise _TrialError(trial.error)
            return None if trial.is_feasible else trial.message

        pods = [entry.pod for entry, _ in members]
        cluster, budgets = self._cache.cluster, self._budgets()
        return preempt_for_group(cluster, pods, priority_of(group), self._groups.disrupted, budgets, fits)


def _victims(attempt: Attempt) -> Sequence[PodInfo]:
    """Return the pods that one pod of the group preempts on its node."""
    preemption = attempt.decision.preemption
    return preemption.candidate.victims if preemption is not None and preemption.candidate is not None else ()
