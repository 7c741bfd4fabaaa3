"""DefaultIngressClass: sets the default class of new Ingresses that name no class.

Rules come from Kubernetes' `plugin/pkg/admission/network/defaultingressclass/admission.go`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.default_class import default_class
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

INGRESSES: Final = Resource("networking.k8s.io", "ingresses")
INGRESS_CLASSES: Final = Resource("networking.k8s.io", "ingressclasses")
_IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"
_ANNOTATION = "kubernetes.io/ingress.class"


class DefaultIngressClass(Plugin):
    """Sets the class of new Ingresses that name no class."""

    name: ClassVar[str] = "DefaultIngressClass"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of Ingresses."""
        return resource == INGRESSES and not subresource and operation is Verb.CREATE

    def admit(self, attributes: Attributes) -> None:
        """Set `ingressClassName` if the Ingress names no class and a default class exists."""
        ingress = attributes.fields
        spec = ingress.setdefault("spec", {})
        if spec.get("ingressClassName") is None and _ANNOTATION not in (ingress["metadata"].get("annotations") or {}):
            found = default_class(attributes.view, INGRESS_CLASSES, _IS_DEFAULT)
            if found is not None:
                spec["ingressClassName"] = found
                attributes.changed(self.name)
