"""When an entry of metadata.managedFields says that its manager wrote last: not for having changed nothing.

Source: apiserver `pkg/endpoints/handlers/fieldmanager/equality.go`, which the store calls before it validates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.unstructured import Unstructured


def keep_timestamps(live: Unstructured, new: Unstructured) -> Unstructured:
    """Return `new` with the timestamps of `live` if these would be its only change, so that nothing is written.

    Both are as they are stored, after defaults and strategies: only then it shows that what was merged made no
    difference. Who became a manager of what was there already is kept; metadata.resourceVersion is not looked at.
    """
    before, after = _entries(live), _entries(new)
    if not after or before == after or len(before) != len(after):
        return new
    if any(_without(one, "time") != _without(other, "time") for one, other in zip(before, after, strict=True)):
        return new
    if _rest(live) != _rest(new):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


def _entries(fields: Unstructured) -> list[Unstructured]:
    return (fields.get("metadata") or {}).get("managedFields") or []


def _rest(fields: Unstructured) -> Unstructured:
    return {**fields, "metadata": _without(fields.get("metadata") or {}, "managedFields", "resourceVersion")}


def _without(fields: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
