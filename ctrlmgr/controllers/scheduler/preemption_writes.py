"""Writes the result of preemption: sets a condition on the victims, and then deletes them."""

from __future__ import annotations

from collections.abc import Mapping

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


class PreemptionWrites:
    """Deletes the victims of preemption."""

    def __init__(self, pods: Lister, recorders: Mapping[str, Recorder], clock: Clock) -> None:
        """Create an instance that finds victims in a cache; `recorders` contains one recorder for each scheduler."""
        self._pods, self._recorders, self._clock = pods, recorders, clock

    def make_room(self, candidate: Candidate, preemptor: Object, cluster: Cluster, client: EngineClient) -> None:
        """Delete the victims of a candidate node, and clear the nominations of less important pods for that node."""
        for each in candidate.victims:
            victim = self._pods.get(each.key)
            if victim is None or victim.uid != each.uid or victim.is_terminating:
                continue
            try:
                self._preempt(victim, candidate.node, preemptor, client)
            except NotFound:
                log.debug("pod already deleted", pod=str(victim.key))
        for other in [*cluster.nominated.get(candidate.node, {}).values()]:
            if other.priority < PodInfo.of(preemptor).priority:
                cluster.drop_nomination(other.key)
                self._clear_nomination(other, client)

    def _preempt(self, victim: Object, node: str, preemptor: Object, client: EngineClient) -> None:
        fields = victim.to_dict()
        status = fields.setdefault("status", {})
        condition = {
            "type": "DisruptionTarget",
            "observedGeneration": fields["metadata"].get("generation", 0),
            "status": "True",
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler_of(preemptor)}: preempting to accommodate a higher priority pod",
        }
        conditions = with_condition(status.get("conditions"), condition)
        if conditions != (status.get("conditions") or []):
            patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
            client.patch(victim, patch, "status")
        client.delete(victim)
        message = f"Preempted by pod {preemptor.uid} on node {node}"
        self._recorders[scheduler_of(preemptor)].event(
            victim, NORMAL, "Preempted", message, action="Preempting", related=preemptor
        )

    def _clear_nomination(self, other: PodInfo, client: EngineClient) -> None:
        pod = self._pods.get(other.key)
        if pod is None:
            return
        try:
            client.patch(pod, {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}, "status")
        except ApiError as error:
            log.info("clearing nomination failed", pod=str(pod.key), error=str(error))
