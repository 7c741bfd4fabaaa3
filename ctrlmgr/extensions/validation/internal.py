"""A definition's spec as Kubernetes validates it: what all versions have in common stands above them.

That is how `spec.validation…` comes into the paths of errors: Kubernetes converts a definition to its internal
version, where schemas, subresources, columns and selectable fields that are the same in all versions are moved to
the spec.

Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.values.go import same

SPEC = Path("spec")


class Part(NamedTuple):
    """What stands either above all versions, or in one of them."""

    path: Path
    version: str
    """The version's name, empty above all versions."""
    validation: Raw | None
    """`schema` of a version, None where it is not set."""
    subresources: Raw | None
    columns: Sequence[Raw]
    selectable: Sequence[Raw]


@dataclass(frozen=True)
class InternalSpec:
    """A spec, divided."""

    raw: Raw
    versions: Sequence[Raw]
    """The versions as they are."""
    top: Part
    """What all versions have in common."""
    own: Sequence[Part]
    """What each version has for itself."""

    def parts(self) -> Sequence[Part]:
        """Return all parts, those of versions first."""
        return (*self.own, self.top)

    def schemas(self) -> Sequence[Raw]:
        """Return the schemas there are."""
        found = [schema_of(part.validation) for part in (self.top, *self.own)]
        return [each for each in found if each is not None]

    def has_status(self, part: Part) -> bool:
        """Say whether objects have a status subresource: in the part's version, or in any for the top."""
        if not part.version:
            return any(_has_status(each) for each in self.parts())
        return _has_status(part if self.has_own_subresources else self.top)

    @cached_property
    def has_own_subresources(self) -> bool:
        """Whether versions have subresources of their own."""
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


def internal_spec(spec: Raw) -> InternalSpec:
    """Divide a spec."""
    versions: Sequence[Raw] = spec.get("versions") or ()
    values = {name: [version.get(name) or empty for version in versions] for name, empty in _FIELDS.items()}
    for name in ("schema", "subresources"):
        values[name] = [version.get(name) for version in versions]
    common = {name for name, each in values.items() if each and all(same(value, each[0]) for value in each)}
    top = {name: values[name][0] if name in common else empty for name, empty in _FIELDS.items()}
    own = [
        Part(SPEC.child("versions").at(at), version.get("name") or "", **_renamed(_own(values, common, at)))
        for at, version in enumerate(versions)
    ]
    return InternalSpec(spec, versions, Part(SPEC, "", **_renamed(top)), own)


def _own(values: Mapping[str, Sequence[Any]], common: set[str], at: int) -> dict[str, Any]:
    return {name: empty if name in common else values[name][at] for name, empty in _FIELDS.items()}


def _renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {"schema": "validation", "additionalPrinterColumns": "columns", "selectableFields": "selectable"}
    return {names.get(name, name): value for name, value in fields.items()}
