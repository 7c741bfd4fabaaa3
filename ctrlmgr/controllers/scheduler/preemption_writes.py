"""Writes the result of preemption: sets a condition on the victims, and then deletes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.workloads.status_conditions import with_condition
from ctrlmgr.errors import ApiError, NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.scheduling.cluster_model import Cluster, PodInfo
from ctrlmgr.scheduling.preemption import Candidate
from ctrlmgr.scheduling.scheduling_view import decode_pod

log = structlog.get_logger(__name__)


def scheduler_of(pod: Object) -> str:
    """Return the name of the scheduler that a pod names."""
    return decode_pod(pod.body).spec.scheduler_name


class _Preemptor(NamedTuple):
    """The pod or the PodGroup for which pods are preempted."""

    object: Object
    type: str
    scheduler: str


class PreemptionWrites:
    """Deletes the victims of preemption."""

    def __init__(self, pods: Lister, recorders: Mapping[str, Recorder], clock: Clock) -> None:
        """Create an instance that finds victims in a cache; `recorders` contains one recorder for each scheduler."""
        self._pods, self._recorders, self._clock = pods, recorders, clock

    def make_room(self, candidate: Candidate, preemptor: Object, cluster: Cluster, client: EngineClient) -> None:
        """Delete the victims of a candidate node, and clear the nominations of less important pods for that node."""
        self._delete(candidate.victims, _Preemptor(preemptor, "pod", scheduler_of(preemptor)), candidate.node, client)
        for other in [*cluster.nominated.get(candidate.node, {}).values()]:
            if other.priority < PodInfo.of(preemptor).priority:
                cluster.drop_nomination(other.key)
                self._clear_nomination(other, client)

    def make_room_for_group(
        self, victims: Sequence[PodInfo], group: Object, scheduler: str, client: EngineClient
    ) -> None:
        """Delete the victims of a PodGroup whose pods name this scheduler."""
        self._delete(victims, _Preemptor(group, "podgroup", scheduler), "cluster", client)

    def _delete(self, victims: Sequence[PodInfo], preemptor: _Preemptor, where: str, client: EngineClient) -> None:
        for each in victims:
            victim = self._pods.get(each.key)
            if victim is None or victim.uid != each.uid or victim.is_terminating:
                continue
            try:
                self._preempt(victim, preemptor, where, client)
            except NotFound:
                log.debug("pod already deleted", pod=str(victim.key))

    def _preempt(self, victim: Object, preemptor: _Preemptor, where: str, client: EngineClient) -> None:
        fields = victim.to_dict()
        status = fields.setdefault("status", {})
        condition = {
            "type": "DisruptionTarget",
            "observedGeneration": fields["metadata"].get("generation", 0),
            "status": "True",
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": "PreemptionByScheduler",
            "message": f"{preemptor.scheduler}: preempting to accommodate a higher priority {preemptor.type}",
        }
        conditions = with_condition(status.get("conditions"), condition)
        if conditions != (status.get("conditions") or []):
            patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
            client.patch(victim, patch, "status")
        client.delete(victim)
        message = f"Preempted by {preemptor.type} {preemptor.object.uid} on node {where}"
        self._recorders[preemptor.scheduler].event(
            victim, NORMAL, "Preempted", message, action="Preempting", related=preemptor.object
        )

    def _clear_nomination(self, other: PodInfo, client: EngineClient) -> None:
        pod = self._pods.get(other.key)
        if pod is None:
            return
        try:
            client.patch(pod, {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}, "status")
        except ApiError as error:
            log.info("clearing nomination failed", pod=str(pod.key), error=str(error))
