"""Converts the schemas in a CustomResourceDefinition to Kubernetes' canonical form.

In a schema, the value of some keywords (`items`, `additionalProperties`, `dependencies`) is either a schema or has
another type. The published schema of CustomResourceDefinitions does not describe such values. Therefore this module
decodes schemas as leniently as Kubernetes: unknown fields are dropped without an error.

Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/marshal.go`.
"""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from typing import Any, Final

import msgspec

from ctrlmgr.extensions.structural import NESTING
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.schema_pruning import prune
from ctrlmgr.schema.structs import read_value

_DEFINITION: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_LISTS = ("allOf", "anyOf", "oneOf")
_NUMBERS: Final = frozenset(("maximum", "minimum", "multipleOf"))
_LARGEST_WHOLE: Final = 1e21
"""The smallest number that Go writes with an exponent."""
_MAPS = ("properties", "patternProperties", "definitions")


@cache
def _props() -> tuple[Schema, type[msgspec.Struct]]:
    definitions = Definitions.builtin()
    schema = definitions.schema(_DEFINITION)
    return schema, definitions.struct(schema.definition)


def canonicalize(spec: dict[str, Any]) -> None:
    """Convert all schemas in the spec of a CustomResourceDefinition.

    Raises ValueError with Go's message if a value has a wrong type.
    """
    for version in spec.get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            _below(schema)


def _decoded(value: dict[str, Any]) -> dict[str, Any]:
    schema, struct = _props()
    try:
        pruned, _ = prune(schema, value)
        decoded: dict[str, Any] = msgspec.to_builtins(msgspec.convert(pruned, struct, dec_hook=read_value))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    _below(decoded)
    return decoded


def _below(schema: dict[str, Any]) -> None:
    if not _NUMBERS.isdisjoint(schema):
        schema |= {keyword: _number(schema[keyword]) for keyword in _NUMBERS & schema.keys()}
    if NESTING.isdisjoint(schema):
        return
    for keyword in _LISTS:
        for each in filter(None, schema.get(keyword) or ()):
            _below(each)
    for keyword in _MAPS:
        for each in filter(None, (schema.get(keyword) or {}).values()):
            _below(each)
    if isinstance(schema.get("not"), dict):
        _below(schema["not"])
    if "items" in schema:
        _items(schema)
    for keyword in ("additionalProperties", "additionalItems"):
        if keyword in schema:
            schema[keyword] = _schema_or_bool(schema[keyword])
    for name, each in (schema.get("dependencies") or {}).items():
        if isinstance(each, dict):
            schema["dependencies"][name] = _decoded(each)


def _number(value: Any) -> Any:
    """Return a number as Go writes it after a conversion to float64."""
    if type(value) not in (int, float) or not math.isfinite(value):
        return value
    number = float(value)
    return int(Decimal(repr(number))) if number.is_integer() and abs(number) < _LARGEST_WHOLE else number


def _items(schema: dict[str, Any]) -> None:
    items = schema["items"]
    if isinstance(items, dict):
        schema["items"] = _decoded(items)
    elif isinstance(items, list):
        schema["items"] = [_decoded(each) if isinstance(each, dict) else {} for each in items]
    else:
        del schema["items"]


def _schema_or_bool(value: Any) -> Any:
    if isinstance(value, dict):
        return _decoded(value)
    if isinstance(value, bool):
        return value
    raise ValueError("boolean or JSON schema expected")
