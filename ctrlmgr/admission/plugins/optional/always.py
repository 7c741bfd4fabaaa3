"""AlwaysAdmit and AlwaysDeny: what their names say, for tests of a set-up.

Rules come from Kubernetes' `plugin/pkg/admission/{admit,deny}/admission.go`, which calls both deprecated.
"""

from __future__ import annotations

from typing import ClassVar

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb


class AlwaysAdmit(Plugin):
    """Admits everything."""

    name: ClassVar[str] = "AlwaysAdmit"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at nothing: there is nothing to be said."""
        return False


class AlwaysDeny(Plugin):
    """Refuses everything that the plugins before it have let pass."""

    name: ClassVar[str] = "AlwaysDeny"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at everything."""
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        """Say that it needs no object for that."""
        return False

    def admit(self, attributes: Attributes) -> None:
        """Refuse."""
        raise attributes.forbidden("admission control is denying all modifications")

    def validate(self, attributes: Attributes) -> None:
        """Refuse."""
        raise attributes.forbidden("admission control is denying all modifications")
