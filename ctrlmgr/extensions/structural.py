"""Structural schemas: describe the structure of a value (its fields, items and types), but no validation.

Guarantees: a `Structural` is created once from the schema of a CustomResourceDefinition and never changes; `raw` is the
original schema. Every decoded schema is accepted: unknown keywords, nulls and zero values count as absent, as in
Kubernetes.

Source: apiextensions-apiserver `pkg/apiserver/schema/{structural,convert}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

Raw = Mapping[str, Any]
"""A decoded schema (JSONSchemaProps), as a CustomResourceDefinition contains it."""

MISSING: Final = msgspec.UNSET
"""The value of `Structural.default` if the schema has no default."""

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
RULES: Final = "x-kubernetes-validations"

JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
TYPE_META: Final = frozenset(("apiVersion", "kind"))
META: Final = TYPE_META | {"metadata"}
"""The fields of a whole object that a schema need not declare."""


NESTING: Final = frozenset((
    *JUNCTORS, "not", "properties", "items", "additionalProperties", "patternProperties", "definitions", "dependencies",
    "additionalItems",
))  # fmt: skip
"""The keywords that contain schemas. Most schemas have none of these keywords and are leaves."""


class NotStructural(ValueError):
    """Raised if a schema contains a keyword that structural schemas do not support."""


_UNSUPPORTED = (
    ("id", "'id'"),
    ("$schema", "'schema'"),
    ("$ref", "'$ref'"),
    ("patternProperties", "'patternProperties'"),
    ("dependencies", "'dependencies'"),
    ("additionalItems", "'additionalItems'"),
    ("definitions", "'definitions'"),
)
_UNSUPPORTED_WORDS = frozenset(keyword for keyword, _ in _UNSUPPORTED)


def refuse_unsupported(raw: Raw) -> None:
    """Raise NotStructural for keywords that Kubernetes' `NewStructural` cannot convert.

    Nested schemas are checked in Kubernetes' order.
    """
    if not _UNSUPPORTED_WORDS.isdisjoint(raw):
        _refuse_words(raw)
    is_leaf = NESTING.isdisjoint(raw)
    if not is_leaf:
        for _, below in junctors(raw):
            refuse_unsupported(below)
    if raw.get(PRESERVE) is False:
        raise NotStructural(f"internal error: '{PRESERVE}' must be true or undefined")
    if not is_leaf:
        _refuse_below(raw)


def _refuse_words(raw: Raw) -> None:
    for keyword, shown in _UNSUPPORTED:
        value = raw.get(keyword)
        if value or (keyword == "additionalItems" and value is not None):
            raise NotStructural(f"OpenAPIV3Schema {shown} is not supported")


def _refuse_below(raw: Raw) -> None:
    items = raw.get("items")
    if isinstance(items, list) and items:
        raise NotStructural("OpenAPIV3Schema 'items' must be a schema, but is an array")
    if isinstance(items, Mapping):
        refuse_unsupported(items)
    for each in (raw.get("properties") or {}).values():
        refuse_unsupported(each)
    if isinstance(others := raw.get("additionalProperties"), Mapping):
        refuse_unsupported(others)


def junctors(raw: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the non-empty schemas under `not`, `allOf`, `anyOf` and `oneOf`, each with its path: `allOf[0]`."""
    if isinstance(negated := raw.get("not"), dict) and negated:
        yield "not", negated
    for junctor in JUNCTORS:
        if junctor in raw:
            for index, each in enumerate(raw[junctor] or ()):
                if each:
                    yield f"{junctor}[{index}]", each


def single_items(raw: Raw) -> Raw | None:
    """Return the schema of a list's items; None if there is no schema, or one schema for each position."""
    items = raw.get("items")
    return items if isinstance(items, dict) else None


class Structural:
    """One node of a structural schema: an object, a field, a list's items or a map's values."""

    def __init__(self, raw: Raw) -> None:
        """Create a node for a schema, which must not contain unsupported keywords (`refuse_unsupported`)."""
        self.raw = raw
        self.type: str = raw.get("type") or ""
        self.nullable: bool = bool(raw.get("nullable"))
        self.default: Any = MISSING if raw.get("default") is None else raw["default"]
        """The default of the schema node; MISSING if the node has none."""
        self.preserves: bool = bool(raw.get(PRESERVE))
        """Whether undeclared fields of the object are kept."""
        self.embedded: bool = bool(raw.get(EMBEDDED))
        self.int_or_string: bool = bool(raw.get(INT_OR_STRING))
        self.list_type: str = raw.get(LIST_TYPE) or ""
        self.list_map_keys: Sequence[str] = tuple(raw.get(LIST_MAP_KEYS) or ())
        self.map_type: str = raw.get(MAP_TYPE) or ""
        self.rules: Sequence[Raw] = tuple(raw.get(RULES) or ())

    @cached_property
    def properties(self) -> Mapping[str, Structural]:
        """The fields of an object."""
        return {name: Structural(each) for name, each in (self.raw.get("properties") or {}).items()}

    @cached_property
    def items(self) -> Structural | None:
        """The schema of a list's items."""
        raw = single_items(self.raw)
        return None if raw is None else Structural(raw)

    @property
    def has_additional(self) -> bool:
        """Return whether `additionalProperties` is set, possibly to `false`."""
        return self.raw.get("additionalProperties") is not None

    @cached_property
    def additional(self) -> Structural | None:
        """The schema of undeclared fields; None if `additionalProperties` is not a schema."""
        raw = self.raw.get("additionalProperties")
        return Structural(raw) if isinstance(raw, Mapping) else None

    def below(self) -> Iterator[Structural]:
        """Yield the child nodes of the schema node."""
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if self.additional is not None:
            yield self.additional

    def field(self, name: str) -> Structural | None:
        """Return the schema of a field: the declared schema or, in a map, the schema of the map's values."""
        return self.properties.get(name) or self.additional

    @cached_property
    def as_object(self) -> Structural:
        """The node as the root schema of an object, in which metadata, kind and apiVersion need no declaration."""
        return self if self.embedded else Structural({**self.raw, EMBEDDED: True})
