"""DefaultStorageClass: sets the default class of new PersistentVolumeClaims that name no class.

Rules come from Kubernetes' `plugin/pkg/admission/storage/storageclass/setdefault/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.default_class import default_class
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

CLAIMS: Final = Resource("", "persistentvolumeclaims")
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that named a claim's StorageClass before the field `storageClassName` existed."""
_IS_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


class DefaultStorageClass(Plugin):
    """Sets the class of new PersistentVolumeClaims that name no class."""

    name: ClassVar[str] = "DefaultStorageClass"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of PersistentVolumeClaims."""
        return resource == CLAIMS and not subresource and operation is Verb.CREATE

    def admit(self, attributes: Attributes) -> None:
        """Set `storageClassName` if the claim names no class and a default class exists."""
        claim = attributes.fields
        spec = claim.setdefault("spec", {})
        if spec.get("storageClassName") is None and ANNOTATION not in (claim["metadata"].get("annotations") or {}):
            found = default_class(attributes.view, STORAGE_CLASSES, *_IS_DEFAULT)
            if found is not None:
                spec["storageClassName"] = found
                attributes.changed(self.name)
