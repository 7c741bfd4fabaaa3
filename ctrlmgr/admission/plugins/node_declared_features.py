"""NodeDeclaredFeatureValidator: refuses a change of a running pod if the pod's node does not support the change.

Guarantees: a pod without a node may be changed without restriction. The plugin infers the features that an update
requires, with the rules of Kubernetes 1.36. Kubelets declare the features that they support by name in
`status.declaredFeatures`.

Rules come from Kubernetes' `plugin/pkg/admission/nodedeclaredfeatures` and `component-helpers/nodedeclaredfeatures`.
The scheduler checks the features that affect only the placement of new pods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.api.unstructured import generation_of
from ctrlmgr.engine.admission_attributes import Attributes, Verb

Pod = Mapping[str, Any]


class NodeDeclaredFeatureValidator(Plugin):
    """Refuses changes of pods that their nodes do not support."""

    name: ClassVar[str] = "NodeDeclaredFeatureValidator"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: updates and resizes of pods."""
        return resource == PODS and subresource in ("", "resize") and operation is Verb.UPDATE

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the pod's node has not declared a required feature."""
        new, old = attributes.fields, attributes.old or {}
        node = (new.get("spec") or {}).get("nodeName")
        if not node or generation_of(new) == generation_of(old):
            return
        needed = [feature for feature, is_needed in FEATURES.items() if is_needed(old, new)]
        if not needed:
            return
        found = attributes.view.get(NODES, Key("", node))
        if found is None:
            raise attributes.forbidden(f'node "{node}" not found')
        declared = (found.to_dict().get("status") or {}).get("declaredFeatures") or ()
        if lacking := [feature for feature in needed if feature not in declared]:
            words = f"pod update requires features {', '.join(lacking)} which are not available on node"
            raise attributes.forbidden(f'{words} "{node}"')


def _resizes_pod(old: Pod, new: Pod) -> bool:
    """Return whether an update changes the pod-level resources."""
    before, after = ((pod.get("spec") or {}).get("resources") for pod in (old, new))
    if before is None and after is None:
        return False
    return before is None or after is None or _amounts(before) != _amounts(after)


def _resizes_init_containers(old: Pod, new: Pod) -> bool:
    """Return whether an update changes the resources of an init container, excluding sidecars."""
    pairs = zip(*((pod.get("spec") or {}).get("initContainers") or () for pod in (old, new)), strict=True)
    return any(
        before.get("restartPolicy") != "Always"
        and _amounts(before.get("resources") or {}) != _amounts(after.get("resources") or {})
        for before, after in pairs
    )


def _amounts(resources: Mapping[str, Any]) -> Any:
    """Return resource amounts as numbers, so that equal amounts in different notations are equal."""
    return [
        {name: parse(amount) for name, amount in (resources.get(field) or {}).items()}
        for field in ("limits", "requests")
    ]


FEATURES: Final[Mapping[str, Callable[[Pod, Pod], bool]]] = {
    "InPlacePodLevelResourcesVerticalScaling": _resizes_pod,
    "InPlacePodVerticalScalingInitContainers": _resizes_init_containers,
}
"""For each feature, the function that says whether an update from the old to the new pod needs it.

The features are sorted by name, as in Kubernetes' error messages.
"""
