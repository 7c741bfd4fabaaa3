"""Creates the `MergeType` for field management of a custom kind from its structural schema.

Guarantees: metadata is owned and merged in the same way as for built-in kinds. Values that the schema keeps without
declaring them (`x-kubernetes-preserve-unknown-fields`, an object without declared fields) are merged by their actual
types. A missing field of a custom object counts as missing. In contrast, Go writes some missing fields of built-in
kinds as zero values.

Source: kube-openapi `pkg/schemaconv/openapi.go`; apiextensions-apiserver's `buildOpenAPIModelsForApply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ctrlmgr.engine.managedfields.list_merge_types import KeyedList, SetList
from ctrlmgr.engine.managedfields.map_merge_types import Field, Map, Struct, Untyped
from ctrlmgr.engine.managedfields.merge_type import Atomic, AtomicList, Leaf, MergeType, Scalar
from ctrlmgr.engine.managedfields.path_element import field as field_element
from ctrlmgr.engine.managedfields.schema_merge_types import Root, custom_root, embedded_metadata
from ctrlmgr.extensions.structural import META, MISSING, Structural
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema

_SCALARS = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def custom_merge_type(schema: Structural, definitions: Definitions) -> Root:
    """Return the merge type of a custom kind.

    `definitions` contains Kubernetes' OpenAPI definitions, with the schema of metadata.
    """
    meta = definitions.schema(_OBJECT_META)
    merge_types = _MergeTypes(meta)
    declared = {name: each for name, each in schema.properties.items() if name not in META}
    return custom_root(partial(merge_types.fields, declared), meta, merge_types.rest(schema))


class _MergeTypes:
    """Creates the merge types of one kind; each merge type is created on first use."""

    def __init__(self, meta: Schema) -> None:
        """Create an instance; `meta` is the schema of embedded objects' metadata (`addEmbeddedProperties`)."""
        self._meta = meta

    def fields(self, properties: Mapping[str, Structural]) -> dict[str, Field]:
        """Return the struct fields for an object with the given properties."""
        return {name: _field(name, self.merge_type(each)) for name, each in properties.items()}

    def merge_type(self, schema: Structural) -> MergeType:
        """Return the merge type of a value with this schema."""
        if schema.int_or_string:
            return Scalar("untyped")
        match schema.type:
            case "object":
                merge_type = self._object(schema)
                return Atomic(merge_type) if schema.map_type == "atomic" else merge_type
            case "array":
                return self._list(schema)
            case type_ if type_ in _SCALARS:
                return Scalar(_SCALARS[type_])
        return Untyped()

    def rest(self, schema: Structural) -> MergeType | None:
        """Return the merge type of the undeclared fields of an object; None if undeclared fields are not allowed."""
        if schema.additional is not None:
            return self.merge_type(schema.additional)
        if schema.has_additional:
            return Untyped() if schema.raw["additionalProperties"] is True else None
        return Untyped() if schema.preserves or not schema.properties else None

    def _object(self, schema: Structural) -> MergeType:
        rest, properties = self.rest(schema), schema.properties
        if schema.embedded:
            return Struct(partial(self._embedded, properties), rest)
        if rest is not None and not properties:
            return Map(rest)
        return Struct(partial(self.fields, properties), rest)

    def _embedded(self, properties: Mapping[str, Structural]) -> dict[str, Field]:
        """Return the fields of an embedded object, whose metadata has the same merge type as that of every object."""
        string = Scalar("string")
        meta = {"apiVersion": string, "kind": string, "metadata": embedded_metadata(self._meta)}
        return {**self.fields(properties), **{name: _field(name, merge_type) for name, merge_type in meta.items()}}

    def _list(self, schema: Structural) -> MergeType:
        items = schema.items
        inner = self.merge_type(items) if items is not None else Untyped()
        match schema.list_type:
            case "map" if items is not None:
                return KeyedList(inner, {key: _default(items, key) for key in schema.list_map_keys})
            case "set":
                return SetList(inner)
        return AtomicList(inner)


def _field(name: str, merge_type: MergeType) -> Field:
    return Field(field_element(name), merge_type, MISSING, isinstance(merge_type, Leaf))


def _default(items: Structural, key: str) -> object:
    field = items.properties.get(key)
    return MISSING if field is None else field.default
