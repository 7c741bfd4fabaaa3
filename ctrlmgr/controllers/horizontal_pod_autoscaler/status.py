"""Builds the status of an autoscaler: the numbers of replicas and the conditions.

Source: Kubernetes' `pkg/controller/podautoscaler/horizontal.go` (`setStatus`, `setConditionInList`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.controllers.horizontal_pod_autoscaler.view import AutoscalerStatus

ABLE_TO_SCALE: Final = "AbleToScale"
SCALING_ACTIVE: Final = "ScalingActive"
SCALING_LIMITED: Final = "ScalingLimited"


class StatusDraft:
    """The status of an autoscaler, which is changed step by step."""

    def __init__(self, status: AutoscalerStatus, now: int) -> None:
        """Create a builder that starts with the fields of `status`.

        Changed conditions get the transition time `now` (microseconds since 1970).
        """
        self._before = _fields(status)
        self._fields = dict(self._before)
        self._at = format_time_seconds(now)

    def condition(self, type_: str, is_true: bool, reason: str, message: str) -> None:
        """Set a condition: replace the condition of the same type in the list, or append the condition.

        The transition time of a condition changes only if the condition's status changes.
        """
        status = "True" if is_true else "False"
        new = {"type": type_, "status": status, "lastTransitionTime": self._at, "reason": reason, "message": message}
        conditions = list(self._fields.get("conditions") or ())
        for place, old in enumerate(conditions):
            if old["type"] == type_:
                if old["status"] == status and "lastTransitionTime" in old:
                    new["lastTransitionTime"] = old["lastTransitionTime"]
                conditions[place] = new
                break
        else:
            conditions.append(new)
        self._fields["conditions"] = conditions

    def numbers(
        self, current: int, desired: int | None, metrics: Sequence[Mapping[str, Any]] | None, *, rescaled: bool = False
    ) -> None:
        """Set the current number of replicas, the desired number of replicas, and the metrics.

        If `desired` is None, the desired number in the status does not change. If the metrics are None, no metric was
        read.
        """
        kept = ("lastScaleTime", "conditions")
        wanted = self._fields["desiredReplicas"] if desired is None else desired
        fields = {name: self._fields[name] for name in kept if name in self._fields}
        if rescaled:
            fields["lastScaleTime"] = self._at
        listed = None if metrics is None else list(metrics)
        self._fields = {**fields, "currentReplicas": current, "desiredReplicas": wanted, "currentMetrics": listed}

    def written_to(self, obj: Object) -> Object | None:
        """Return the autoscaler with this status; None if the autoscaler already has an equal status."""
        if self._normal(self._fields) == self._normal(self._before):
            return None
        return Object.from_dict({**obj.to_dict(), "status": self._fields})

    @staticmethod
    def _normal(fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields in the form in which they are compared: a missing list becomes an empty list."""
        return {name: value for name, value in fields.items() if value not in (None, [], 0)}


def _fields(status: AutoscalerStatus) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "currentReplicas": status.current_replicas,
        "desiredReplicas": status.desired_replicas,
        "currentMetrics": status.current_metrics,
    }
    if status.observed_generation is not None:
        fields["observedGeneration"] = status.observed_generation
    if status.last_scale_time is not None:
        fields["lastScaleTime"] = status.last_scale_time
    if status.conditions is not None:
        fields["conditions"] = status.conditions
    return fields
