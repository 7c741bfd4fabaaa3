"""Repeats the scheduler's decision about a PodGroup, with the state that the scheduler used.

Guarantees: the scheduler's own algorithm decides again about all pods of the group that waited, with the default
profile. Of equally good nodes, each pod gets the node on which it was bound. The feature gates of the server are
inferred from the fields of the group. The log does not say which writes belong to one decision: these are the last
writes of the scheduler to the group and its pods, until a pod was written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource, Revision
from ctrlmgr.clock import SystemClock, parse_time
from ctrlmgr.controllers.scheduler import DESCRIPTOR
from ctrlmgr.controllers.scheduler.binding_writes import BindingWrites
from ctrlmgr.controllers.scheduler.decision_inputs import DecisionInputs
from ctrlmgr.controllers.scheduler.group_algorithm import Choice, GroupAlgorithm, GroupDecision, Scope
from ctrlmgr.controllers.scheduler.pod_groups import PodGroups, minimum, topology_of, used_gates
from ctrlmgr.controllers.scheduler.scheduler_cache import POD_GROUPS, SchedulerCache
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.inspection import historical_state
from ctrlmgr.inspection.database import Database
from ctrlmgr.scheduling.cluster_model import Cluster, PodInfo
from ctrlmgr.scheduling.cycle import Decision

Deciding = Callable[[PodInfo, Cluster, Scope], Decision]
"""The type of a function that decides about one pod in a state of the cluster."""


class GroupRepetition(NamedTuple):
    """The repeated decision about one pod of a group, and a description of the decision about the group."""

    decision: Decision
    is_feasible: bool
    """Whether the pods of the group that fit are bound."""
    lines: Sequence[str]


class GroupWrite(NamedTuple):
    """A write of the scheduler to a PodGroup or one of its pods."""

    revision: Revision
    resource: Resource
    key: Key


def first_write(database: Database, group: Key, until: Revision) -> Revision:
    """Return the revision of the scheduler's first write of the decision to which the write `until` belongs."""
    pods = historical_state.objects(database, PODS, namespace=group.namespace, at=until)
    written = [(PODS, each.key) for each in pods if PodInfo.of(each).group == group]
    writes = [
        GroupWrite(change.revision, resource, key)
        for resource, key in (*written, (POD_GROUPS, group))
        for change in historical_state.history(database, resource, key, until=until)
        if change.author.controller == DESCRIPTOR.name
    ]
    seen: set[tuple[Resource, Key]] = set()
    first = until
    for each in sorted(writes, reverse=True):
        if (each.resource, each.key) in seen:
            break
        first = each.revision
        if each.resource == POD_GROUPS:
            break
        seen.add((each.resource, each.key))
    return first


@dataclass
class GroupRepeater:
    """Repeats the decisions about one group in the state at a revision."""

    group: Object
    objects: Callable[[Resource], Lister]
    inputs: DecisionInputs
    bound: Mapping[Key, str]
    """The nodes on which the pods of the group were bound."""

    def repeat(self, pod: PodInfo, decide: Deciding) -> GroupRepetition | None:
        """Return the decision about a pod; None if the pod did not wait with its group in this state."""
        cache = self._cache()
        groups = PodGroups(self.objects(POD_GROUPS), cache, SystemClock(), used_gates(self.group))
        bindings = BindingWrites(self.inputs, SystemClock(), Random(0))
        choice = Choice(self._node, lambda names: self._placement(pod, names))
        algorithm = GroupAlgorithm(groups, cache, bindings, choice, self.inputs.budgets)

        def decide_one(entry: Entry, obj: Object, scope: Scope) -> Decision:
            return decide(entry.pod, cache.cluster, scope)

        found = algorithm.decide(self.group.key, self._members(), decide_one, preempts=True)
        attempt = next((each for each in found.attempts if each.entry.pod.key == pod.key), None)
        if attempt is None and found.attempts:
            return None
        decision = attempt.decision if attempt is not None else Decision(message=found.error or found.message)
        return GroupRepetition(decision, found.is_feasible, [*_lines(self.group, found)])

    def _cache(self) -> SchedulerCache:
        cache = SchedulerCache(("default-scheduler",))
        for resource in (NAMESPACES, NODES, PODS):
            for each in self.objects(resource).list():
                cache.note(Change(EventType.ADDED, None, each, each.revision))
        for _ in cache.catch_up():
            pass
        return cache

    def _members(self) -> list[tuple[Entry, Object]]:
        found = [(PodInfo.of(each), each) for each in self.objects(PODS).list(self.group.namespace)]
        waiting = [
            (Entry(pod, parse_time(pod.view.metadata.creation_timestamp)), each)
            for pod, each in found
            if pod.group == self.group.key and not (pod.node_name or pod.has_ended or pod.is_terminating)
        ]
        return sorted(waiting, key=lambda each: each[0].order)

    def _node(self, pod: PodInfo, names: Sequence[str]) -> str:
        bound = self.bound.get(pod.key, "")
        return bound if bound in names else names[0]

    def _placement(self, pod: PodInfo, names: Sequence[str]) -> str:
        node = self.objects(NODES).get(Key("", self.bound.get(pod.key, "")))
        value = (node.labels if node is not None else {}).get(topology_of(self.group), "")
        return value if value in names else names[0]


def _lines(group: Object, found: GroupDecision) -> Iterator[str]:
    """Yield lines that describe the decision about a group."""
    least, label = minimum(group), topology_of(group)
    needs = f"; the gang needs {least} pods" if least else ""
    yield f"pod group {group.key}: {len(found.placed)} of {len(found.attempts)} waiting pods fit{needs}"
    for value, count in found.fitting.items() if label else ():
        yield f"  on nodes with {label}={value}: {count} pods fit"
    if found.victims:
        yield f"  preemption for the group: {', '.join(str(each.key) for each in found.victims)} are deleted"
    if found.error or found.message:
        yield f"  {found.error or found.message}"
