"""Hides the values of Secrets in the web page and in descriptions of changes.

Values are hidden because users show pages, histories and differences to other people, and terminals keep them.
Guarantees: no value of `data` or `stringData` of a Secret is shown, and no copy of a value in an annotation. Only the
fact that a value changed is shown. `kubectl` and `ctrlmgr get` show the values of Secrets to authorized users.
"""

from __future__ import annotations

import re
from typing import Any

from ctrlmgr.api.resource import Resource

HIDDEN = "(hidden)"
"""The text that is shown instead of a secret value."""

CHANGED = "(hidden, changed)"
"""The text that replaces a secret value in one of two compared states, if the values in the two states differ.

Pages show `CHANGED` as `HIDDEN`.
"""

_SECRETS = Resource("", "secrets")
_FIELDS = ("data", "stringData")
_SECRET_PATH = re.compile(r"(string[dD]|d)ata\b")
_REPEATED = "kubectl.kubernetes.io/last-applied-configuration"


def masked(resource: Resource, fields: Any) -> Any:
    """Return a copy of an object's fields without secret values."""
    if resource != _SECRETS or not isinstance(fields, dict):
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
    """Return two states of an object without secret values.

    A value that differs is `CHANGED` in one of the states.
    """
    sides = masked(resource, before), masked(resource, after)
    if resource != _SECRETS:
        return sides
    for place in (("data",), ("stringData",), ("metadata", "annotations")):
        was, now, shown = (_below(fields, place) for fields in (before, after, sides[1]))
        for name in was.keys() & now.keys():
            if was[name] != now[name] and shown.get(name) == HIDDEN:
                shown[name] = CHANGED
    return sides


def is_secret(resource: Resource, path: str) -> bool:
    """Return whether the field at a path, in the form that differences use, contains secret values."""
    return resource == _SECRETS and (_SECRET_PATH.match(path) is not None or _REPEATED in path.replace("\\", ""))


def _below(fields: Any, place: tuple[str, ...]) -> dict[str, Any]:
    for name in place:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields if isinstance(fields, dict) else {}
