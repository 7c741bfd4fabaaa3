"""Validates the statuses of workloads: no count is negative, and no partial count exceeds the total.

Source: Kubernetes' `pkg/apis/apps/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.kinds.common_rules import nonnegative_fields

STATUS = Path("status")
_ABOVE_ALL = "cannot be greater than status.replicas"
DEPLOYMENT_COUNTS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
REPLICA_SET_COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
)
STATEFUL_SET_COUNTS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
"""The status fields with counts that must not be negative, in Kubernetes' order."""


def validate_replicas(
    status: Mapping[str, Any], counts: tuple[str, ...], parts: tuple[str, ...], ready: str = "readyReplicas"
) -> list[FieldError]:
    """Validate the counts in a status: no count in `parts` may exceed the number of replicas.

    The argument `counts` contains the counts. The argument `ready` is the name of the count of ready pods in error
    messages.
    """
    errors = nonnegative_fields(status, counts, STATUS)
    whole = status.get("replicas") or 0
    for part in parts:
        count = status.get(part) or 0
        if count > whole:
            errors.append(invalid(STATUS.child(part), count, _ABOVE_ALL))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        errors.append(invalid(STATUS.child("availableReplicas"), available, f"cannot be greater than {ready}"))
    return errors


def validate_collisions(status: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    """Validate that the collision count in a status does not decrease."""
    new, old = status.get("collisionCount"), before.get("collisionCount")
    if old is None or (new is not None and new >= old):
        return []
    return [invalid(STATUS.child("collisionCount"), new or 0, "cannot be decremented")]


def validate_daemons(status: Mapping[str, Any]) -> list[FieldError]:
    """Validate the counts of a DaemonSet's status."""
    fields = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return nonnegative_fields(status, fields, STATUS)
