"""Describes the fields of kinds; each schema node is one `Schema` object, which all callers share.

Guarantees:
- Fields are in Go's order, and have the attributes `go_type` and `omitted`, which OpenAPI lacks.
- A schema node never changes after its creation. Schema nodes are created lazily because definitions may contain
  themselves, as JSONSchemaProps does.
- The schema node of a field that refers to a definition combines the definition with the field's own attributes, such
  as a patch strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.schema import published_schema

MISSING: Final = msgspec.UNSET
"""The value of `default` in a schema that declares no default."""

_REFERENCE = "#/definitions/"
_ANY: Mapping[str, Any] = {}
_LEAVES: Mapping[str, tuple[str, str]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("string", "quantity"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": ("string", "micro-time"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": ("string", "date-time"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int-or-string", ""),
}
"""The definitions whose structure follows only from their Go type, not from OpenAPI."""
_ALSO: Mapping[tuple[str, str], str] = {
    ("meta.k8s.io/v1", "DeleteOptions"): "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    ("policy/v1beta1", "Eviction"): "io.k8s.api.policy.v1.Eviction",
}
"""Kinds that Kubernetes accepts, but that its OpenAPI document does not list."""


class _Name(msgspec.Struct):
    group: str
    version: str
    kind: str


class _Names(msgspec.Struct):
    names: tuple[_Name, ...] = msgspec.field(default=(), name="x-kubernetes-group-version-kind")


class Schema:
    """One node of a schema: a whole kind, a field, a list's items or a map's values."""

    def __init__(
        self,
        definitions: Schemas,
        raw: Mapping[str, Any],
        *,
        definition: str = "",
        field: Mapping[str, Any] = _ANY,
        go: published_schema.GoField | None = None,
    ) -> None:
        """Create a schema node from its OpenAPI form.

        `definition` is the name of the node's definition. `field` contains the attributes of the field that refers to
        the definition.
        """
        self._definitions = definitions
        self._raw = raw
        self.definition = definition
        """The name of the node's definition, such as `io.k8s.api.core.v1.PodSpec`.

        The name is empty for a schema node without its own definition.
        """
        self.kind, self.format = self._kind_and_format(raw, definition)
        """The kind of a schema node is "object", "map", "array", "string", "integer", "number", "boolean",
        "int-or-string" or "any". The format of a schema node is "int32", "int64", "double", "byte", "date-time",
        "micro-time", "quantity" or empty.
        """
        self.required: frozenset[str] = frozenset(raw.get("required", ()))
        self.enum: tuple[Any, ...] = tuple(raw.get("enum", ()))
        merged = {**raw, **field}
        self.default: Any = merged.get("default", MISSING)
        self.list_type: str = merged.get("x-kubernetes-list-type", "")
        """The type of a list: "atomic", "set", "map" or empty."""
        self.list_map_keys: tuple[str, ...] = tuple(merged.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = merged.get("x-kubernetes-map-type", "")
        """The type of a map: "atomic", "granular" or empty."""
        self.patch_strategy: tuple[str, ...] = tuple(
            filter(None, merged.get("x-kubernetes-patch-strategy", "").split(","))
        )
        """The strategy of a strategic merge patch for the field: "merge", "replace", "retainKeys", or none."""
        self.patch_merge_key: str = merged.get("x-kubernetes-patch-merge-key", "")
        self.go_type = go.type if go else ""
        """The Go type of a field, such as `*v1.Probe`; empty for a schema node that is not a field of a struct."""
        self.omitted = go.omitted if go else False
        """Whether a zero value of the field is omitted (`omitempty`); see `published_schema.GoField`."""

    def _kind_and_format(self, raw: Mapping[str, Any], definition: str) -> tuple[str, str]:
        if definition in _LEAVES:
            return _LEAVES[definition]
        kind: str = raw.get("type", "any")
        if kind == "object" and not self.is_struct:
            kind = "map" if "additionalProperties" in raw else "any"
        return kind, raw.get("format", "")

    @property
    def is_struct(self) -> bool:
        """Return whether the schema node is a struct in Go, which has declared fields and keeps no other fields."""
        return "properties" in self._raw or self.definition in published_schema.go()

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The fields of an object, in Go's order."""
        if self.definition:
            origin = self._definitions.schema(self.definition)
            if origin is not self:
                return origin.properties
        raw = self._raw.get("properties", _ANY)
        fields = published_schema.go_fields(self.definition)
        if fields is None:
            return {name: self._definitions.node(each) for name, each in raw.items()}
        return {field.name: self._definitions.node(raw[field.name], field) for field in fields}

    @cached_property
    def items(self) -> Schema | None:
        """The schema of a list's items."""
        return self._definitions.node(self._raw["items"]) if self.kind == "array" else None

    @cached_property
    def values(self) -> Schema | None:
        """The schema of a map's values."""
        return self._definitions.node(self._raw["additionalProperties"]) if self.kind == "map" else None

    def __repr__(self) -> str:
        return f"<Schema {self.definition or self.kind}>"


class Schemas:
    """The schemas of definitions by name; each schema is created on first use."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        """Use the definitions of an OpenAPI v2 document; each definition is passed as JSON."""
        self._raw = raw
        self._schemas: dict[str, Schema] = {}

    def raw(self, definition: str) -> dict[str, Any]:
        """Return a new copy of a definition's OpenAPI v2 structure; raises KeyError if no definition has this name."""
        return msgspec.json.decode(self._raw[definition])  # type: ignore[no-any-return]  # a definition is an object

    def schema(self, definition: str) -> Schema:
        """Return the schema of a definition; raises KeyError if no definition has this name."""
        schema = self._schemas.get(definition)
        if schema is None:
            schema = self._schemas[definition] = Schema(self, self.raw(definition), definition=definition)
        return schema

    def node(self, raw: Mapping[str, Any], go: published_schema.GoField | None = None) -> Schema:
        """Return the schema of one OpenAPI node, following its reference.

        If the node is a field of a Go struct, `go` describes that field.
        """
        reference: str = raw.get("$ref", "")
        if not reference:
            return Schema(self, raw, go=go)
        definition = reference.removeprefix(_REFERENCE)
        if go is None and len(raw) == 1:
            return self.schema(definition)
        return Schema(self, self.schema(definition)._raw, definition=definition, field=raw, go=go)

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], str]:
        """The definitions of whole kinds, by apiVersion and kind.

        A definition such as DeleteOptions may belong to several groups.
        """
        found = {name: definition for name, definition in _ALSO.items() if definition in self._raw}
        for definition, raw in self._raw.items():
            for each in msgspec.json.decode(raw, type=_Names).names:
                found[f"{each.group}/{each.version}" if each.group else each.version, each.kind] = definition
        return found

    def __contains__(self, definition: object) -> bool:
        return definition in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)
