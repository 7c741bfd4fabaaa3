"""Keeps the time of a metadata.managedFields entry if the write of the entry's manager changed nothing.

Source: apiserver `pkg/endpoints/handlers/fieldmanager/equality.go`, which the store calls before it validates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.unstructured import Unstructured


def keep_timestamps(live: Unstructured, new: Unstructured) -> Unstructured:
    """Return `new`.

    If `new` differs from `live` only in timestamps of managedFields, return `new` with the timestamps of `live`. If
    only the timestamps of managedFields differ, nothing is written. Both `new` and `live` must be in their stored form,
    after defaults and strategies. Only in this form, equal objects prove that the merge changed nothing. New managers
    of existing fields are kept. metadata.resourceVersion is ignored.
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
