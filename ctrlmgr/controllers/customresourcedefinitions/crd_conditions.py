"""The conditions of a CustomResourceDefinition (apiextensions-apiserver `pkg/apihelpers/helpers.go`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
NON_STRUCTURAL: Final = "NonStructuralSchema"
APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"
TERMINATING: Final = "Terminating"


class Condition(NamedTuple):
    """A condition without its transition time."""

    type: str
    status: str
    """The status of the condition: `True`, `False` or `Unknown`."""
    reason: str
    message: str


def conditions_of(definition: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the raw conditions of a CustomResourceDefinition, as JSON values."""
    return (definition.get("status") or {}).get("conditions") or ()


def find(definition: Mapping[str, Any], type: str) -> Condition | None:
    """Return a CustomResourceDefinition's condition of the given type; None if the condition does not exist."""
    for each in conditions_of(definition):
        if each.get("type") == type:
            return Condition(type, each.get("status", ""), each.get("reason", ""), each.get("message", ""))
    return None


def is_true(definition: Mapping[str, Any], type: str) -> bool:
    """Return whether a CustomResourceDefinition has a condition of a given type with the status True."""
    return (found := find(definition, type)) is not None and found.status == "True"


def with_condition(conditions: Sequence[Mapping[str, Any]], desired: Condition, now: str) -> list[dict[str, Any]]:
    """Return the conditions of a CustomResourceDefinition, in which one condition is set to the given value.

    The condition's transition time changes only if its status changes. `now` is a timestamp (RFC 3339).
    """
    result = [dict(each) for each in conditions]
    for each in result:
        if each.get("type") == desired.type:
            if each.get("status") != desired.status or not each.get("lastTransitionTime"):
                each["lastTransitionTime"] = now
            each.update(status=desired.status, reason=desired.reason, message=desired.message)
            return result
    return [*result, {"lastTransitionTime": now, **desired._asdict()}]


def without_condition(conditions: Sequence[Mapping[str, Any]], type: str) -> list[dict[str, Any]]:
    """Return the conditions of a CustomResourceDefinition, except the condition of the given type."""
    return [dict(each) for each in conditions if each.get("type") != type]
