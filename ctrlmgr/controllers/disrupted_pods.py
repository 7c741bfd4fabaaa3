"""Evicts pods because of a taint: sets the condition DisruptionTarget of the pod, and deletes the pod."""

from __future__ import annotations

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.workloads.status_conditions import with_condition
from ctrlmgr.errors import NotFound

log = structlog.get_logger(__name__)


def delete_disrupted(pod: Object, reason: str, message: str, now: int, client: EngineClient) -> bool:
    """Set the condition DisruptionTarget of a pod, and delete the pod; return False if the pod no longer exists.

    `now` is the time of the condition's transition, in microseconds since 1970. Raises the errors of the API, except
    `NotFound`.
    """
    fields = pod.to_dict()
    status = fields.setdefault("status", {})
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time_seconds(now),
        "observedGeneration": fields["metadata"].get("generation", 0),
    }
    conditions = with_condition(status.get("conditions"), condition)
    try:
        if conditions != (status.get("conditions") or []):
            status["conditions"] = conditions
            pod = client.update(Object.from_dict(fields), "status")
        client.delete(pod)
    except NotFound:
        log.debug("pod already deleted", pod=str(pod.key))
        return False
    return True
