"""Returns the fields of objects of shared kinds without the differences that do not count.

The result contains no times, counts of writes and random names in messages. Lists whose items have an identity are
sorted.
"""

from __future__ import annotations

import re
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.recording.object_comparison import comparable

_RANDOM = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
"""Matches the random suffix of a generated name.

Random suffixes matter because messages contain the names of refused pods, which are not recorded elsewhere.
"""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ITEMS_BY = ("type", "uid", "name")
_VERSION = "resourceVersion"
"""The field `resourceVersion` of references, whose value differs between the recording and the replay's log."""


def likened(obj: Object) -> dict[str, Any]:
    """Return the fields of an object that the comparison uses."""
    fields = comparable(obj)
    status = fields.get("status")
    if isinstance(status, dict) and "observedGeneration" in status:
        behind = (obj.metadata.generation or 0) - status["observedGeneration"]
        fields["status"] = {**status, "observedGeneration": f"{behind} behind"}
    compared: dict[str, Any] = _likened_value(fields)
    return compared


def _likened_value(value: Any, field: str = "") -> Any:
    if isinstance(value, str):
        text = _TIME.sub("<time>", value)
        return _RANDOM.sub("<random>", text) if field == "message" else text
    if isinstance(value, dict):
        return {name: _likened_value(each, name) for name, each in value.items() if name != _VERSION}
    if isinstance(value, list):
        return _ordered([_likened_value(each) for each in value])
    return value


def _ordered(items: list[Any]) -> list[Any]:
    """Return list items sorted by their identity, because conditions are in the order in which they were set."""
    for field in _ITEMS_BY:
        if items and all(isinstance(item, dict) and field in item for item in items):
            return sorted(items, key=lambda item: str(item[field]))
    return items
