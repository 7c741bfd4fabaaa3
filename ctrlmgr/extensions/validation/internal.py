"""A definition's spec as Kubernetes validates it: what all versions have in common stands above them.

That is how `spec.validation…` comes into the paths of errors: Kubernetes converts a definition to its internal
version, where schemas, subresources, columns and selectable fields that are the same in all versions are moved to
the spec.

Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, repeat
from typing import Any, NamedTuple

from ctrlmgr.api.field import Path
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.values.go import same

SPEC = Path("spec")


class Part(NamedTuple):
    """What stands either above all versions, or in one of them."""

    place: int | None
    """Which version it is, None above all versions."""
    version: str
    """The version's name, empty above all versions."""
    validation: Raw | None
    """`schema` of a version, None where it is not set."""
    subresources: Raw | None
    columns: Sequence[Raw]
    selectable: Sequence[Raw]

    @property
    def path(self) -> Path:
        """Where it stands."""
        return SPEC if self.place is None else SPEC.child("versions").at(self.place)


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
            return self._has_any_status
        return _has_status(part if self.has_own_subresources else self.top)

    @cached_property
    def _has_any_status(self) -> bool:
        return any(map(_has_status, self.parts()))

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
"""What a part is made of, in the order in which it holds them, and what stands for nothing."""


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
