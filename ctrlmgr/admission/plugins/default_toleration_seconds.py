"""DefaultTolerationSeconds: adds tolerations for a short failure of the node to pods that do not set these themselves.

Rules come from Kubernetes' `plugin/pkg/admission/defaulttolerationseconds/admission.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


class DefaultTolerationSeconds(Plugin):
    """Adds tolerations for the taints of not-ready and unreachable nodes."""

    name: ClassVar[str] = "DefaultTolerationSeconds"

    def __init__(self, not_ready: int = 300, unreachable: int = 300) -> None:
        """Set the number of seconds for which pods tolerate not-ready nodes, and the number for unreachable nodes."""
        self._added: Sequence[Mapping[str, Any]] = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in ((NOT_READY, not_ready), (UNREACHABLE, unreachable))
        ]

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of pods."""
        return resource == PODS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def admit(self, attributes: Attributes) -> None:
        """Add the plugin's tolerations, except tolerations that the pod already has."""
        spec = attributes.fields.setdefault("spec", {})
        given, missing = spec.get("tolerations") or (), self._added
        if given:
            tolerated = _tolerated(given)
            missing = [] if "" in tolerated else [each for each in missing if each["key"] not in tolerated]
        if missing:
            attributes.changed(self.name)
            spec["tolerations"] = [*given, *map(dict, missing)]


def _tolerated(tolerations: Sequence[Mapping[str, Any]]) -> Collection[str]:
    """Return the keys of the taints that the pod tolerates; "" stands for all taints."""
    return {each.get("key") or "" for each in tolerations if (each.get("effect") or "NoExecute") == "NoExecute"}
