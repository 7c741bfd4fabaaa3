"""StorageObjectInUseProtection: adds finalizers that protect claims, volumes and VolumeAttributesClasses in use.

The protection controllers remove the finalizers.

Rules come from Kubernetes' `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

FINALIZERS: Final[Mapping[Resource, str]] = {
    Resource("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    Resource("", "persistentvolumes"): "kubernetes.io/pv-protection",
    Resource("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}
"""The finalizer that the plugin adds to new objects of each resource."""


class StorageObjectInUseProtection(Plugin):
    """Adds the finalizer to new claims, volumes and VolumeAttributesClasses."""

    name: ClassVar[str] = "StorageObjectInUseProtection"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of claims, volumes and VolumeAttributesClasses."""
        return resource in FINALIZERS and not subresource and operation is Verb.CREATE

    def admit(self, attributes: Attributes) -> None:
        """Add the finalizer to an object that does not have the finalizer."""
        metadata, finalizer = attributes.fields["metadata"], FINALIZERS[attributes.resource]
        finalizers = metadata.get("finalizers") or []
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]
            attributes.changed(self.name)
