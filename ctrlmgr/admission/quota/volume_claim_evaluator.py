"""Measures PersistentVolumeClaims: counts claims and sums their storage, in total and for each StorageClass.

Rules come from Kubernetes' `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ctrlmgr.admission.quota.evaluator import Evaluator, Fields, Requirement
from ctrlmgr.admission.quota.quota_amounts import Amounts
from ctrlmgr.api.quantity import WHOLE, parse, rounded_up
from ctrlmgr.engine.admission_attributes import Attributes, Verb

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named a claim's StorageClass before the field `storageClassName` existed."""

_COUNT = "count/persistentvolumeclaims"
_CLAIMS = "persistentvolumeclaims"
_STORAGE = "requests.storage"
_OF_CLASS = ".storageclass.storage.k8s.io/"


class ClaimEvaluator(Evaluator):
    """Measures PersistentVolumeClaims; an update can increase the usage of an existing claim."""

    def handles(self, subresource: str, operation: Verb) -> bool:
        """Return whether writes of this kind may increase the usage: creations, updates and status updates of claims.

        A status update of a claim contains the allocated storage.
        """
        if subresource == "status":
            return operation is Verb.UPDATE
        return operation in (Verb.CREATE, Verb.UPDATE) and not subresource

    def concerns(self, attributes: Attributes) -> bool:
        """Return whether a status update changes the usage of a claim."""
        if attributes.subresource != "status":
            return True
        old, new = attributes.old or {}, attributes.object or {}
        return changes_usage(old, new)

    def names(self, given: Collection[str]) -> list[str]:
        """Return the given resource names that claims use."""
        by_class = tuple(_OF_CLASS + each for each in (_CLAIMS, _STORAGE))
        return [name for name in given if name in (_COUNT, _CLAIMS, _STORAGE) or name.endswith(by_class)]

    def usage(self, fields: Fields, now: str) -> Amounts:
        """Return the amounts that a PersistentVolumeClaim uses."""
        used = {_CLAIMS: "1", _COUNT: "1"}
        storage, class_ = _storage(fields), _class(fields)
        if storage is not None:
            used[_STORAGE] = storage
        if class_:
            used |= {f"{class_}{_OF_CLASS}{name}": used[name] for name in (_CLAIMS, _STORAGE) if name in used}
        return used

    def in_scope(self, requirement: Requirement, fields: Fields) -> bool:
        """Return whether a claim uses one of the VolumeAttributesClasses that the scope selects."""
        return requirement.scope == "VolumeAttributesClass" and requirement.selects(attributes_classes(fields))

    def knows_scopes(self) -> bool:
        """Return True, because the plugin's configuration may limit claims by scope."""
        return True


def changes_usage(old: Fields, new: Fields) -> bool:
    """Return whether a status update may change a claim's usage or scopes."""
    allocated = [_allocated(each) for each in (old, new)]
    return allocated[0] != allocated[1] or attributes_classes(old) != attributes_classes(new)


def attributes_classes(fields: Fields) -> set[str]:
    """Return the names of the VolumeAttributesClasses that a claim has, had or requests."""
    status = fields.get("status") or {}
    named = (
        (fields.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in named if name}


def _class(fields: Fields) -> str:
    annotations: Mapping[str, Any] = (fields.get("metadata") or {}).get("annotations") or {}
    if CLASS_ANNOTATION in annotations:
        return str(annotations[CLASS_ANNOTATION])
    return (fields.get("spec") or {}).get("storageClassName") or ""


def _allocated(fields: Fields) -> str | None:
    return ((fields.get("status") or {}).get("allocatedResources") or {}).get("storage")


def _storage(fields: Fields) -> str | None:
    """Return the requested storage of a claim in whole bytes, or the allocated storage if that is larger."""
    storage = (((fields.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    allocated = _allocated(fields)
    if storage is not None and allocated is not None and parse(allocated) > parse(storage):
        storage = allocated
    return None if storage is None else rounded_up(storage, WHOLE)
