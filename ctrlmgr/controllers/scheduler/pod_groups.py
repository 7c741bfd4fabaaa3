"""Decides when the pods of a PodGroup may be scheduled and bound, as kube-scheduler's plugin GangScheduling does.

Guarantees: if the feature gate GenericWorkload is off, pods have no groups. If GangScheduling is off, the policy of a
group has no effect. A pod of a gang is not queued before `minCount` pods of the gang exist (`PreEnqueue`). A pod of a
gang is not bound before `minCount` pods of the gang have a node (`Permit`).
"""

from __future__ import annotations

from typing import Final

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

log = structlog.get_logger(__name__)

WORKLOADS: Final = "GenericWorkload"
"""The feature gate of PodGroups."""
_GANGS: Final = "GangScheduling"
FEW_PODS: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
FEW_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"
UNSCHEDULABLE: Final = "pod group is unschedulable"
PREEMPTING: Final = f"{UNSCHEDULABLE}, pod group is waiting for preemption to complete"


class _Gang(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    min_count: int = 0


class _Policy(msgspec.Struct, frozen=True, gc=False):
    gang: _Gang | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    scheduling_policy: _Policy = _Policy()


class _PodGroup(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class GroupError(Exception):
    """Raised if the group of a pod does not exist when the pod is about to be bound."""


class PodGroups:
    """The PodGroups of a cluster, and the number of pods of each PodGroup."""

    def __init__(self, groups: Lister | None, cache: SchedulerCache, clock: Clock) -> None:
        """Create an instance that reads a lister and counts the pods of `cache`.

        The lister is None if the gate is off.
        """
        self._groups = groups
        self._cache = cache
        self._clock = clock

    def of(self, pod: PodInfo) -> Key | None:
        """Return the group of a pod; None if the pod is scheduled alone."""
        return pod.group if self._groups is not None else None

    def missing(self, pod: PodInfo) -> str:
        """Return the reason why a pod cannot be queued yet; "" if the pod can be queued."""
        key = self.of(pod)
        if key is None or not is_on(_GANGS):
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
        if key is None or not is_on(_GANGS):
            return ""
        group = self._get(key)
        if group is None:
            problem = f'podgroup.scheduling.k8s.io "{key.name}" not found'
            raise GroupError(f"failed to get podGroup {key}: {problem}")
        return FEW_SCHEDULED if self._cache.placed_members(key) < minimum(group) else ""

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

    def _get(self, key: Key) -> Object | None:
        return self._groups.get(key) if self._groups is not None else None


def no_group(key: Key) -> str:
    """Return the reason why a pod is not queued if its group does not exist."""
    return f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'


def minimum(group: Object) -> int:
    """Return the number of pods that a group needs; 0 if its pods are independent of each other."""
    gang = group.view(_PodGroup).spec.scheduling_policy.gang
    return 0 if gang is None else gang.min_count
