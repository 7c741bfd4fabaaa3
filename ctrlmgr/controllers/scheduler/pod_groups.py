"""Reads PodGroups: when their pods may be scheduled and bound, where, and which pods they may preempt.

Guarantees: if the feature gate GenericWorkload is off, pods have no groups. If GangScheduling is off, the policy of a
group has no effect. A pod of a gang is not queued before `minCount` pods of the gang exist (`PreEnqueue`). A pod of a
gang is not bound before `minCount` pods of the gang have a node (`Permit`).

If TopologyAwareWorkloadScheduling is on, all pods of a group with a topology constraint get nodes with the same value
of a label. If WorkloadAwarePreemption is on, pods of groups do not preempt other pods one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.scheduler.scheduler_cache import SchedulerCache
from ctrlmgr.controllers.workloads.status_conditions import condition_of
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.informer import Lister
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.group_placements import GroupPlacement, placements
from ctrlmgr.scheduling.group_preemption import DisruptedGroup

log = structlog.get_logger(__name__)

WORKLOADS: Final = "GenericWorkload"
"""The feature gate of PodGroups."""
FEW_PODS: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
FEW_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"
UNSCHEDULABLE: Final = "pod group is unschedulable"
PREEMPTING: Final = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"
CONSTRAINED: Final = "not eligible due to placement-based pod group scheduling limitation"
NOT_ALONE: Final = "not eligible due to workload aware preemption enabled"


class _Gang(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    min_count: int = 0


class _Policy(msgspec.Struct, frozen=True, gc=False):
    gang: _Gang | None = None


class _Constraint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""


class _Constraints(msgspec.Struct, frozen=True, gc=False):
    topology: list[_Constraint] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    scheduling_policy: _Policy = _Policy()
    scheduling_constraints: _Constraints | None = None
    disruption_mode: str = ""
    priority: int | None = None


class _PodGroup(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class GroupGates(NamedTuple):
    """The feature gates of groups, besides GenericWorkload; True if a gate is on."""

    gangs: bool
    topology: bool
    preemption: bool


def current_gates() -> GroupGates:
    """Return the state of the gates in this process."""
    return GroupGates(
        is_on("GangScheduling"), is_on("TopologyAwareWorkloadScheduling"), is_on("WorkloadAwarePreemption")
    )


def used_gates(group: Object) -> GroupGates:
    """Return the gates that were on when a group was created, as far as its fields show them."""
    spec = _spec(group)
    return GroupGates(minimum(group) > 0, spec.scheduling_constraints is not None, spec.priority is not None)


class GroupError(Exception):
    """Raised if the group of a pod does not exist when the scheduler decides about the pod."""


class PodGroups:
    """The PodGroups of a cluster, and the number of pods of each PodGroup."""

    def __init__(self, groups: Lister | None, cache: SchedulerCache, clock: Clock, gates: GroupGates) -> None:
        """Create an instance that reads a lister and counts the pods of `cache`.

        The lister is None if the gate GenericWorkload is off.
        """
        self.gates: Final = gates
        self._groups = groups
        self._cache = cache
        self._clock = clock

    def of(self, pod: PodInfo) -> Key | None:
        """Return the group of a pod; None if the pod is scheduled alone."""
        return pod.group if self._groups is not None else None

    def missing(self, pod: PodInfo) -> str:
        """Return the reason why a pod cannot be queued yet; "" if the pod can be queued."""
        key = self.of(pod)
        if key is None or not self.gates.gangs:
            return ""
        group = self._get(key)
        if group is None:
            return no_group(key)
        return FEW_PODS if len(self._cache.members.get(key, ())) < minimum(group) else ""

    def permit(self, pod: PodInfo) -> str:
        """Return the reason why a pod that has a node cannot be bound yet; "" if it can be bound.

        Raises `GroupError`.
        """
        key = self.of(pod)
        if key is None or not self.gates.gangs:
            return ""
        try:
            group = self.get(key)
        except GroupError as error:
            raise GroupError(f"failed to get podGroup {key}: {error}") from error
        return FEW_SCHEDULED if len(self._cache.nodes_of(key)) < minimum(group) else ""

    def placements(self, key: Key) -> Sequence[GroupPlacement]:
        """Return the sets of nodes on which a group may be placed; raises `GroupError` and `PlacementError`."""
        label = topology_of(self.get(key)) if self.gates.topology else ""
        return placements(label, self._cache.cluster, self._cache.nodes_of(key))

    def no_preemption(self, pod: PodInfo) -> str:
        """Return the reason why a pod must not preempt other pods alone; "" if it may."""
        key = self.of(pod)
        if key is None:
            return ""
        group = self._get(key)
        if self.gates.topology and group is None:
            return "pod group for pod not found"
        if self.gates.topology and group is not None and _spec(group).scheduling_constraints is not None:
            return CONSTRAINED
        return NOT_ALONE if self.gates.preemption else ""

    def disrupted(self, pod: PodInfo) -> DisruptedGroup | None:
        """Return the group with which a pod is preempted; None if the pod is preempted alone."""
        key = self.of(pod)
        group = self._get(key) if key is not None else None
        if group is None or _spec(group).disruption_mode != "PodGroup":
            return None
        return DisruptedGroup(group.uid, priority_of(group))

    def write_condition(self, key: Key, *, is_true: bool, reason: str, message: str, client: EngineClient) -> None:
        """Write the condition PodGroupScheduled, unless the group was scheduled earlier; a failed write is not retried.

        The write is skipped if the condition is unchanged.
        """
        group = self._get(key)
        if group is None:
            return
        fields = group.to_dict()
        current = condition_of((fields.get("status") or {}).get("conditions"), "PodGroupScheduled") or {}
        if current.get("status") == "True" and not is_true:
            return
        desired = {
            "type": "PodGroupScheduled",
            "status": "True" if is_true else "False",
            "reason": reason,
            "message": message,
            "observedGeneration": fields["metadata"].get("generation", 0),
        }
        if all(current.get(name) == value for name, value in desired.items()):
            return
        is_new = current.get("status") != desired["status"]
        time = format_time_seconds(self._clock.now()) if is_new else current["lastTransitionTime"]
        status = {"conditions": [{**desired, "lastTransitionTime": time}]}
        try:
            client.patch(group, {"metadata": {"uid": group.uid}, "status": status}, "status")
        except CtrlmgrError as error:
            log.info("writing status of pod group failed", group=str(key), error=str(error))

    def get(self, key: Key) -> Object:
        """Return a group; raises `GroupError` if it does not exist."""
        group = self._get(key)
        if group is None:
            raise GroupError(f'podgroup.scheduling.k8s.io "{key.name}" not found')
        return group

    def _get(self, key: Key) -> Object | None:
        return self._groups.get(key) if self._groups is not None else None


def no_group(key: Key) -> str:
    """Return the reason why a pod is not queued if its group does not exist."""
    return f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'


def minimum(group: Object) -> int:
    """Return the number of pods that a group needs; 0 if its pods are independent of each other."""
    gang = _spec(group).scheduling_policy.gang
    return 0 if gang is None else gang.min_count


def topology_of(group: Object) -> str:
    """Return the label that must have the same value on the nodes of all pods of a group; "" if there is none."""
    constraints = _spec(group).scheduling_constraints
    topology = constraints.topology if constraints is not None else None
    return topology[0].key if topology else ""


def priority_of(group: Object) -> int:
    """Return the priority of a group, which can differ from the priorities of its pods."""
    return _spec(group).priority or 0


def _spec(group: Object) -> _Spec:
    return group.view(_PodGroup).spec
