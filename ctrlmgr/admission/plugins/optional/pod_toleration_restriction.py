"""PodTolerationRestriction: adds default tolerations to a namespace's pods, and restricts the allowed tolerations.

Rules come from Kubernetes' `plugin/pkg/admission/podtolerationrestriction/admission.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.tolerations import are_allowed, merged_tolerations
from ctrlmgr.api.resource import NAMESPACES, PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.errors import UnknownError
from ctrlmgr.kinds.core.pod.pod_resources import quality_of_service
from ctrlmgr.settings.configuration_files import Document

DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_VERSIONS: Final = ("podtolerationrestriction.admission.k8s.io/v1alpha1",)
_MEMORY_PRESSURE: Final = {
    "key": "node.kubernetes.io/memory-pressure",
    "operator": "Exists",
    "effect": "NoSchedule",
}
"""The toleration that the plugin adds to every pod whose quality of service class is not BestEffort."""


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    default: list[dict[str, Any]] = []
    whitelist: list[dict[str, Any]] = []


class PodTolerationRestriction(Plugin):
    """Adds a namespace's tolerations to its pods, and refuses tolerations that the namespace does not allow."""

    name: ClassVar[str] = "PodTolerationRestriction"

    def __init__(self, document: Document | None = None) -> None:
        """Read the defaults for namespaces without annotations from `document`.

        Raises `SettingsError` if `document` is invalid.
        """
        self._configuration = (
            document.read("Configuration", _VERSIONS, _Configuration) if document is not None else _Configuration()
        )

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of pods."""
        return resource == PODS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def admit(self, attributes: Attributes) -> None:
        """Add the namespace's tolerations to a new pod; then check the pod's tolerations."""
        spec = attributes.fields["spec"]
        more: list[Mapping[str, Any]] = []
        if attributes.operation is Verb.CREATE:
            given = _of_namespace(attributes, DEFAULTS)
            more += self._configuration.default if given is None else given
        if quality_of_service(spec) != "BestEffort":
            more.append(_MEMORY_PRESSURE)
        if more:
            given = spec.get("tolerations") or []
            spec["tolerations"] = merged_tolerations(given, more)
            if spec["tolerations"] != given:
                attributes.changed(self.name)
        self.validate(attributes)

    def validate(self, attributes: Attributes) -> None:
        """Raise an error if the namespace does not allow the pod's tolerations."""
        tolerations = (attributes.fields.get("spec") or {}).get("tolerations") or ()
        if not tolerations:
            return
        allowed = _of_namespace(attributes, ALLOWED)
        if not are_allowed(tolerations, self._configuration.whitelist if allowed is None else allowed):
            words = "pod tolerations (possibly merged with namespace default tolerations)"
            raise UnknownError(f"{words} conflict with its namespace whitelist")


def _of_namespace(attributes: Attributes, annotation: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the tolerations in an annotation of the namespace; None if the annotation is missing."""
    namespace = attributes.home
    if namespace is None:
        raise not_found(NAMESPACES, attributes.namespace)
    text = namespace.annotations.get(annotation)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]]) if text else []
    except msgspec.MsgspecError as problem:
        raise UnknownError(f"the annotation {annotation} of the namespace cannot be read: {problem}") from problem
