"""Decides about all waiting pods of a PodGroup at once (`pkg/scheduler/schedule_one_podgroup.go`).

Guarantees: the pods get nodes in the order of the queue, and each decision counts the earlier pods of the group. If one
pod is permitted to be bound, all pods with a node are bound; otherwise no pod is bound, and no pod is preempted. Pods
of a group are tried again after their backoff, not after an event.

If a pod needs preemption, it counts on its node, and its victims do not count. If the whole group fits under this
assumption, the victims are deleted, and the whole group is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.scheduler import scheduler_metrics
from ctrlmgr.controllers.scheduler.binding_writes import Binding, BindingWrites
from ctrlmgr.controllers.scheduler.pod_groups import PREEMPTING, UNSCHEDULABLE, GroupError, PodGroups
from ctrlmgr.controllers.scheduler.refusal_writes import RefusalWrites
from ctrlmgr.controllers.scheduler.scheduler_cache import SchedulerCache
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.scheduling.cycle import FAILED, Decision
from ctrlmgr.scheduling.preemption import Candidate, Preemption

_OTHER: Final = "failed to schedule other pod from a pod group: "

Deciding = Callable[[Entry, Object, EngineClient], Decision]
"""The type of a function that decides about one pod in the current state of the model."""


@dataclass(eq=False)
class _Attempt:
    """The attempt to find a node for one pod of the group."""

    entry: Entry
    pod: Object
    decision: Decision
    node: str = ""
    binding: Binding | None = None
    """The reservations of the pod on its node; None if the pod has no node, or must preempt other pods first."""
    permit: str = ""
    """The reason why the pod is not permitted to be bound; empty if the pod is permitted."""


class GroupCycle:
    """Decides about the pods of a group; the caller holds the scheduler's lock."""

    def __init__(
        self,
        groups: PodGroups,
        cache: SchedulerCache,
        bindings: BindingWrites,
        refusals: RefusalWrites,
        decide: Deciding,
        choose: Callable[[Sequence[str]], str],
    ) -> None:
        """Create an instance that decides with `decide`, and chooses among equal nodes with `choose`."""
        self._groups = groups
        self._cache = cache
        self._bindings = bindings
        self._refusals = refusals
        self._decide = decide
        self._choose = choose

    def run(self, key: Key, members: Sequence[tuple[Entry, Object]], client: EngineClient) -> list[Binding]:
        """Return the pods of the group that must be bound; write the refusals of the other pods.

        The model counts the returned pods on their nodes.
        """
        error = _one_scheduler(members)
        attempts = [] if error else self._attempts(members, client)
        failed = next((each for each in attempts if each.decision.reason == FAILED), None)
        if failed is not None:
            error = f"{_OTHER}{failed.decision.message}"
        placed = [each for each in attempts if each.node]
        is_permitted = not error and any(not each.permit for each in placed)
        preempts = is_permitted and any(each.binding is None for each in placed)
        if not is_permitted or preempts:
            self._revert(placed, client)
        bound = placed if is_permitted and not preempts else []
        profile = members[0][0].pod.view.spec.scheduler_name
        self._tell_group(key, profile, error, preempts=preempts, is_bound=bool(bound), client=client)
        for at, (entry, pod) in enumerate(members):
            attempt = attempts[at] if at < len(attempts) else None
            if attempt is None or attempt not in bound:
                refusal = _refusal(attempt, error, preempts=preempts)
                self._refusals.write(entry, pod, refusal, self._cache.cluster, client)
        return [each.binding for each in bound if each.binding is not None]

    def _attempts(self, members: Sequence[tuple[Entry, Object]], client: EngineClient) -> list[_Attempt]:
        """Return the attempts for the pods, in order, until the first error."""
        found: list[_Attempt] = []
        for entry, pod in members:
            attempt = _Attempt(entry, pod, self._decide(entry, pod, client))
            found.append(attempt)
            try:
                self._place(attempt)
            except (CtrlmgrError, GroupError) as error:
                attempt.decision = Decision(message=str(error), reason=FAILED)
            if attempt.decision.reason == FAILED:
                break
        return found

    def _place(self, attempt: _Attempt) -> None:
        """Count a pod on its node, if the pod has a node.

        Raises `GroupError`, and `Conflict` if the pod's claims are unusable.
        """
        decision, entry = attempt.decision, attempt.entry
        candidate = decision.preemption.candidate if decision.preemption is not None else None
        if decision.best:
            attempt.node = self._choose(decision.best)
            labels = self._cache.cluster.nodes[attempt.node].labels
            attempt.binding = self._bindings.reserve(entry, attempt.pod, attempt.node, labels)
        elif candidate is not None:
            attempt.node = candidate.node
            for each in candidate.victims:
                self._cache.cluster.nodes[candidate.node].remove(each)
        else:
            return
        self._cache.assume(entry.pod, attempt.node)
        attempt.permit = self._groups.permit(entry.pod)

    def _revert(self, placed: Sequence[_Attempt], client: EngineClient) -> None:
        for each in reversed(placed):
            self._cache.withdraw(each.entry.pod.key)
            if each.binding is not None:
                self._bindings.release(each.binding, client)
            elif each.decision.preemption is not None and each.decision.preemption.candidate is not None:
                for victim in each.decision.preemption.candidate.victims:
                    self._cache.cluster.nodes[each.node].add(victim)

    def _tell_group(
        self, key: Key, profile: str, error: str, *, preempts: bool, is_bound: bool, client: EngineClient
    ) -> None:
        reason, message = ("SchedulerError", error) if error else ("Unschedulable", UNSCHEDULABLE)
        result = scheduler_metrics.ERROR if error else scheduler_metrics.UNSCHEDULABLE
        if is_bound:
            reason, message, result = "Scheduled", "", scheduler_metrics.SCHEDULED
        elif preempts:
            message = PREEMPTING
        scheduler_metrics.GROUP_ATTEMPTS.labels(result, profile).inc()
        self._groups.write_condition(key, is_true=is_bound, reason=reason, message=message, client=client)


def _one_scheduler(members: Sequence[tuple[Entry, Object]]) -> str:
    """Return an error message if the pods name several schedulers; "" if they name only one."""
    names = [entry.pod.view.spec.scheduler_name for entry, _ in members]
    other = next((each for each in names if each != names[0]), None)
    if other is None:
        return ""
    words = "all pods in a single pod group should have the same .spec.schedulerName set"
    return f'{words}, got: "{other}" and "{names[0]}"'


def _refusal(attempt: _Attempt | None, error: str, *, preempts: bool) -> Decision:
    """Return the decision that is written for a pod that is not bound."""
    if error:
        is_own = attempt is not None and attempt.decision.reason == FAILED
        return attempt.decision if attempt is not None and is_own else Decision(message=error, reason=FAILED)
    assert attempt is not None, "without an error, there is an attempt for each pod"
    if preempts:
        if attempt.binding is None:
            return attempt.decision
        return Decision(message=PREEMPTING, preemption=Preemption(Candidate(attempt.node, (), 0)))
    if attempt.node:
        return Decision(message=f"{UNSCHEDULABLE}, {attempt.permit}", preemption=Preemption(None, clears=True))
    return attempt.decision
