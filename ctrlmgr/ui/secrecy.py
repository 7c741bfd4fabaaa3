"""What the page keeps to itself though it could read it: the values of Secrets, for a page is shown to others.

Guarantees: no value of `data` or `stringData` of a Secret is told, nor what an annotation repeats of it; that it was
changed is. kubectl and `ctrlmgr get` show what this hides to users who may see it.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.resource import Resource

HIDDEN = "(hidden)"
"""What stands for a value."""

CHANGED = "(hidden, changed)"
"""What stands for a value beside one that it differs from; it is shown as `HIDDEN`."""

_SECRETS = Resource("", "secrets")
_FIELDS = ("data", "stringData")
_REPEATED = "kubectl.kubernetes.io/last-applied-configuration"


def masked(resource: Resource, fields: Any) -> Any:
    """Return an object's fields without what is secret; they are not changed."""
    if resource != _SECRETS:
        return fields
    shown = dict(fields)
    for name in _FIELDS:
        if isinstance(values := shown.get(name), dict):
            shown[name] = dict.fromkeys(values, HIDDEN)
    annotations = shown.get("metadata", {}).get("annotations", {})
    if _REPEATED in annotations:
        shown["metadata"] = {**shown["metadata"], "annotations": {**annotations, _REPEATED: HIDDEN}}
    return shown


def masked_sides(resource: Resource, before: Any, after: Any) -> tuple[Any, Any]:
    """Return two states of an object without what is secret; where that differs, one side says `CHANGED`."""
    sides = masked(resource, before), masked(resource, after)
    if resource != _SECRETS:
        return sides
    for place in (("data",), ("stringData",), ("metadata", "annotations")):
        was, now, shown = (_below(fields, place) for fields in (before, after, sides[1]))
        for name in was.keys() & now.keys():
            if was[name] != now[name] and shown.get(name) == HIDDEN:
                shown[name] = CHANGED
    return sides


def _below(fields: Any, place: tuple[str, ...]) -> dict[str, Any]:
    for name in place:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields if isinstance(fields, dict) else {}
