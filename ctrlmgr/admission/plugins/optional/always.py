"""AlwaysAdmit and AlwaysDeny: one plugin admits every write, the other refuses every write; both are for tests.

Rules come from Kubernetes' `plugin/pkg/admission/{admit,deny}/admission.go`; Kubernetes has deprecated both plugins.
"""

from __future__ import annotations

from typing import ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb


class AlwaysAdmit(Plugin):
    """Admits everything."""

    name: ClassVar[str] = "AlwaysAdmit"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: never, because AlwaysAdmit admits all writes."""
        return False


class AlwaysDeny(Plugin):
    """Refuses every write."""

    name: ClassVar[str] = "AlwaysDeny"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: always."""
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        """Return that the plugin does not need the object of the write."""
        return False

    def admit(self, attributes: Attributes) -> None:
        """Raise `Forbidden`."""
        raise attributes.forbidden("admission control is denying all modifications")

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden`."""
        raise attributes.forbidden("admission control is denying all modifications")
