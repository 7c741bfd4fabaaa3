"""DenyServiceExternalIPs: refuses Services with new external IP addresses.

Rules come from Kubernetes' `plugin/pkg/admission/network/denyserviceexternalips/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import SERVICES, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb


class DenyServiceExternalIPs(Plugin):
    """Refuses external addresses that the Service did not have before."""

    name: ClassVar[str] = "DenyServiceExternalIPs"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of Services."""
        return resource == SERVICES and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the Service has new external addresses."""
        if not _addresses(attributes.fields) <= _addresses(attributes.old or {}):
            raise attributes.forbidden("Use of external IPs is denied by admission control")


def _addresses(service: Mapping[str, Any]) -> set[str]:
    return set((service.get("spec") or {}).get("externalIPs") or ())
