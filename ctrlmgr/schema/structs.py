"""Converts schemas to msgspec Structs, which C code decodes and encodes fast.

Guarantees:
- A Struct has the fields of a definition's Go struct, and the JSON form that Go would write. The fields of a Struct are
  in Go's order. The JSON form omits zero values where Go's `omitempty` or `omitzero` omits zero values; other nil lists
  become null.
- The conversion of a document to a Struct refuses every deviation: unknown fields, wrong types, and nulls that Go
  tolerates. The slow path (`schema.schema_pruning`) decides which deviations are errors, and reports them.
- Each definition has exactly one Struct, even if several threads request it first.
- The decoding converts quantities and times to Kubernetes' canonical form. The decoding also rounds amounts of
  resources up to thousandths, as `pkg/apis/core/v1/defaults.go` does for every ResourceList of every kind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any, ForwardRef, TypeAlias

import msgspec

from ctrlmgr.api.quantity import MILLI, canonical, rounded_up
from ctrlmgr.api.timestamp import canonical_micro_time, canonical_time
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.strict_json import NumberText, refuse_free_form_depth

_encode = msgspec.json.Encoder().encode

StructType: TypeAlias = type[msgspec.Struct]


class _Text(type):
    """The metaclass of types that a hook of msgspec converts, although their values are strings."""

    canonical: Callable[[str], str | None]

    def __instancecheck__(cls, instance: object) -> bool:
        return type(instance) is str


class _Anything(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return True


class FreeForm(metaclass=_Anything):
    """Arbitrary JSON: the Go types RawExtension, FieldsV1 and JSON.

    Go keeps the bytes of arbitrary JSON, including the order of keys.
    """


class Quantity(metaclass=_Text):
    """The Go type resource.Quantity: a number with a unit, such as `100m`."""

    canonical = staticmethod(canonical)


class Amount(metaclass=_Text):
    """A resource.Quantity in a ResourceList, which is rounded up to thousandths (`SetDefaults_ResourceList`)."""

    canonical = staticmethod(lambda text: rounded_up(canonical(text), MILLI))


class Time(metaclass=_Text):
    """The Go type Time of meta/v1: a time in whole seconds."""

    canonical = staticmethod(canonical_time)


class MicroTime(metaclass=_Text):
    """The Go type MicroTime of meta/v1: a time in microseconds."""

    canonical = staticmethod(canonical_micro_time)


_QUANTITIES = (Quantity, Amount)
_RESOURCE_LIST = "v1.ResourceList"
"""The Go type of maps of resource amounts; quantities in other maps are not rounded."""
_UNROUNDED = "io.k8s.api.node.v1.Overhead"
"""A Go type whose amounts are not rounded, because the group node.k8s.io sets no defaults."""


def canonical_text(type_: Any, value: Any) -> str | None:
    """Return a value of a string type in its canonical form; raises ValueError if the value is invalid.

    In JSON, a quantity may also be a number. The function returns None for the zero time; msgspec refuses this None, so
    that the slow path handles the zero time.
    """
    if type_ in _QUANTITIES:
        return type_.canonical(_quantity_text(value))  # type: ignore[no-any-return]  # see _Text
    if type(value) is not str:
        raise ValueError(f"{value!r} is no {type_.__name__}")
    return type_.canonical(value)  # type: ignore[no-any-return]  # see _Text


def _quantity_text(quantity: Any) -> str:
    """Return the text of a quantity, which may be a string or a JSON number."""
    if type(quantity) is str:
        return quantity.strip()
    return quantity.text if type(quantity) is NumberText else _encode(quantity).decode()


def read_value(type_: Any, value: Any) -> Any:
    """Convert a value of one of this module's types while msgspec decodes a document (`dec_hook`).

    The function refuses a quantity that is a JSON number with a fraction, because only the slow path knows the number's
    exact text.
    """
    if type_ is not FreeForm:
        if type(value) is float and type_ in _QUANTITIES:
            raise ValueError("a number whose exact text is not known")
        return canonical_text(type_, value)
    refuse_free_form_depth(value)
    return value


def write_value(type_: Any, value: Any) -> Any:
    """Convert a value of one of this module's types while msgspec encodes an object (`enc_hook`).

    This function encodes arbitrary JSON itself, because msgspec would sort the keys.
    """
    if type_ is FreeForm:
        return msgspec.Raw(_encode(value))
    return type_.canonical(value) if type_ is Time and type(value) is str else canonical_text(type_, value)


TEXTS: dict[str, type] = {"quantity": Quantity, "date-time": Time, "micro-time": MicroTime}
"""The string types, by the `format` in a schema."""
_TIMES = ("date-time", "micro-time")

_INT32: Any = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_INT64: Any = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: dict[tuple[str, str], Any] = {
    ("string", ""): str,
    ("string", "byte"): bytes,
    **{("string", name): type_ for name, type_ in TEXTS.items()},
    ("integer", "int32"): _INT32,
    ("integer", "int64"): _INT64,
    ("number", "double"): int | float,
    ("boolean", ""): bool,
    ("int-or-string", ""): _INT32 | str,
    ("any", ""): FreeForm,
}
_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}
"""The zero values that a Struct omits; msgspec compares a field's value with these objects by identity."""


def _null() -> None:
    """Return None, as the default factory of a field.

    Because of the default factory, msgspec writes the field even if its value is None.
    """


def _zero_quantity() -> str:
    return "0"


_NIL_DIFFERS = frozenset({("HPAScalingRules", "policies")})
"""Lists for which an absent list and an empty list differ, by type and field.

Kubernetes sets defaults if one of these lists is absent, and refuses the object if the list is empty.
"""


_NOT_ROUNDED = frozenset({("Overhead", "podFixed")})
"""ResourceLists of kinds for which Kubernetes sets no defaults (RuntimeClass), by type and field."""


class Structs:
    """The Structs of all definitions; each Struct is created at its first use."""

    def __init__(self) -> None:
        """Create an empty set of Structs."""
        self._made: dict[str, StructType] = {}
        self._recursive: dict[str, bool] = {}
        self._making = threading.RLock()

    def of(self, schema: Schema, within: tuple[str, ...] = ()) -> StructType:
        """Return the Struct of a schema that is a struct in Go.

        `within` are the definitions whose Structs are being created.
        """
        made = self._made.get(schema.definition)
        if made is not None:
            return made
        with self._making:
            made = self._made.get(schema.definition)
            if made is None:
                made = self._make(schema, (*within, schema.definition))
                # Two threads must not use a new Struct for the first time at the same time: one of them would use
                # msgspec's incomplete analysis, and the process would crash.
                msgspec.json.Decoder(made)
                self._made[schema.definition] = made
        return made

    def type_of(self, schema: Schema) -> Any:
        """Return the type of a list or a map of Structs."""
        return self._type(schema, ())

    def is_recursive(self, schema: Schema) -> bool:
        """Return whether a definition contains itself, so that its objects can be nested to any depth."""
        known = self._recursive.get(schema.definition)
        if known is None:
            known = self._recursive[schema.definition] = _is_recursive(schema, ())
        return known

    def _make(self, schema: Schema, within: tuple[str, ...]) -> StructType:
        name = schema.definition.rpartition(".")[2]
        properties = list(schema.properties.items())
        # Attributes are numbered, because JSON's names (`$ref`, `from`) need not be valid in Python.
        struct = msgspec.defstruct(
            name,
            [
                (f"_{index}", *self._named_field(name, json_name, field, within))
                for index, (json_name, field) in enumerate(properties)
            ],
            rename={f"_{index}": json_name for index, (json_name, _) in enumerate(properties)},
            omit_defaults=True,
            forbid_unknown_fields=True,
            gc=False,
        )
        setattr(struct, name, struct)  # the name by which a definition refers to itself
        return struct

    def _named_field(self, struct: str, name: str, schema: Schema, within: tuple[str, ...]) -> tuple[Any, Any]:
        """Return a field's type and its default; msgspec omits a field whose value is the default."""
        if (struct, name) in _NOT_ROUNDED:
            return _collection(schema, dict[str, Quantity])
        if (struct, name) in _NIL_DIFFERS:
            return self._type(schema, within) | None, None
        return self._field(schema, within)

    def _field(self, schema: Schema, within: tuple[str, ...]) -> tuple[Any, Any]:
        type_ = self._type(schema, within)
        if schema.go_type.startswith("*") or schema.format in _TIMES:
            return type_ | None, None if schema.omitted else msgspec.field(default_factory=_null)
        if schema.is_struct:
            return type_, msgspec.field(default_factory=type_)
        if schema.items or schema.values:
            return _collection(schema, type_)
        return _scalar(schema, type_)

    def _type(self, schema: Schema, within: tuple[str, ...]) -> Any:
        if schema.is_struct:
            name = schema.definition
            return ForwardRef(name.rpartition(".")[2]) if name in within else self.of(schema, within)
        if schema.items:
            return list[self._element(schema.items, within)]  # type: ignore[misc]  # made at run time
        if schema.go_type.lstrip("*") == _RESOURCE_LIST and within[-1:] != (_UNROUNDED,):
            return dict[str, Amount]
        if schema.values:
            return dict[str, self._element(schema.values, within)]  # type: ignore[misc]  # made at run time
        return _TYPES[schema.kind, schema.format]

    def _element(self, schema: Schema, within: tuple[str, ...]) -> Any:
        type_ = self._type(schema, within)
        return type_ | None if schema.format in _TIMES else type_


def _collection(schema: Schema, type_: Any) -> tuple[Any, Any]:
    # Kubernetes' storage turns an empty list into nil. Therefore the Struct refuses an empty list, so that the slow
    # path drops the empty list. An absent list is None, because empty lists would be most of the cost of a Struct.
    some = Annotated[type_, msgspec.Meta(min_length=1)] | None
    return some, None if schema.omitted else msgspec.field(default_factory=_null)


def _scalar(schema: Schema, type_: Any) -> tuple[Any, Any]:
    if schema.kind == "any":
        return type_, None if schema.omitted else msgspec.field(default_factory=_null)
    if schema.format == "byte":
        return (type_, b"") if schema.omitted else (type_ | None, msgspec.field(default_factory=_null))
    if schema.format == "quantity":
        return type_, msgspec.field(default_factory=_zero_quantity)
    if schema.kind == "int-or-string":
        return type_, msgspec.field(default_factory=int)
    zero = _ZEROS[schema.kind]
    return type_, zero if schema.omitted else msgspec.field(default_factory=type(zero))


def attribute(schema: Schema, name: str) -> str:
    """Return the attribute in the Struct of `schema` that holds the JSON field `name`."""
    return f"_{list(schema.properties).index(name)}"


def _is_recursive(schema: Schema, within: tuple[str, ...]) -> bool:
    if schema.definition in within:
        return True
    below = (*within, schema.definition) if schema.definition else within
    return any(
        _is_recursive(each, below) for each in (*schema.properties.values(), schema.items, schema.values) if each
    )
