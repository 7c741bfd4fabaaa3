"""Converts a definition's spec to the form that Kubernetes validates: parts that all versions share are moved up.

Kubernetes converts a definition to its internal version. Schemas, subresources, columns and selectable fields that are
equal in all versions are moved to the spec there. Therefore errors have paths such as `spec.validation…`.

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
    """The parts that belong either to one version or to the spec."""

    place: int | None
    """The index of the version, None for the spec."""
    version: str
    """The version's name, empty for the spec."""
    validation: Raw | None
    """The `schema` of a version, None if it is not set."""
    subresources: Raw | None
    columns: Sequence[Raw]
    selectable: Sequence[Raw]

    @property
    def path(self) -> Path:
        """The path of the version or of the spec."""
        return SPEC if self.place is None else SPEC.child("versions").at(self.place)


@dataclass(frozen=True)
class InternalSpec:
    """A spec, divided into shared and own parts."""

    raw: Raw
    versions: Sequence[Raw]
    """The versions, unchanged."""
    top: Part
    """The parts that all versions share."""
    own: Sequence[Part]
    """The own parts of each version."""

    def parts(self) -> Sequence[Part]:
        """Return all parts, those of versions first."""
        return (*self.own, self.top)

    def schemas(self) -> Sequence[Raw]:
        """Return all schemas."""
        found = [schema_of(part.validation) for part in (self.top, *self.own)]
        return [each for each in found if each is not None]

    def has_status(self, part: Part) -> bool:
        """Return whether objects have a status subresource: in the part's version, or in any version for the spec."""
        if not part.version:
            return self._has_any_status
        return _has_status(part if self.has_own_subresources else self.top)

    @cached_property
    def _has_any_status(self) -> bool:
        return any(map(_has_status, self.parts()))

    @cached_property
    def has_own_subresources(self) -> bool:
        """Return whether versions have their own subresources."""
        return any(each.subresources is not None for each in self.own)


def _has_status(part: Part) -> bool:
    return (part.subresources or {}).get("status") is not None


def schema_of(validation: Raw | None) -> Raw | None:
    """Return the schema in a version's `schema`."""
    return None if validation is None else validation.get("openAPIV3Schema")


_FIELDS: Mapping[str, Any] = {
    "schema": None,
    "subresources": None,
    "additionalPrinterColumns": (),
    "selectableFields": (),
}
"""The fields of a part in their order, with their empty values."""


def internal_spec(spec: Raw) -> InternalSpec:
    """Divide a spec."""
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
