"""Two small plugins for pods: LimitPodHardAntiAffinityTopology and ExtendedResourceToleration.

Rules come from Kubernetes' `plugin/pkg/admission/{antiaffinity,extendedresourcetoleration}/admission.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.validation.quantities import is_extended

_HOST = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    """Allows required pod anti-affinity only if its topology is a single node, not a zone."""

    name: ClassVar[str] = "LimitPodHardAntiAffinityTopology"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of pods."""
        return resource == PODS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if a required anti-affinity term has another topology key than `kubernetes.io/hostname`."""
        affinity = (attributes.fields.get("spec") or {}).get("affinity") or {}
        terms = (affinity.get("podAntiAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for term in terms:
            if (key := term.get("topologyKey") or "") != _HOST:
                what = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key}"
                raise attributes.forbidden(f"{what} but only key {_HOST} is allowed")


class ExtendedResourceToleration(Plugin):
    """Adds tolerations for the taints of extended resources that a pod requests (for example devices)."""

    name: ClassVar[str] = "ExtendedResourceToleration"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of pods."""
        return resource == PODS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def admit(self, attributes: Attributes) -> None:
        """Add the plugin's tolerations, except tolerations that the pod already has."""
        spec = attributes.fields.get("spec") or {}
        tolerations = list(spec.get("tolerations") or ())
        for name in sorted(set(_devices(spec))):
            required = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            if not any(_is_same(each, required) for each in tolerations):
                tolerations.append(required)
                attributes.changed(self.name)
        if tolerations:
            spec["tolerations"] = tolerations


def _devices(spec: Mapping[str, Any]) -> Iterator[str]:
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            requests = (container.get("resources") or {}).get("requests") or {}
            yield from (name for name in requests if is_extended(name))


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all((one.get(field) or "") == (other.get(field) or "") for field in ("key", "operator", "effect", "value"))
