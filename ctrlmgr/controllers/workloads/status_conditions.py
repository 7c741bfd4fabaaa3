"""Status conditions as lists of dicts, in the order in which they were set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Condition: TypeAlias = "dict[str, Any]"


def condition_of(conditions: Iterable[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of this type, None if there is none."""
    return next((each for each in conditions or () if each["type"] == type_), None)


def without(conditions: Iterable[Condition] | None, type_: str) -> list[Condition]:
    """Return the conditions without the condition of this type."""
    return [each for each in conditions or () if each["type"] != type_]


def with_condition(conditions: Iterable[Condition] | None, new: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions with `new` at the end; they are unchanged if they contain its status and reason already.

    The transition time is kept if the status is unchanged.
    """
    conditions = list(conditions or ())
    current = condition_of(conditions, new["type"])
    wanted = dict(new)
    if current is not None and current["status"] == new["status"]:
        if current.get("reason") == new.get("reason"):
            return conditions
        wanted["lastTransitionTime"] = current.get("lastTransitionTime")
    return [*without(conditions, new["type"]), wanted]
