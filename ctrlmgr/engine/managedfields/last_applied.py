"""Handles the annotation in which client-side `kubectl apply` stores the object that the user applied last.

Guarantees: if a user changes from client-side to server-side apply, fields that the annotation lists cause no
conflicts. Server-side apply updates the annotation, so the user can change back to client-side apply. The rules of this
module apply only to the manager `kubectl`. Source: apimachinery `managedfields/internal/lastappliedmanager.go`,
`lastappliedupdater.go`, `lastapplied.go`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields import field_set
from ctrlmgr.engine.managedfields.conflicts import Conflicts
from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.managedfields.merge_type import MergeType, MergeTypeError
from ctrlmgr.engine.managedfields.path_element import go_json

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS: Final = 256 * 1024
"""The maximum size of an object's annotations in bytes (`TotalAnnotationSizeLimitB`)."""


def remaining(conflicts: Conflicts, live: Unstructured, merge_type: MergeType, api_version: str) -> Conflicts | None:
    """Return the conflicts without those about fields in the annotation; None if no conflict remains."""
    theirs = _last_applied_set(live, merge_type, api_version)
    if theirs is None:
        return conflicts
    left = [conflict for conflict in conflicts.conflicts if not field_set.contains(theirs, conflict.path)]
    return Conflicts(left) if left else None


def _last_applied_set(live: Unstructured, merge_type: MergeType, api_version: str) -> FieldSet | None:
    """Return the fields that the last-applied annotation lists and that still have the applied value.

    The result is None if there is no valid annotation.
    """
    try:
        applied = msgspec.json.decode(_annotations(live).get(LAST_APPLIED) or "")
    except msgspec.DecodeError:
        return None
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version or any(merge_type.check(applied, "")):
        return None
    try:
        theirs = merge_type.owned(applied) or {}
        differences = merge_type.compare(applied, live)
    except MergeTypeError:
        return None
    for different in differences:
        theirs = field_set.difference(theirs, different or {})
    return theirs


def refreshed(fields: Unstructured, applied: Unstructured) -> Unstructured:
    """Return the object; if it has the annotation, the annotation of the returned object contains `applied`."""
    annotations = _annotations(fields)
    if not annotations.get(LAST_APPLIED):
        return fields
    text = go_json({**applied, "metadata": _without_annotation(applied.get("metadata") or {})}) + "\n"
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**fields, "metadata": {**fields["metadata"], "annotations": annotations}}


def _without_annotation(metadata: dict[str, Any]) -> dict[str, Any]:
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return {name: value for name, value in metadata.items() if name != "annotations"}
    return {**metadata, "annotations": {name: each for name, each in annotations.items() if name != LAST_APPLIED}}


def _annotations(fields: Unstructured) -> dict[str, str]:
    return (fields.get("metadata") or {}).get("annotations") or {}
