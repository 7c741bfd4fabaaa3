"""Decides how the FlowSchemas and priority levels that every cluster has are created, corrected and deleted.

Guarantees:
- A missing object is created, both if it is mandatory and if it is suggested.
- The spec of a mandatory object is always corrected. Users can configure only two of its fields: the number of seats of
  the level `exempt`, and its number of seats to lend.
- The spec of a suggested object is corrected if its annotation `apf.kubernetes.io/autoupdate-spec` has the value true.
  If a suggested object lacks the annotation, the annotation is added, and the spec is corrected if no user has changed
  it.
- An object with the annotation `apf.kubernetes.io/autoupdate-spec` is deleted if Kubernetes no longer defines it.

Source: Kubernetes `pkg/registry/flowcontrol/ensurer`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.kinds.flowcontrol.mandatory_configuration import EXEMPT, FLOW_SCHEMAS
from ctrlmgr.kinds.flowcontrol.suggested_configuration import (
    AUTO_UPDATE,
    BOOTSTRAP_LEVELS,
    BOOTSTRAP_SCHEMAS,
    bootstrap_object,
)

FLOW_SCHEMA: Final = "FlowSchema"
LEVEL: Final = "PriorityLevelConfiguration"
_BOOTSTRAP: Final = {LEVEL: BOOTSTRAP_LEVELS, FLOW_SCHEMA: BOOTSTRAP_SCHEMAS}

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class EnsuredObjects(NamedTuple):
    """The writes that bring the objects of one kind to their desired state."""

    create: Sequence[Object]
    update: Sequence[Object]
    delete: Sequence[Object]


def ensured_objects(kind: str, current: Mapping[str, Object]) -> EnsuredObjects:
    """Return the writes for one kind (`FLOW_SCHEMA` or `LEVEL`).

    `current` contains the objects of this kind, by name.
    """
    desired = _BOOTSTRAP[kind]
    create = [Object.from_dict(bootstrap_object(kind, name, desired[name])) for name in desired if name not in current]
    revised = ((current[name], revise(current[name], desired[name])) for name in desired if name in current)
    update = [Object.from_dict(fields).at(obj.revision) for obj, fields in revised if fields is not None]
    return EnsuredObjects(
        create, update, [obj for name, obj in current.items() if name not in desired and _is_obsolete(obj)]
    )


def revise(obj: Object, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an object with its annotation and spec corrected; None if both are correct."""
    fields = obj.to_dict()
    corrects = obj.name in FLOW_SCHEMAS or _may_correct(fields["metadata"])
    annotated = _says(fields["metadata"]) is corrects
    is_right = not corrects or _is_alike(obj.name, fields.get("spec") or {}, spec)
    if annotated and is_right:
        return None
    if not is_right:
        fields["spec"] = dict(spec)
    if not annotated:
        kept = fields["metadata"].get("annotations") or {}
        fields["metadata"] |= {"annotations": {**kept, AUTO_UPDATE: "true" if corrects else "false"}}
    return fields


def _says(metadata: Mapping[str, Any]) -> bool | None:
    """Return the value of the annotation that marks automatic updates.

    The result is None if the annotation is missing, or is not a boolean that Go's `strconv.ParseBool` accepts.
    """
    value = (metadata.get("annotations") or {}).get(AUTO_UPDATE)
    return None if value not in _TRUE | _FALSE else value in _TRUE


def _may_correct(metadata: Mapping[str, Any]) -> bool:
    annotation = _says(metadata)
    return metadata.get("generation") == 1 if annotation is None else annotation


def _is_alike(name: str, actual: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Return whether the spec of an object equals the desired spec.

    The number of seats of the level `exempt` is not compared.
    """
    if name == EXEMPT and "exempt" in desired:
        return set(actual) == set(desired) and actual["type"] == desired["type"]
    return actual == desired


def _is_obsolete(obj: Object) -> bool:
    return _says(obj.to_dict()["metadata"]) is True
