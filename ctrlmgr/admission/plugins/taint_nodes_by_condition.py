"""TaintNodesByCondition: taints new nodes, so that no pods are scheduled to a new node before it is ready.

Rules come from Kubernetes' `plugin/pkg/admission/nodetaint/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

NODES = Resource("", "nodes")
NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class TaintNodesByCondition(Plugin):
    """Adds the not-ready taint to new nodes; the node lifecycle controller removes the taint."""

    name: ClassVar[str] = "TaintNodesByCondition"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of Nodes."""
        return resource == NODES and not subresource and operation is Verb.CREATE

    def admit(self, attributes: Attributes) -> None:
        """Add the not-ready taint unless the node already has it."""
        spec = attributes.fields.get("spec") or {}
        taints = spec.get("taints") or []
        if not any((each.get("key"), each.get("effect")) == tuple(NOT_READY.values()) for each in taints):
            attributes.fields["spec"] = {**spec, "taints": [*taints, dict(NOT_READY)]}
            attributes.changed(self.name)
