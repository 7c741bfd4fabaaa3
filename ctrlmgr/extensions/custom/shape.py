"""What field management sees of a custom kind: a `Shape` made from its structural schema.

Guarantees: metadata is owned and merged as every kind's is; what the schema keeps without knowing it
(`x-kubernetes-preserve-unknown-fields`, an object that declares nothing) is merged by what it turns out to be. Nothing
counts as there that is not: custom objects are no Go structs, whose zeros are always written.

Source: kube-openapi `pkg/schemaconv/openapi.go`; apiextensions-apiserver's `buildOpenAPIModelsForApply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ctrlmgr.engine.managedfields.path_element import field as field_element
from ctrlmgr.engine.managedfields.shape import Atomic, AtomicList, Leaf, Scalar, Shape
from ctrlmgr.engine.managedfields.shape_list import KeyedList, SetList
from ctrlmgr.engine.managedfields.shape_map import Field, Map, Struct, Untyped
from ctrlmgr.engine.managedfields.shape_of import Root, custom_root
from ctrlmgr.extensions.structural import META, MISSING, Structural
from ctrlmgr.schema.definitions import Definitions

_SCALARS = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def custom_shape(schema: Structural, definitions: Definitions) -> Root:
    """Return the shape of a custom kind; `definitions` are Kubernetes', for what metadata is."""
    declared = {name: each for name, each in schema.properties.items() if name not in META}
    return custom_root(partial(_fields, declared), definitions.schema(_OBJECT_META), _rest(schema))


def _fields(properties: Mapping[str, Structural]) -> dict[str, Field]:
    return {name: _field(name, each) for name, each in properties.items()}


def _field(name: str, schema: Structural) -> Field:
    shape = _shape(schema)
    return Field(field_element(name), shape, MISSING, isinstance(shape, Leaf))


def _shape(schema: Structural) -> Shape:
    if schema.int_or_string:
        return Scalar("untyped")
    match schema.type:
        case "object":
            shape = _object(schema)
            return Atomic(shape) if schema.map_type == "atomic" else shape
        case "array":
            return _list(schema)
        case type_ if type_ in _SCALARS:
            return Scalar(_SCALARS[type_])
    return Untyped()


def _rest(schema: Structural) -> Shape | None:
    """Return what the fields of an object are that it does not declare; None if it has no others."""
    if schema.additional is not None:
        return _shape(schema.additional)
    if schema.has_additional:
        return Untyped() if schema.raw["additionalProperties"] is True else None
    return Untyped() if schema.preserves or not schema.properties else None


def _object(schema: Structural) -> Shape:
    rest, properties = _rest(schema), schema.properties
    if schema.embedded:
        string = Structural({"type": "string"})
        properties = {"apiVersion": string, "kind": string, "metadata": Structural({"type": "object"}), **properties}
    if rest is not None and not properties:
        return Map(rest)
    return Struct(partial(_fields, properties), rest)


def _list(schema: Structural) -> Shape:
    items = schema.items
    inner = _shape(items) if items is not None else Untyped()
    match schema.list_type:
        case "map" if items is not None:
            return KeyedList(inner, {key: _default(items, key) for key in schema.list_map_keys})
        case "set":
            return SetList(inner)
    return AtomicList(inner)


def _default(items: Structural, key: str) -> object:
    field = items.properties.get(key)
    return MISSING if field is None else field.default
