"""Functions about status conditions, which are lists of dicts in the order in which the conditions were set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Condition: TypeAlias = "dict[str, Any]"


def condition_of(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of the given type; None if there is no such condition."""
    return next((each for each in conditions or () if each["type"] == type_), None)


def without(conditions: Iterable[Condition] | None, type_: str) -> list[Condition]:
    """Return the conditions without the condition of the given type."""
    return [each for each in conditions or () if each["type"] != type_]


def with_condition(conditions: Iterable[Condition] | None, new: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions with `new` at the end.

    The list is unchanged if it already contains a condition with this status and reason. If the status of the condition
    is unchanged, its transition time is kept.
    """
    conditions = list(conditions or ())
    current = condition_of(conditions, new["type"])
    desired = dict(new)
    if current is not None and current["status"] == new["status"]:
        if current.get("reason") == new.get("reason"):
            return conditions
        desired["lastTransitionTime"] = current.get("lastTransitionTime")
    return [*without(conditions, new["type"]), desired]
