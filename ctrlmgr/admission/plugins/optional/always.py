"""AlwaysAdmit and AlwaysDeny: admit or refuse every write, for testing a configuration.

Rules come from Kubernetes' `plugin/pkg/admission/{admit,deny}/admission.go`, which calls both deprecated.
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
        """Return False, because the plugin checks no writes."""
        return False


class AlwaysDeny(Plugin):
    """Refuses every write."""

    name: ClassVar[str] = "AlwaysDeny"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return True for all writes."""
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        """Return False, because the plugin needs no object."""
        return False

    def admit(self, attributes: Attributes) -> None:
        """Raise `Forbidden`."""
        raise attributes.forbidden("admission control is denying all modifications")

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden`."""
        raise attributes.forbidden("admission control is denying all modifications")
