"""AlwaysPullImages: makes kubelets pull the image for each container start, so only users with access can run it.

Rules come from Kubernetes' `plugin/pkg/admission/alwayspullimages/admission.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb

GROUPS: Final = ("initContainers", "containers", "ephemeralContainers")
"""The fields of a pod's spec that contain containers, in the order in which they are checked."""


class AlwaysPullImages(Plugin):
    """Sets the pull policy of containers and of image volumes to Always."""

    name: ClassVar[str] = "AlwaysPullImages"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of pods."""
        return resource == PODS and not subresource and operation in (Verb.CREATE, Verb.UPDATE)

    def admit(self, attributes: Attributes) -> None:
        """Set the pull policies to Always."""
        spec = attributes.fields.get("spec") or {}
        if _has_no_new_image(attributes):
            return
        for _, container in _containers(spec):
            if container.get("imagePullPolicy") != "Always":
                container["imagePullPolicy"] = "Always"
                attributes.changed(self.name)
        for volume in spec.get("volumes") or ():
            image = volume.get("image")
            if image is not None and image.get("pullPolicy") != "Always":
                volume["image"] = {**image, "pullPolicy": "Always"}
                attributes.changed(self.name)

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if a pull policy is not Always.

        A plugin or webhook after this plugin may have changed the pull policy that `admit` has set.
        """
        if _has_no_new_image(attributes):
            return
        for path, container in _containers(attributes.fields.get("spec") or {}):
            policy = container.get("imagePullPolicy") or ""
            if policy != "Always":
                problem = f'Unsupported value: "{policy}": supported values: "Always"'
                raise attributes.forbidden(f"{path}.imagePullPolicy: {problem}")


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for group in GROUPS:
        for index, container in enumerate(spec.get(group) or ()):
            yield f"spec.{group}[{index}]", container


def _has_no_new_image(attributes: Attributes) -> bool:
    """Return whether the updated pod has only images that the old pod had."""
    if attributes.old is None:
        return False
    before, after = (
        {container.get("image") for _, container in _containers(each.get("spec") or {})}
        for each in (attributes.old, attributes.fields)
    )
    return after <= before
