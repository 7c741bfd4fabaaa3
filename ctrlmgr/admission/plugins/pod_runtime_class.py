"""RuntimeClass: sets the overhead and scheduling of a pod from its RuntimeClass, and refuses contradicting values.

Rules come from Kubernetes' `plugin/pkg/admission/runtimeclass/admission.go` and `pkg/util/tolerations`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.tolerations import merged_tolerations
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import PODS, Key, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

RUNTIME_CLASSES = Resource("node.k8s.io", "runtimeclasses")

_MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass(Plugin):
    """Sets the overhead, the node selector and the tolerations of new pods."""

    name: ClassVar[str] = "RuntimeClass"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of pods."""
        return resource == PODS and not subresource and operation is Verb.CREATE

    def needs(self, subresource: str) -> Sequence[str]:
        """Return the fields that activate the plugin: the name of a RuntimeClass, and the overhead.

        Only a RuntimeClass may set the overhead of a pod.
        """
        return ("runtimeClassName", "overhead")

    def admit(self, attributes: Attributes) -> None:
        """Set the fields that the RuntimeClass of a pod defines."""
        spec = attributes.fields.get("spec") or {}
        found = _class_of(attributes, spec)
        if found is None:
            return
        overhead = (found.get("overhead") or {}).get("podFixed")
        given_spec = dict(spec)
        if found.get("overhead") is not None:
            given = spec.get("overhead")
            if given is not None and not _is_same(given, overhead):
                raise attributes.forbidden(_MISMATCH)
            if overhead:
                spec["overhead"] = dict(overhead)
        if found.get("scheduling") is not None:
            _schedule(attributes, spec, found["scheduling"])
        if spec != given_spec:
            attributes.changed(self.name)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the pod's overhead differs from the overhead of its RuntimeClass."""
        spec = attributes.fields.get("spec") or {}
        found, given = _class_of(attributes, spec), spec.get("overhead")
        if found is not None and found.get("overhead") is not None:
            if not _is_same(given or {}, found["overhead"].get("podFixed")):
                raise attributes.forbidden(_MISMATCH)
        elif given is not None:
            raise attributes.forbidden(_WITHOUT_CLASS)


def _class_of(attributes: Attributes, spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    name = spec.get("runtimeClassName")
    if name is None:
        return None
    found = attributes.view.get(RUNTIME_CLASSES, Key("", name))
    if found is None:
        raise attributes.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
    return found.to_dict()


def _is_same(given: Mapping[str, str], defined: Mapping[str, str] | None) -> bool:
    amounts = [{name: parse(amount) for name, amount in (each or {}).items()} for each in (given, defined)]
    return amounts[0] == amounts[1]


def _schedule(attributes: Attributes, spec: dict[str, Any], scheduling: Mapping[str, Any]) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            conflict = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
            raise attributes.forbidden(f"conflict: {conflict}pod.spec.nodeSelector[{key}] = {selector[key]}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = merged_tolerations(spec.get("tolerations") or (), scheduling.get("tolerations") or ())
    if tolerations:
        spec["tolerations"] = tolerations
