"""Converts schemas to CEL types: the types of values, the names of fields, and the conversion of values.

Guarantees: a field name that is not valid in CEL is escaped by the rules of KEP-2876 (`x-y` is `x__dash__y`).
Expressions can access only declared fields whose names are valid in CEL or can be escaped.

Source: apiserver `pkg/cel/common/{schemas,values}.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.expressions import types
from ctrlmgr.expressions.escapes import escaped
from ctrlmgr.expressions.time_values import parse_duration, parse_timestamp
from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import EvalError, MapList, SetList
from ctrlmgr.extensions.structural import INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, Raw

_TEXT: Final[Raw] = {"type": "string"}
_METADATA: Final[Raw] = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_STRINGS: Final = {
    "byte": types.BYTES,
    "duration": types.DURATION,
    "date": types.TIMESTAMP,
    "date-time": types.TIMESTAMP,
    "datetime": types.TIMESTAMP,
}
_SCALARS: Final = {"boolean": types.BOOL, "number": types.DOUBLE, "integer": types.INT}


def fields_of(raw: Raw, *, is_resource: bool) -> Mapping[str, Raw]:
    """Return the schemas of an object's fields.

    Kind, apiVersion and metadata of a resource are always included. Their schemas are those in the schema if it
    declares all three fields.
    """
    properties: Mapping[str, Raw] = raw.get("properties") or {}
    if not is_resource or _declares_its_own(properties):
        return properties
    return {**properties, "apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}


def _declares_its_own(declared: Mapping[str, Raw]) -> bool:
    metadata = declared.get("metadata") or {}
    names: Mapping[str, Raw] = metadata.get("properties") or {}
    texts = (declared.get("kind"), declared.get("apiVersion"), names.get("name"), names.get("generateName"))
    return metadata.get("type") == "object" and all((each or {}).get("type") == "string" for each in texts)


def is_embedded(raw: Raw) -> bool:
    """Return whether a schema describes an embedded resource."""
    return bool(raw.get("x-kubernetes-embedded-resource"))


class Fields:
    """The object types of one schema, named by their paths, as an implementation of `types.Objects`."""

    def __init__(self) -> None:
        """Create an empty set of object types."""
        self._objects: dict[str, dict[str, Type]] = {}

    def field(self, name: str, field: str) -> Type | None:
        """Return the type of a field; None if the field does not exist."""
        return self._objects[name].get(field)

    def has_objects(self, name: str) -> bool:
        """Return whether this set contains the fields of objects with this type name."""
        return name in self._objects

    def has_type(self, name: str) -> bool:
        """Return whether an expression may create an object of this type, which is never allowed."""
        return False

    def declare(self, raw: Raw, *, is_resource: bool, name: str = "selfType") -> Type | None:
        """Return the type of a schema's values; None if the type is unknown."""
        if raw.get(INT_OR_STRING):
            return types.DYN
        kind = raw.get("type") or ""
        if kind == "array":
            return self._list(raw, name)
        if kind == "object":
            return self._object(raw, is_resource=is_resource, name=name)
        return _STRINGS.get(raw.get("format") or "", types.STRING) if kind == "string" else _SCALARS.get(kind)

    def _list(self, raw: Raw, name: str) -> Type | None:
        items = raw.get("items")
        inner = self._below(items, f"{name}.@idx") if isinstance(items, Mapping) else None
        return types.list_of(inner) if inner is not None else None

    def _object(self, raw: Raw, *, is_resource: bool, name: str) -> Type | None:
        additional = raw.get("additionalProperties")
        if isinstance(additional, Mapping) and not is_resource:
            inner = self._below(additional, f"{name}.@elem")
            return types.map_of(types.STRING, inner) if inner is not None else None
        declared: dict[str, Type] = {}
        for field, each in fields_of(raw, is_resource=is_resource).items():
            type_ = self._below(each, f"{name}.{field}")
            if type_ is not None and escaped(field):
                declared[escaped(field)] = type_
        self._objects[name] = declared
        return types.struct(name)

    def _below(self, raw: Raw, name: str) -> Type | None:
        return self.declare(raw, is_resource=is_embedded(raw), name=name)


def visible(value: Any, raw: Raw, *, is_resource: bool) -> Any:
    """Return a value as expressions access it."""
    if value is None or raw.get(INT_OR_STRING):
        return value
    if type(value) is list:
        return _visible_list(value, raw)
    if type(value) is dict:
        return _visible_object(value, raw, is_resource=is_resource)
    kind = raw.get("type")
    if kind == "number":
        return float(value) if type(value) is int else value
    if kind == "integer":
        return int(value) if type(value) is float else value
    return _visible_text(value, raw.get("format") or "") if type(value) is str else value


def _visible_list(value: list[Any], raw: Raw) -> list[Any]:
    items = raw.get("items")
    if not items:
        return value
    seen = [visible(each, items, is_resource=is_embedded(items)) for each in value]
    match raw.get(LIST_TYPE):
        case "set":
            return SetList(seen)
        case "map":
            return MapList(seen, [escaped(name) or name for name in raw.get(LIST_MAP_KEYS) or ()])
    return seen


def _visible_object(value: Mapping[str, Any], raw: Raw, *, is_resource: bool) -> dict[str, Any]:
    additional = raw.get("additionalProperties")
    if isinstance(additional, Mapping) and not is_resource:
        inner = is_embedded(additional)
        return {name: visible(each, additional, is_resource=inner) for name, each in value.items()}
    fields = fields_of(raw, is_resource=is_resource)
    return {
        escaped(name): visible(each, fields[name], is_resource=is_embedded(fields[name]))
        for name, each in value.items()
        if name in fields and each is not None and escaped(name)
    }


def _visible_text(text: str, format_: str) -> Any:
    try:
        if format_ == "byte":
            return base64.b64decode(text)
        if format_ == "duration":
            return parse_duration(text)
        if format_ == "date":
            return parse_timestamp(f"{text}T00:00:00Z")
        return parse_timestamp(text) if format_ in ("date-time", "datetime") else text
    except (EvalError, binascii.Error, ValueError):
        return text
