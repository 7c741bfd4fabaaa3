"""PodNodeSelector: restricts the pods of a namespace to the nodes that the namespace selects.

Guarantees: a pod keeps its own node selector. The plugin refuses a pod whose selector contradicts the node selector of
the namespace, or is not allowed by the configuration for the namespace.

Rules come from Kubernetes' `plugin/pkg/admission/podnodeselector/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import NAMESPACES, PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.errors import UnknownError
from ctrlmgr.settings.configuration_files import Document

ANNOTATION: Final = "scheduler.alpha.kubernetes.io/node-selector"
_DEFAULT: Final = "clusterDefaultNodeSelector"


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    selectors: dict[str, str] = msgspec.field(name="podNodeSelectorPluginConfig")


class PodNodeSelector(Plugin):
    """Adds the node selector of a namespace to the namespace's pods."""

    name: ClassVar[str] = "PodNodeSelector"

    def __init__(self, document: Document | None = None) -> None:
        """Read the node selectors from `document`: a default for all namespaces, and selectors for single namespaces.

        Raises `SettingsError`.
        """
        read = document.converted(document.value, _Configuration).selectors if document is not None else {}
        self._selectors: dict[str, Mapping[str, str]] = {}
        for namespace, text in read.items():
            try:
                self._selectors[namespace] = _parse(text)
            except ValueError as problem:
                assert document is not None  # without a document, the plugin has no selectors
                raise document.refuse(str(problem), "podNodeSelectorPluginConfig", namespace) from problem

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of pods."""
        return resource == PODS and not subresource and operation is Verb.CREATE

    def admit(self, attributes: Attributes) -> None:
        """Add the node selector of the namespace to the pod."""
        selector = self._agreeing(attributes)
        if selector:
            spec = attributes.fields["spec"]
            given = spec.get("nodeSelector") or {}
            spec["nodeSelector"] = {**selector, **given}
            if spec["nodeSelector"] != given:
                attributes.changed(self.name)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the pod's node selector is not allowed in the namespace."""
        self._agreeing(attributes)
        allowed = self._selectors.get(attributes.namespace)
        given = (attributes.fields.get("spec") or {}).get("nodeSelector") or {}
        if allowed and any(allowed.get(key) != value for key, value in given.items()):
            raise attributes.forbidden("pod node label selector labels conflict with its namespace whitelist")

    def _agreeing(self, attributes: Attributes) -> Mapping[str, str]:
        """Return the node selector of the namespace; raises `Forbidden` if the pod's selector contradicts it."""
        selector = self._of_namespace(attributes)
        given = (attributes.fields.get("spec") or {}).get("nodeSelector") or {}
        if any(given.get(key, value) != value for key, value in selector.items()):
            raise attributes.forbidden("pod node label selector conflicts with its namespace node label selector")
        return selector

    def _of_namespace(self, attributes: Attributes) -> Mapping[str, str]:
        namespace = attributes.home
        if namespace is None:
            raise not_found(NAMESPACES, attributes.namespace)
        text = namespace.annotations.get(ANNOTATION)
        if text is None:
            return self._selectors.get(_DEFAULT, {})
        try:
            return _parse(text)
        except ValueError as problem:
            raise UnknownError(str(problem)) from problem


def _parse(text: str) -> dict[str, str]:
    """Parse `a=b,c=d` into a dict (apimachinery `ConvertSelectorToLabelsMap`)."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise ValueError(f"invalid selector: [{text}]")
        found[key.strip()] = value.strip()
    return found
