"""PodTopologyLabels: copies the zone and region labels of a node to the pods that are bound to it.

Guarantees: a pod gets the labels that the node has when the scheduler binds the pod. Later changes of the node's labels
do not change the pod.

Rules come from Kubernetes' `plugin/pkg/admission/podtopologylabels/admission.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.strategy import View

NODES = Resource("", "nodes")
TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """Adds the zone and region labels to bindings, and to pods that are created with a node."""

    name: ClassVar[str] = "PodTopologyLabels"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of pods and bindings."""
        return resource == PODS and subresource in ("", "binding") and operation is Verb.CREATE

    def needs(self, subresource: str) -> Sequence[str]:
        """Return the fields that activate the plugin: `nodeName` for pods, and none for bindings.

        Bindings always activate the plugin.
        """
        return () if subresource else ("nodeName",)

    def admit(self, attributes: Attributes) -> None:
        """Set the zone and region labels; the labels of a binding are later copied to the pod."""
        if attributes.subresource:
            target = attributes.fields.get("target") or {}
            node = target.get("name") if target.get("kind") == "Node" else None
        else:
            node = _node_of(attributes)
        labels = topology_labels(attributes.view, node) if node else None
        if labels:
            metadata = attributes.fields["metadata"]
            given = metadata.get("labels") or {}
            metadata["labels"] = {**given, **labels}
            if metadata["labels"] != given:
                attributes.changed(self.name)


def _node_of(attributes: Attributes) -> str | None:
    """Return the name of the node that a pod or binding names."""
    node: str | None = (attributes.fields.get("spec") or {}).get("nodeName")
    return node


def topology_labels(view: View, node: str) -> dict[str, str]:
    """Return the zone and region labels that a node's pods get; empty if the node does not exist."""
    found = view.get(NODES, Key("", node))
    return {key: found.labels[key] for key in TOPOLOGY_LABELS if key in found.labels} if found else {}
