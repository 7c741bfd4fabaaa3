"""Executes the decisions about PodGroups: binds all pods with a node, or writes why the group is not bound.

Guarantees: if the group is feasible, all pods with a node are bound; otherwise no pod is bound. Pods are preempted only
if the whole group fits afterwards. Pods of a group that are not bound are tried again after their backoff, not after an
event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.scheduler import scheduler_metrics
from ctrlmgr.controllers.scheduler.binding_writes import Binding
from ctrlmgr.controllers.scheduler.group_algorithm import Attempt, GroupAlgorithm, GroupDecision, Scope
from ctrlmgr.controllers.scheduler.pod_groups import UNSCHEDULABLE, PodGroups
from ctrlmgr.controllers.scheduler.refusal_writes import RefusalWrites
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.scheduling.cluster_model import Cluster
from ctrlmgr.scheduling.cycle import FAILED, Decision
from ctrlmgr.scheduling.preemption import Candidate, Preemption


class GroupCycle:
    """Decides about the pods of a group, and writes the result; the caller holds the scheduler's lock."""

    def __init__(
        self,
        algorithm: GroupAlgorithm,
        groups: PodGroups,
        refusals: RefusalWrites,
        decide: Callable[[Entry, Object, EngineClient, Scope], Decision],
    ) -> None:
        """Create an instance that decides with `algorithm`; `decide` decides about one pod."""
        self._algorithm = algorithm
        self._decide = decide
        self._groups = groups
        self._refusals = refusals

    def run(
        self,
        key: Key,
        members: Sequence[tuple[Entry, Object]],
        cluster: Cluster,
        client: EngineClient,
        *,
        preempts: bool,
    ) -> list[Binding]:
        """Return the pods of the group that must be bound; write the refusals of the other pods.

        The model counts the returned pods on their nodes. Raises the errors of `client` if a write fails.
        """
        decision = GroupDecision(error=_one_scheduler(members))
        if not decision.error:
            decide = partial(self._with_client, client)
            decision = self._algorithm.decide(key, members, decide, preempts=preempts)
        bindings = self._algorithm.apply(decision) if decision.is_feasible else []
        profile = members[0][0].pod.view.spec.scheduler_name
        if decision.victims:
            self._preempt(decision, key, profile, client)
        self._tell_group(key, profile, decision, client)
        bound = {each.entry.pod.key for each in bindings}
        for at, (entry, pod) in enumerate(members):
            if entry.pod.key not in bound:
                attempt = decision.attempts[at] if at < len(decision.attempts) else None
                self._refusals.write(entry, pod, _refusal(attempt, decision), cluster, client)
        return bindings

    def _with_client(self, client: EngineClient, entry: Entry, pod: Object, scope: Scope) -> Decision:
        return self._decide(entry, pod, client, scope)

    def _preempt(self, decision: GroupDecision, key: Key, profile: str, client: EngineClient) -> None:
        self._refusals.preempt_for_group(decision.victims, self._groups.get(key), profile, client)

    def _tell_group(self, key: Key, profile: str, decision: GroupDecision, client: EngineClient) -> None:
        reason, message, result = "Unschedulable", decision.message, scheduler_metrics.UNSCHEDULABLE
        if decision.error:
            reason, message, result = "SchedulerError", decision.error, scheduler_metrics.ERROR
        elif decision.is_feasible:
            reason, result = "Scheduled", scheduler_metrics.SCHEDULED
        elif decision.preempts:
            result = scheduler_metrics.WAITING
        scheduler_metrics.GROUP_ATTEMPTS.labels(result, profile).inc()
        is_true = decision.is_feasible
        self._groups.write_condition(key, is_true=is_true, reason=reason, message=message, client=client)


def _one_scheduler(members: Sequence[tuple[Entry, Object]]) -> str:
    """Return an error message if the pods name several schedulers; "" if they name only one."""
    names = [entry.pod.view.spec.scheduler_name for entry, _ in members]
    other = next((each for each in names if each != names[0]), None)
    if other is None:
        return ""
    words = "all pods in a single pod group should have the same .spec.schedulerName set"
    return f'{words}, got: "{other}" and "{names[0]}"'


def _refusal(attempt: Attempt | None, group: GroupDecision) -> Decision:
    """Return the decision that is written for a pod that is not bound."""
    if attempt is not None and attempt.decision.reason == FAILED:
        return attempt.decision
    if group.error:
        return Decision(message=group.error, reason=FAILED)
    if attempt is None:
        return Decision(message=group.message)
    if group.preempts and attempt.binding is not None:
        return Decision(message=group.message, preemption=Preemption(Candidate(attempt.node, (), 0)))
    if group.preempts or not attempt.node:
        return attempt.decision
    return Decision(message=f"{UNSCHEDULABLE}, {attempt.permit}", preemption=Preemption(None, clears=True))
