"""Reads and sets the replicas of custom objects, at the paths that the CustomResourceDefinition contains.

Source: apiextensions-apiserver `pkg/registry/customresource/etcd.go` (`scaleFromCustomResource`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.kind import Replicas
from ctrlmgr.errors import UnknownError
from ctrlmgr.extensions.definition import Definition
from ctrlmgr.extensions.paths import nested
from ctrlmgr.extensions.scale_paths import Scale


class CustomScaling:
    """The way in which objects of one version are scaled."""

    def __init__(self, definition: Definition, scale: Scale) -> None:
        """Create an instance with the paths of one version, and with those of the kind's other versions."""
        self._spec, self._status = nested.split(scale.spec_replicas), nested.split(scale.status_replicas)
        self._selector = nested.split(scale.label_selector) if scale.label_selector else None
        self.paths: Mapping[str, Sequence[str]] = {
            f"{definition.group}/{each.name}": nested.split(each.scale.spec_replicas) if each.scale is not None else ()
            for each in definition.versions.values()
        }

    def read(self, obj: Unstructured) -> Replicas:
        """Return the values at the paths of replicas, status and selector."""
        try:
            expected = None if nested.get(obj, self._spec) is nested.ABSENT else nested.get_int(obj, self._spec)
            selector = nested.get_string(obj, self._selector) if self._selector is not None else ""
            return Replicas(expected, nested.get_int(obj, self._status), selector)
        except ValueError as error:
            raise UnknownError(str(error)) from error

    def write(self, obj: Unstructured, replicas: int) -> None:
        """Set the number of replicas; validation checks the number later."""
        try:
            nested.set_value(obj, self._spec, replicas)
        except ValueError as error:
            raise UnknownError(str(error)) from error
