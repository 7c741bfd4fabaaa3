"""PodGroupProtection: adds the finalizer that protects PodGroups while pods belong to them.

The PodGroup protection controller removes the finalizer.

Rules come from Kubernetes' `plugin/pkg/admission/scheduling/podgroupprotection/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.features.gates import is_on

POD_GROUPS: Final = Resource("scheduling.k8s.io", "podgroups")
FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Plugin):
    """Adds the finalizer to new PodGroups."""

    name: ClassVar[str] = "PodGroupProtection"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of PodGroups."""
        return resource == POD_GROUPS and not subresource and operation is Verb.CREATE and is_on("GenericWorkload")

    def admit(self, attributes: Attributes) -> None:
        """Add the finalizer to an object that does not have the finalizer."""
        metadata = attributes.fields["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
            attributes.changed(self.name)
