"""Derives the structural schema of a class: OpenAPI v3, as in CustomResourceDefinitions.

Guarantees: all functions are pure, so the same class always gives the same schema. The class can decode every object
that its schema accepts. If a field's type has no structural schema, a TypeError with the path of the field is raised.

Sources: Kubernetes' "structural schemas" (KEP-1185), and controller-gen's output for the same types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, get_type_hints

import msgspec
from msgspec import inspect

from ctrlmgr.framework.typed_kinds import Condition, Metadata
from ctrlmgr.regexp import PatternError, compiled

Schema: TypeAlias = dict[str, Any]

_TEXTS: Final[Mapping[type, Schema]] = {
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.DateType: {"type": "string", "format": "date"},
    inspect.UUIDType: {"type": "string", "format": "uuid"},
    inspect.DecimalType: {"type": "string"},
    inspect.TimeDeltaType: {"type": "string"},
    inspect.BytesType: {"type": "string", "format": "byte"},
}
_NUMBERS: Final = {"ge": ("minimum", None), "le": ("maximum", None), "gt": ("minimum", "exclusiveMinimum")}
_NUMBERS_TOO: Final = {"lt": ("maximum", "exclusiveMaximum"), "multiple_of": ("multipleOf", None)}
_ANYTHING: Final[Schema] = {"x-kubernetes-preserve-unknown-fields": True}


def schema_of(cls: type[Any]) -> Schema:
    """Return the schema of a kind; raises TypeError for a field with an unsupported type."""
    root = _struct(inspect.type_info(cls), cls.__name__, ())
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **{name: field for name, field in root["properties"].items() if name != "metadata"},
    }
    if "status" in properties:
        properties["status"] = _without_defaults(properties["status"])
        properties["status"].pop("default", None)
    return {**root, "properties": properties}


def _of(info: inspect.Type, path: str, seen: tuple[type, ...]) -> Schema:
    match info:
        case inspect.Metadata():
            return _of(info.type, path, seen) | (info.extra_json_schema or {})
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int64", **_bounds(info)}
        case inspect.FloatType():
            return {"type": "number", **_bounds(info)}
        case inspect.StrType():
            return {"type": "string", **_lengths(info, "Length"), **_pattern(info.pattern, path)}
        case inspect.LiteralType():
            return _enum(info.values, path)
        case inspect.EnumType():
            return _enum([each.value for each in info.cls], path)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return _list(info, path, seen)
        case inspect.DictType():
            return _map(info, path, seen)
        case inspect.UnionType():
            return _union(info, path, seen)
        case inspect.StructType() | inspect.DataclassType():
            return _struct(info, path, seen)
        case inspect.AnyType() | inspect.RawType():
            return dict(_ANYTHING)
    if type(info) in _TEXTS:
        return dict(_TEXTS[type(info)])
    what = type(info).__name__.removesuffix("Type")
    raise TypeError(
        f"{path}: a definition cannot express {what}; use str, int, float, bool, list, dict, a Model, or Any"
    )


def _bounds(info: Any) -> Schema:
    found: Schema = {}
    for name, (keyword, flag) in {**_NUMBERS, **_NUMBERS_TOO}.items():
        value = getattr(info, name)
        if value is not None:
            found[keyword] = value
            if flag:
                found[flag] = True
    return found


def _pattern(pattern: str | None, path: str) -> Schema:
    """Return a regular expression in the form that the schema contains.

    Raises TypeError if Python accepts the expression, but API servers refuse it.
    """
    if not pattern:
        return {}
    try:
        compiled(pattern)
    except PatternError as error:
        raise TypeError(
            f"{path}: API servers refuse the pattern {pattern!r}, which is not a regular expression of RE2: {error}"
        ) from error
    return {"pattern": pattern}


def _lengths(info: Any, what: str) -> Schema:
    bounds = {f"min{what}": info.min_length, f"max{what}": info.max_length}
    return {name: value for name, value in bounds.items() if value is not None}


def _enum(values: Any, path: str) -> Schema:
    if all(isinstance(each, str) for each in values):
        return {"type": "string", "enum": sorted(values)}
    if all(isinstance(each, int) for each in values):
        return {"type": "integer", "enum": sorted(values)}
    raise TypeError(f"{path}: the values of an enumeration must be either all strings or all integers")


def _list(info: Any, path: str, seen: tuple[type, ...]) -> Schema:
    found = {"type": "array", "items": _of(info.item_type, f"{path}[]", seen), **_lengths(info, "Items")}
    if isinstance(info, inspect.SetType | inspect.FrozenSetType):
        found["x-kubernetes-list-type"] = "set"
    item = info.item_type.type if isinstance(info.item_type, inspect.Metadata) else info.item_type
    if isinstance(item, inspect.StructType) and issubclass(item.cls, Condition):
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return found


def _map(info: inspect.DictType, path: str, seen: tuple[type, ...]) -> Schema:
    if not isinstance(info.key_type, inspect.StrType):
        raise TypeError(f"{path}: the keys of a map must be strings")
    if isinstance(info.value_type, inspect.AnyType):
        return {"type": "object", **_ANYTHING}
    values = _of(info.value_type, f"{path}{{}}", seen)
    return {"type": "object", "additionalProperties": values, **_lengths(info, "Properties")}


def _union(info: inspect.UnionType, path: str, seen: tuple[type, ...]) -> Schema:
    """Return the schema of a field whose type is a union: an optional type, or a number or string.

    Other unions of types are not supported.
    """
    types = [each for each in info.types if not isinstance(each, inspect.NoneType)]
    if len(types) == 1:
        return _of(types[0], path, seen)
    if {type(each) for each in types} == {inspect.IntType, inspect.StrType}:
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    raise TypeError(
        f"{path}: a field has one type; the only union that a definition supports is of integers and strings"
    )


def _struct(info: Any, path: str, seen: tuple[type, ...]) -> Schema:
    if info.cls in seen:
        raise TypeError(f"{path}: {info.cls.__name__} contains itself, which a definition cannot express")
    if issubclass(info.cls, Metadata):
        return {"type": "object"}
    inside = (*seen, info.cls)
    properties = {each.encode_name: _field(each, f"{path}.{each.encode_name}", inside) for each in info.fields}
    _check_defaults(info, path)
    required = [each.encode_name for each in info.fields if each.required]
    found: Schema = {"type": "object", "properties": properties}
    if (text := _description(info.cls)) and seen:
        found["description"] = text
    elif text:
        found = {"description": text, **found}
    return found | ({"required": required} if required else {})


def _description(cls: type[Any]) -> str:
    text = cls.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{cls.__name__}(") else " ".join(text.split())


def _field(field: inspect.Field, path: str, seen: tuple[type, ...]) -> Schema:
    found = _of(field.type, path, seen)
    default = _default(field)
    return found if default is msgspec.NODEFAULT else {**found, "default": default}


def _check_defaults(info: Any, path: str) -> None:
    """Raise TypeError if a field's schema does not allow its default.

    API servers refuse such CustomResourceDefinitions.
    """
    hints = get_type_hints(info.cls, include_extras=True)
    for field in info.fields:
        default = _default(field)
        try:
            if default is not msgspec.NODEFAULT:
                msgspec.convert(default, hints[field.name])
        except msgspec.ValidationError as error:
            raise TypeError(f"{path}.{field.encode_name}: its default {default!r} is not allowed: {error}") from error


def _default(field: inspect.Field) -> Any:
    """Return a field's default; NODEFAULT for an empty default, because objects omit fields that are empty."""
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is msgspec.NODEFAULT or value is None or value is msgspec.UNSET:
        return msgspec.NODEFAULT
    is_struct = isinstance(value, msgspec.Struct) or hasattr(value, "__dataclass_fields__")
    plain = msgspec.to_builtins(value)
    return msgspec.NODEFAULT if not is_struct and plain in ({}, [], "", ()) else plain


def _without_defaults(schema: Schema) -> Schema:
    """Remove the defaults from the schema of a status, because a controller sets all fields of a status."""
    found = {name: value for name, value in schema.items() if name != "default"}
    if "properties" in found:
        found["properties"] = {name: _without_defaults(each) for name, each in found["properties"].items()}
    if isinstance(found.get("items"), dict):
        found["items"] = _without_defaults(found["items"])
    return found
