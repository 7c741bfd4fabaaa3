"""Reads and sets the conditions of pods; a changed condition gets a new timestamp.

Source: Kubernetes `pkg/api/pod/util.go`, `UpdatePodCondition`.
"""

from __future__ import annotations

from typing import Any


def set_condition(
    status: dict[str, Any], now: str, type_: str, value: str, reason: str = "", message: str = ""
) -> None:
    """Set one condition in a pod's status, in place; append the condition if the status does not have it."""
    conditions = list(status.get("conditions") or ())
    at = next((index for index, each in enumerate(conditions) if each.get("type") == type_), len(conditions))
    old = conditions[at] if at < len(conditions) else {}
    changed = old.get("status") != value
    condition = {
        "type": type_,
        "status": value,
        "lastProbeTime": None,
        "lastTransitionTime": now if changed else old.get("lastTransitionTime"),
    }
    condition.update({field: text for field, text in (("reason", reason), ("message", message)) if text})
    conditions[at:] = [condition, *conditions[at + 1 :]]
    status["conditions"] = conditions


def is_ready(status: dict[str, Any]) -> bool:
    """Return whether a pod is ready according to its status."""
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())
