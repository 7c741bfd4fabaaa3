"""Converts the spec of a CustomResourceDefinition to Kubernetes' internal form.

Kubernetes converts a CustomResourceDefinition to its internal version before validation. If a part (the schema, the
subresources, the columns or the selectable fields) is equal in all versions, the internal form has this part once, in
the spec. Because of the internal form, validation errors have paths such as `spec.validation…`.

Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat
from typing import Any, NamedTuple

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.schema_validation.go_json_values import same
from ctrlmgr.extensions.structural import Raw

SPEC = Path("spec")


class Part(NamedTuple):
    """The parts of a CustomResourceDefinition that belong either to one version or to the whole spec."""

    place: int | None
    """The index of the version to which the parts belong; None for the spec."""
    version: str
    """The name of the version to which the parts belong; empty for the spec."""
    validation: Raw | None
    """The `schema` of a version of a CustomResourceDefinition; None if it is not set."""
    subresources: Raw | None
    columns: Sequence[Raw]
    selectable: Sequence[Raw]

    @property
    def path(self) -> Path:
        """The path of the version or of the spec, for validation errors."""
        return SPEC if self.place is None else SPEC.child("versions").at(self.place)


@dataclass(frozen=True)
class InternalSpec:
    """The spec of a CustomResourceDefinition, divided into parts of single versions and shared parts."""

    raw: Raw
    versions: Sequence[Raw]
    """The versions as the CustomResourceDefinition contains them."""
    top: Part
    """The parts of the spec that all versions share."""
    own: Sequence[Part]
    """The parts of each version that differ between versions."""

    def parts(self) -> Sequence[Part]:
        """Return the parts of all versions, followed by the parts that all versions share."""
        return (*self.own, self.top)

    def schemas(self) -> Sequence[Raw]:
        """Return the schemas of all versions, followed by the schema that all versions share."""
        found = [schema_of(part.validation) for part in (self.top, *self.own)]
        return [each for each in found if each is not None]

    def has_status(self, part: Part) -> bool:
        """Return whether custom objects have a status subresource.

        If `part` belongs to a version, the result is that of the version. If `part` belongs to the spec, the result is
        True if any version has the subresource.
        """
        if not part.version:
            return self._has_any_status
        return _has_status(part if self.has_own_subresources else self.top)

    @cached_property
    def _has_any_status(self) -> bool:
        return any(map(_has_status, self.parts()))

    @cached_property
    def has_own_subresources(self) -> bool:
        """Return whether versions declare subresources that are not shared by all versions."""
        return any(each.subresources is not None for each in self.own)


def _has_status(part: Part) -> bool:
    return (part.subresources or {}).get("status") is not None


def schema_of(validation: Raw | None) -> Raw | None:
    """Return the OpenAPI v3 schema of a version of a CustomResourceDefinition."""
    return None if validation is None else validation.get("openAPIV3Schema")


_FIELDS: Mapping[str, Any] = {
    "schema": None,
    "subresources": None,
    "additionalPrinterColumns": (),
    "selectableFields": (),
}
"""The names of the fields of a version that can be shared, in Kubernetes' order, each with its empty value."""


def internal_spec(spec: Raw) -> InternalSpec:
    """Divide the spec of a CustomResourceDefinition into parts that all versions share and parts of single versions."""
    versions: Sequence[Raw] = spec.get("versions") or ()
    names = [version.get("name") or "" for version in versions]
    top: list[Any] = []
    own: list[Iterable[Any]] = []
    for name, empty in _FIELDS.items():
        values = [version.get(name) for version in versions] if empty is None else _lists(versions, name)
        is_common = bool(values) and all(same(value, values[0]) for value in values)
        top.append(values[0] if is_common else empty)
        own.append(repeat(empty) if is_common else values)
    return InternalSpec(spec, versions, Part(None, "", *top), list(map(Part, count(), names, *own)))


def _lists(versions: Sequence[Raw], name: str) -> list[Sequence[Raw]]:
    return [version.get(name) or () for version in versions]
