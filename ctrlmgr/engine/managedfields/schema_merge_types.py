"""Creates the `MergeType` of a kind from its schema, once for each kind; nested merge types are created on first use.

`x-kubernetes-list-type` or, if it is missing, the patch strategy determines which lists are merged and which are
atomic. Objects and maps are merged unless they are `x-kubernetes-map-type: atomic`. Source: kube-openapi
`pkg/schemaconv`; apimachinery `managedfields/internal/stripmeta.go` for the fields that no manager owns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from ctrlmgr.engine.managedfields.field_set import FieldSet, of_paths
from ctrlmgr.engine.managedfields.list_merge_types import KeyedList, SetList
from ctrlmgr.engine.managedfields.map_merge_types import Field, Map, Struct, Untyped
from ctrlmgr.engine.managedfields.merge_type import Atomic, AtomicList, Leaf, MergeType, Scalar
from ctrlmgr.engine.managedfields.path_element import field as field_element
from ctrlmgr.schema.schema import MISSING, Schema

_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
"""The fields that no manager owns: fields that the server sets, and fields that identify the object."""

UNOWNED: FieldSet = of_paths(*((name,) for name in _UNOWNED), *(("metadata", name) for name in _UNOWNED_METADATA))
"""The fields that no manager owns, in the form of a field set."""

_OPAQUE = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_SCALARS = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_ZEROS: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "int-or-string": 0}
_TIMES = ("date-time", "micro-time")

_KEY_DEFAULTS: Mapping[tuple[str, str], str] = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}
"""The defaults of list keys that OpenAPI v2 does not contain (`+default` in Kubernetes' types)."""


class Root(Struct):
    """The merge type of an object or its metadata: a struct in which some fields are merged but not compared."""

    def __init__(
        self, fields: Callable[[], Mapping[str, Field]], unowned: frozenset[str], rest: MergeType | None = None
    ) -> None:
        """Create the merge type of a whole object.

        The function `fields` returns the fields of the struct, `unowned` contains the names of fields without owners;
        `rest` is the merge type of undeclared fields.
        """
        super().__init__(fields, rest)
        self._unowned = unowned

    @cached_property
    def compared(self) -> Mapping[str, Field]:
        """The fields of the struct that may have owners."""
        return {name: field for name, field in self.fields.items() if name not in self._unowned}


def merge_type_of(schema: Schema) -> Root:
    """Return the merge type of a kind."""
    return _MergeTypes().root(schema)


def embedded_metadata(schema: Schema) -> Root:
    """Return the merge type of the metadata of an embedded object, in which all fields may have owners."""
    return Root(partial(_MergeTypes()._fields, schema), frozenset())


def custom_root(fields: Callable[[], Mapping[str, Field]], metadata: Schema, rest: MergeType | None) -> Root:
    """Return the merge type of a kind that has the given fields, metadata, kind and apiVersion.

    The argument `rest` is the merge type of all other fields.
    """
    merge_types = _MergeTypes()

    def every() -> Mapping[str, Field]:
        type_meta = {name: Field(field_element(name), Scalar("string"), MISSING, True) for name in _UNOWNED}
        return {**type_meta, **fields(), "metadata": merge_types.metadata(metadata)}

    return Root(every, _UNOWNED, rest)


class _MergeTypes:
    """Creates the merge types of one kind, one merge type for each definition in its schema."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], MergeType] = {}

    def root(self, schema: Schema) -> Root:
        return Root(lambda: dict(self._kind_fields(schema)), _UNOWNED)

    def _kind_fields(self, schema: Schema) -> Iterator[tuple[str, Field]]:
        for name, field in self._fields(schema).items():
            yield name, self.metadata(schema.properties[name]) if name == "metadata" else field

    def metadata(self, schema: Schema) -> Field:
        """Return the struct field for the metadata of an object."""
        return Field(field_element("metadata"), Root(partial(self._fields, schema), _UNOWNED_METADATA), {}, False)

    def _fields(self, schema: Schema) -> dict[str, Field]:
        return {name: self._field(name, each) for name, each in schema.properties.items()}

    def _field(self, name: str, schema: Schema) -> Field:
        merge_type = self._merge_type(schema)
        return Field(field_element(name), merge_type, _zero(schema), isinstance(merge_type, Leaf))

    def _merge_type(self, schema: Schema) -> MergeType:
        key = (schema.definition, schema.map_type)
        if not schema.definition:
            return self._make(schema)
        if key not in self._made:
            self._made[key] = self._make(schema)
        return self._made[key]

    def _make(self, schema: Schema) -> MergeType:
        if schema.items is not None:
            return self._list(schema, schema.items)
        if schema.definition == _OPAQUE:
            return Leaf()
        if schema.kind == "any":
            return Untyped()
        if schema.kind not in ("object", "map"):
            untyped = schema.format not in ("", "byte", "int32", "int64", "double")
            return Scalar("untyped" if untyped else _SCALARS.get(schema.kind, "untyped"))
        merge_type = self._object(schema)
        return Atomic(merge_type) if schema.map_type == "atomic" else merge_type

    def _object(self, schema: Schema) -> MergeType:
        if schema.values is not None:
            return Map(self._merge_type(schema.values))
        return Struct(lambda: self._fields(schema), stays_empty=True)

    def _list(self, schema: Schema, items: Schema) -> MergeType:
        list_type, keys = schema.list_type, schema.list_map_keys
        if not list_type and "merge" in schema.patch_strategy:
            list_type, keys = ("map", (schema.patch_merge_key,)) if schema.patch_merge_key else ("set", ())
        if list_type == "map":
            return KeyedList(self._merge_type(items), {key: _default(items, key) for key in keys})
        return SetList(self._merge_type(items)) if list_type == "set" else AtomicList(self._merge_type(items))


def _default(items: Schema, key: str) -> Any:
    """Return the value of a key that an item omits: its default, or Go's zero value if Go always writes the field.

    kube-openapi's generator makes the zero value of such a field a default (`mustEnforceDefault`). The result is
    MISSING if there is no such value.
    """
    field = items.properties.get(key)
    if field is None or field.default is not MISSING:
        return MISSING if field is None else field.default
    zero = _ZEROS.get(field.kind, MISSING) if _always_written(field) else MISSING
    return _KEY_DEFAULTS.get((items.definition, key), zero)


def _always_written(field: Schema) -> bool:
    return bool(field.go_type) and not field.omitted and not field.go_type.startswith("*")


def _zero(schema: Schema) -> Any:
    """Return the value that Go writes for an unset field.

    MISSING if Go omits the field or the type does not exist in Go.
    """
    if schema.omitted or not schema.go_type:
        return MISSING
    if schema.go_type.startswith("*") or schema.format in _TIMES:
        return None
    if schema.is_struct:
        return {}
    return "0" if schema.format == "quantity" else None if schema.format == "byte" else _ZEROS.get(schema.kind)
