"""Functions about status conditions, which are lists of dicts in the order in which the conditions were set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Condition: TypeAlias = "dict[str, Any]"


def condition_of(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of the given type; None if there is no such condition."""
    return next((each for each in conditions or () if each["type"] == type_), None)


def without(conditions: Iterable[Condition] | None, type_: str) -> list[Condition]:
    """Return all conditions except the condition of the given type."""
    return [each for each in conditions or () if each["type"] != type_]


def with_condition(conditions: Iterable[Condition] | None, new: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions with `new` at the end.

    If the list already contains the condition with the same status and reason, the list is unchanged. If only the
    status is the same, the condition keeps its transition time.
    """
    conditions = list(conditions or ())
    current = condition_of(conditions, new["type"])
    desired = dict(new)
    if current is not None and current["status"] == new["status"]:
        if current.get("reason") == new.get("reason"):
            return conditions
        desired["lastTransitionTime"] = current.get("lastTransitionTime")
    return [*without(conditions, new["type"]), desired]
