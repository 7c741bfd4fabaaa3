"""Writes the decision about a pod that fits on no node: an Event, a condition, and the result of preemption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.controllers.scheduler import scheduler_metrics
from ctrlmgr.controllers.scheduler.preemption_writes import PreemptionWrites, scheduler_of
from ctrlmgr.controllers.scheduler.scheduled_claims import DeviceClaims
from ctrlmgr.controllers.scheduler.scheduling_queue import Entry
from ctrlmgr.controllers.workloads.status_conditions import condition_of
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Lister
from ctrlmgr.kinds.core.core_event import NOTE_LENGTH
from ctrlmgr.scheduling.cluster_model import Cluster, PodInfo
from ctrlmgr.scheduling.cycle import FAILED, Decision

log = structlog.get_logger(__name__)

_CUT: Final = " ..."
"""The ending of a message that was truncated."""


class RefusalWrites:
    """Writes the decisions about pods that fit on no node."""

    def __init__(self, pods: Lister, devices: DeviceClaims, recorders: Mapping[str, Recorder], clock: Clock) -> None:
        """Create an instance that finds victims in a cache; `recorders` contains one recorder for each scheduler."""
        self._victims = PreemptionWrites(pods, recorders, clock)
        self._devices = devices
        self._recorders = recorders
        self._clock = clock

    def write(self, entry: Entry, pod: Object, decision: Decision, cluster: Cluster, client: EngineClient) -> None:
        """Execute a decision: preempt pods or deallocate a claim, and write the reason to the pod and to an Event.

        Raises the errors of `client` if a write fails.
        """
        self._count(entry, decision)
        candidate = decision.preemption.candidate if decision.preemption is not None else None
        if candidate is not None:
            self._victims.make_room(candidate, pod, cluster, client)
            cluster.nominate(PodInfo.of(pod), candidate.node)
        elif decision.nominated == "":
            cluster.drop_nomination(pod.key)
        if decision.deallocation is not None:
            self._devices.deallocate(decision.deallocation, client)
        self._recorders[scheduler_of(pod)].event(
            pod, WARNING, "FailedScheduling", as_note(decision.message), action="Scheduling"
        )
        self._tell_status(pod, decision, client)

    def preempt_for_group(
        self, victims: Sequence[PodInfo], group: Object, scheduler: str, client: EngineClient
    ) -> None:
        """Delete the victims of a PodGroup; raises the errors of `client` if a write fails."""
        scheduler_metrics.VICTIMS.observe(len(victims))
        self._victims.make_room_for_group(victims, group, scheduler, client)

    def _count(self, entry: Entry, decision: Decision) -> None:
        result = scheduler_metrics.ERROR if decision.reason == FAILED else scheduler_metrics.UNSCHEDULABLE
        seconds = self._clock.monotonic() - entry.taken_at
        scheduler_metrics.count_attempt(result, entry.pod.view.spec.scheduler_name, seconds)
        if decision.preemption is not None:
            scheduler_metrics.PREEMPTIONS.inc()
            if decision.preemption.candidate is not None:
                scheduler_metrics.VICTIMS.observe(len(decision.preemption.candidate.victims))

    def _tell_status(self, pod: Object, decision: Decision, client: EngineClient) -> None:
        fields = pod.to_dict()
        status = fields.get("status") or {}
        generation = fields["metadata"].get("generation", 0)
        current = condition_of(status.get("conditions"), "PodScheduled")
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "observedGeneration": generation,
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": decision.reason,
            "message": decision.message,
        }
        if current is not None and current["status"] == "False":
            condition["lastTransitionTime"] = current.get("lastTransitionTime") or condition["lastTransitionTime"]
        patch: dict[str, Any] = {}
        if current is None or {**current, **condition} != current:
            patch["conditions"] = [condition]
        if decision.nominated is not None and decision.nominated != status.get("nominatedNodeName", ""):
            patch["nominatedNodeName"] = decision.nominated or None
        if patch:
            try:
                client.patch(pod, {"metadata": {"uid": pod.uid}, "status": patch}, "status")
            except NotFound:
                log.debug("pod already deleted", pod=str(pod.key))


def as_note(message: str) -> str:
    """Return a message, truncated to the length limit of an Event (`truncateMessage`)."""
    text = message.encode()
    if len(text) <= NOTE_LENGTH:
        return message
    return text[: NOTE_LENGTH - len(_CUT)].decode(errors="ignore") + _CUT
