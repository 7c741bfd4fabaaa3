"""The scale subresource of a custom kind: the paths of its values, and their validation.

Source: apiextensions-apiserver `pkg/registry/customresource/{validator,etcd}.go`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, invalid
from ctrlmgr.extensions.paths import nested
from ctrlmgr.extensions.structural import Raw

_MOST_REPLICAS = 2**31 - 1


class Scale(NamedTuple):
    """The paths of the scale subresource, as the CustomResourceDefinition contains them, such as `.spec.replicas`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None

    @classmethod
    def of(cls, raw: Raw) -> Scale:
        """Parse the field `subresources.scale` of a version of a CustomResourceDefinition."""
        return cls(raw.get("specReplicasPath") or "", raw.get("statusReplicasPath") or "", raw.get("labelSelectorPath"))


def validate_spec(value: Any, scale: Scale) -> list[FieldError]:
    """Return the errors of the desired number of replicas in an object."""
    return _validate_replicas(value, scale.spec_replicas)


def validate_status(value: Any, scale: Scale) -> list[FieldError]:
    """Return the errors of the actual number of replicas and of the selector in an object."""
    errors = _validate_replicas(value, scale.status_replicas)
    if scale.label_selector is not None:
        try:
            nested.get_string(value, nested.split(scale.label_selector))
        except ValueError as error:
            errors.append(invalid(scale.label_selector, "", str(error)))
    return errors


def _validate_replicas(value: Any, path: str) -> list[FieldError]:
    try:
        replicas = nested.get_int(value, nested.split(path))
    except ValueError as error:
        return [invalid(path, 0, str(error))]
    if replicas < 0:
        return [invalid(path, replicas, "should be a non-negative integer")]
    if replicas > _MOST_REPLICAS:
        return [invalid(path, replicas, f"should be less than or equal to {_MOST_REPLICAS}")]
    return []
