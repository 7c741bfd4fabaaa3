"""What the page keeps to itself though it could read it: the values of Secrets, for a page is shown to others.

Guarantees: no value of `data` or `stringData` of a Secret is told, nor what an annotation repeats of it; that it was
changed is. kubectl and `ctrlmgr get` show what this hides to whoever may see it.
"""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.resource import Resource

HIDDEN = "(hidden)"
"""What stands for a value."""

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


def is_secret(resource: Resource, path: str) -> bool:
    """Whether what stands at a path of an object, such as `data.password`, is secret."""
    return resource == _SECRETS and (path.partition(".")[0] in _FIELDS or _REPEATED in path)
