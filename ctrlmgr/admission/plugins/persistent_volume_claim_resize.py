"""PersistentVolumeClaimResize: allows an increase of a claim's storage only if its StorageClass allows expansion.

Rules come from Kubernetes' `plugin/pkg/admission/storage/persistentvolume/resize/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.plugins.default_storage_class import ANNOTATION, CLAIMS, STORAGE_CLASSES
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb

_CANNOT_GROW = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


class PersistentVolumeClaimResize(Plugin):
    """Checks the StorageClass of claims whose requested storage increases."""

    name: ClassVar[str] = "PersistentVolumeClaimResize"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: updates of PersistentVolumeClaims."""
        return resource == CLAIMS and not subresource and operation is Verb.UPDATE

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the request of a bound claim increases and its StorageClass does not allow expansion."""
        new, old = attributes.fields, attributes.old or {}
        if _size(new) <= _size(old) or (old.get("status") or {}).get("phase") != "Bound":
            return
        name, before = _class_of(new), _class_of(old)
        found = attributes.view.get(STORAGE_CLASSES, Key("", name)) if name and name == before else None
        if found is None or not found.to_dict().get("allowVolumeExpansion"):
            raise attributes.forbidden(_CANNOT_GROW)


def _size(claim: Mapping[str, Any]) -> int:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return parse(requests.get("storage") or "0")


def _class_of(claim: Unstructured) -> str:
    annotated: str | None = (claim["metadata"].get("annotations") or {}).get(ANNOTATION)
    return annotated if annotated is not None else (claim.get("spec") or {}).get("storageClassName") or ""
