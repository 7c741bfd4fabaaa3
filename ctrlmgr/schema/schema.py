"""What a kind's fields are: one `Schema` a node, made when it is first looked at and shared by all who ask.

Guarantees:
- Fields are in Go's order, and say what Go's types say beyond OpenAPI: `go_type` and `omitted`.
- A node is never changed. Definitions may hold themselves (JSONSchemaProps does), which is why nodes are lazy.
- A field that refers to a definition has that definition's node, with what the field itself adds (a patch strategy).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ctrlmgr.schema import structure

MISSING: Final = msgspec.UNSET
"""The `default` of a schema that has none."""

_REFERENCE = "#/definitions/"
_ANY: Mapping[str, Any] = {}
_LEAVES: Mapping[str, tuple[str, str]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ("string", "quantity"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": ("string", "micro-time"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": ("string", "date-time"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": ("int-or-string", ""),
}
"""The definitions that are not what their OpenAPI type says, or not only."""
_ALSO: Mapping[tuple[str, str], str] = {
    ("meta.k8s.io/v1", "DeleteOptions"): "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    ("policy/v1beta1", "Eviction"): "io.k8s.api.policy.v1.Eviction",
}
"""Kinds that Kubernetes reads, though its OpenAPI does not list them."""


class _Name(msgspec.Struct):
    group: str
    version: str
    kind: str


class _Names(msgspec.Struct):
    names: tuple[_Name, ...] = msgspec.field(default=(), name="x-kubernetes-group-version-kind")


class Schema:
    """One node: a whole kind, a field, a list's items or a map's values."""

    def __init__(
        self,
        definitions: Schemas,
        raw: Mapping[str, Any],
        *,
        definition: str = "",
        field: Mapping[str, Any] = _ANY,
        go: structure.GoField | None = None,
    ) -> None:
        """Take the OpenAPI node, the name of the definition it is, and what the field that refers to it says."""
        self._definitions = definitions
        self._raw = raw
        self.definition = definition
        """`io.k8s.api.core.v1.PodSpec`, or empty for what has no definition of its own."""
        self.kind, self.format = self._kind_and_format(raw, definition)
        """"object", "map", "array", "string", "integer", "number", "boolean", "int-or-string" or "any"; and
        "int32", "int64", "double", "byte", "date-time", "micro-time", "quantity" or empty."""
        self.required: frozenset[str] = frozenset(raw.get("required", ()))
        self.enum: tuple[Any, ...] = tuple(raw.get("enum", ()))
        merged = {**raw, **field}
        self.default: Any = merged.get("default", MISSING)
        self.list_type: str = merged.get("x-kubernetes-list-type", "")
        """"atomic", "set", "map" or empty."""
        self.list_map_keys: tuple[str, ...] = tuple(merged.get("x-kubernetes-list-map-keys", ()))
        self.map_type: str = merged.get("x-kubernetes-map-type", "")
        """"atomic", "granular" or empty."""
        self.patch_strategy: tuple[str, ...] = tuple(
            filter(None, merged.get("x-kubernetes-patch-strategy", "").split(","))
        )
        """What a strategic merge patch does with it: "merge", "replace", "retainKeys", or nothing."""
        self.patch_merge_key: str = merged.get("x-kubernetes-patch-merge-key", "")
        self.go_type = go.type if go else ""
        """A field's Go type, `*v1.Probe`; empty for what is no field of a struct."""
        self.omitted = go.omitted if go else False
        """Whether a field is left out when it is zero (`omitempty`), see `structure.GoField`."""

    def _kind_and_format(self, raw: Mapping[str, Any], definition: str) -> tuple[str, str]:
        if definition in _LEAVES:
            return _LEAVES[definition]
        kind: str = raw.get("type", "any")
        if kind == "object" and not self.is_struct:
            kind = "map" if "additionalProperties" in raw else "any"
        return kind, raw.get("format", "")

    @property
    def is_struct(self) -> bool:
        """Whether it is a struct in Go: its fields are known and no others are kept."""
        return "properties" in self._raw or self.definition in structure.go()

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The fields of an object, in Go's order."""
        if self.definition:
            origin = self._definitions.schema(self.definition)
            if origin is not self:
                return origin.properties
        raw = self._raw.get("properties", _ANY)
        fields = structure.go_fields(self.definition)
        if fields is None:
            return {name: self._definitions.node(each) for name, each in raw.items()}
        return {field.name: self._definitions.node(raw[field.name], field) for field in fields}

    @cached_property
    def items(self) -> Schema | None:
        """What a list's items are."""
        return self._definitions.node(self._raw["items"]) if self.kind == "array" else None

    @cached_property
    def values(self) -> Schema | None:
        """What a map's values are."""
        return self._definitions.node(self._raw["additionalProperties"]) if self.kind == "map" else None

    def __repr__(self) -> str:
        return f"<Schema {self.definition or self.kind}>"


class Schemas:
    """The schemas of some definitions by name, each made when it is first asked for."""

    def __init__(self, raw: Mapping[str, msgspec.Raw]) -> None:
        """Take the definitions of an OpenAPI v2 document, each as JSON."""
        self._raw = raw
        self._schemas: dict[str, Schema] = {}

    def raw(self, definition: str) -> dict[str, Any]:
        """Return a definition's OpenAPI v2 structure, fresh; raises KeyError if there is none of that name."""
        return msgspec.json.decode(self._raw[definition])  # type: ignore[no-any-return]  # a definition is an object

    def schema(self, definition: str) -> Schema:
        """Return the schema of a definition; raises KeyError if there is none of that name."""
        schema = self._schemas.get(definition)
        if schema is None:
            schema = self._schemas[definition] = Schema(self, self.raw(definition), definition=definition)
        return schema

    def node(self, raw: Mapping[str, Any], go: structure.GoField | None = None) -> Schema:
        """Return the schema of one OpenAPI node, following its reference; `go` if it is a field of a Go struct."""
        reference: str = raw.get("$ref", "")
        if not reference:
            return Schema(self, raw, go=go)
        definition = reference.removeprefix(_REFERENCE)
        if go is None and len(raw) == 1:
            return self.schema(definition)
        return Schema(self, self.schema(definition)._raw, definition=definition, field=raw, go=go)

    @cached_property
    def by_kind(self) -> Mapping[tuple[str, str], str]:
        """The definitions that are whole kinds, by apiVersion and kind; some are several groups' (DeleteOptions)."""
        found = {name: definition for name, definition in _ALSO.items() if definition in self._raw}
        for definition, raw in self._raw.items():
            for each in msgspec.json.decode(raw, type=_Names).names:
                found[f"{each.group}/{each.version}" if each.group else each.version, each.kind] = definition
        return found

    def __contains__(self, definition: object) -> bool:
        return definition in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)
