"""Formats versions and schemas of CustomResourceDefinitions for error messages, as Kubernetes prints its Go structs.

Source: apiextensions-apiserver `pkg/apis/apiextensions/{types,types_jsonschema}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.extensions.schema_validation.go_json_values import shown
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.validation.internal_form import InternalSpec, Part


class _Field(NamedTuple):
    key: str
    """The JSON name of the field in a CustomResourceDefinition."""
    name: str
    """The name of the field in Kubernetes' internal struct."""
    zero: Any = None
    printed: Callable[[Any], Any] = shown


def _struct(value: Raw | None, fields: Sequence[_Field]) -> dict[str, Any] | None:
    if value is None:
        return None
    return {field.name: _printed(field, value.get(field.key)) for field in fields}


def _printed(field: _Field, value: Any) -> Any:
    return field.zero if value is None else field.printed(value)


def _list_of(fields: Sequence[_Field]) -> Callable[[Any], Any]:
    return lambda values: [_struct(each, fields) for each in values]


def _schemas(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: printed_schema(values[name]) for name in sorted(values)}
    return [printed_schema(each) for each in values]


def printed_items(value: Any) -> Any:
    """Return the schema or schemas of a list's items as Kubernetes prints them."""
    is_list = isinstance(value, list)
    return {"Schema": None if is_list else printed_schema(value), "JSONSchemas": _schemas(value) if is_list else None}


def _schema_or_bool(value: Any) -> Any:
    is_schema = isinstance(value, Mapping)
    return {"Allows": is_schema or bool(value), "Schema": printed_schema(value) if is_schema else None}


def _dependencies(values: Any) -> Any:
    return {
        name: {
            "Schema": printed_schema(each) if isinstance(each, Mapping) else None,
            "Property": None if isinstance(each, Mapping) else each,
        }
        for name, each in sorted(values.items())
    }


_RULE: Final = (
    _Field("rule", "Rule", ""), _Field("message", "Message", ""), _Field("messageExpression", "MessageExpression", ""),
    _Field("reason", "Reason"), _Field("fieldPath", "FieldPath", ""), _Field("optionalOldSelf", "OptionalOldSelf"),
)  # fmt: skip


def printed_rule(rule: Raw) -> dict[str, Any]:
    """Return a validation rule as Kubernetes prints it."""
    return _struct(rule, _RULE) or {}


_DOCS: Final = (_Field("description", "Description", ""), _Field("url", "URL", ""))


def printed_schema(schema: Raw) -> dict[str, Any]:
    """Return a schema as Kubernetes prints it."""
    return _struct(schema, SCHEMA_FIELDS) or {}


SCHEMA_FIELDS: Final[Sequence[_Field]] = (
    _Field("id", "ID", ""), _Field("$schema", "Schema", ""), _Field("$ref", "Ref"),
    _Field("description", "Description", ""), _Field("type", "Type", ""), _Field("nullable", "Nullable", False),
    _Field("format", "Format", ""), _Field("title", "Title", ""), _Field("default", "Default"),
    _Field("maximum", "Maximum"), _Field("exclusiveMaximum", "ExclusiveMaximum", False),
    _Field("minimum", "Minimum"), _Field("exclusiveMinimum", "ExclusiveMinimum", False),
    _Field("maxLength", "MaxLength"), _Field("minLength", "MinLength"), _Field("pattern", "Pattern", ""),
    _Field("maxItems", "MaxItems"), _Field("minItems", "MinItems"), _Field("uniqueItems", "UniqueItems", False),
    _Field("multipleOf", "MultipleOf"), _Field("enum", "Enum"), _Field("maxProperties", "MaxProperties"),
    _Field("minProperties", "MinProperties"), _Field("required", "Required"),
    _Field("items", "Items", None, printed_items), _Field("allOf", "AllOf", None, _schemas),
    _Field("oneOf", "OneOf", None, _schemas),
    _Field("anyOf", "AnyOf", None, _schemas), _Field("not", "Not", None, printed_schema),
    _Field("properties", "Properties", None, _schemas),
    _Field("additionalProperties", "AdditionalProperties", None, _schema_or_bool),
    _Field("patternProperties", "PatternProperties", None, _schemas),
    _Field("dependencies", "Dependencies", None, _dependencies),
    _Field("additionalItems", "AdditionalItems", None, _schema_or_bool),
    _Field("definitions", "Definitions", None, _schemas),
    _Field("externalDocs", "ExternalDocs", None, lambda value: _struct(value, _DOCS)), _Field("example", "Example"),
    _Field("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    _Field("x-kubernetes-embedded-resource", "XEmbeddedResource", False),
    _Field("x-kubernetes-int-or-string", "XIntOrString", False),
    _Field("x-kubernetes-list-map-keys", "XListMapKeys"), _Field("x-kubernetes-list-type", "XListType"),
    _Field("x-kubernetes-map-type", "XMapType"),
    _Field("x-kubernetes-validations", "XValidations", None, _list_of(_RULE)),
)  # fmt: skip
"""The keywords of a schema, in the order of the fields of Kubernetes' struct `JSONSchemaProps`."""

_SCALE: Final = (
    _Field("specReplicasPath", "SpecReplicasPath", ""), _Field("statusReplicasPath", "StatusReplicasPath", ""),
    _Field("labelSelectorPath", "LabelSelectorPath"),
)  # fmt: skip
_SUBRESOURCES: Final = (
    _Field("status", "Status"),
    _Field("scale", "Scale", None, lambda value: _struct(value, _SCALE)),
)
_VALIDATION: Final = (_Field("openAPIV3Schema", "OpenAPIV3Schema", None, printed_schema),)
_COLUMN: Final = (
    _Field("name", "Name", ""), _Field("type", "Type", ""), _Field("format", "Format", ""),
    _Field("description", "Description", ""), _Field("priority", "Priority", 0), _Field("jsonPath", "JSONPath", ""),
)  # fmt: skip
_SELECTABLE: Final = (_Field("jsonPath", "JSONPath", ""),)
_VERSION: Final = (
    _Field("name", "Name", ""), _Field("served", "Served", False), _Field("storage", "Storage", False),
    _Field("deprecated", "Deprecated", False), _Field("deprecationWarning", "DeprecationWarning"),
)  # fmt: skip


def printed_versions(spec: InternalSpec) -> list[dict[str, Any]] | None:
    """Return the `spec.versions` of a CustomResourceDefinition as Kubernetes prints it.

    The function returns None if the definition has no versions.
    """
    if spec.raw.get("versions") is None:
        return None
    return [_version(version, part) for version, part in zip(spec.versions, spec.own, strict=True)]


def _version(version: Raw, part: Part) -> dict[str, Any]:
    printed = _struct(version, _VERSION) or {}
    printed["Schema"] = _struct(part.validation, _VALIDATION)
    printed["Subresources"] = _struct(part.subresources, _SUBRESOURCES)
    printed["AdditionalPrinterColumns"] = _list_of(_COLUMN)(part.columns) or None
    printed["SelectableFields"] = _list_of(_SELECTABLE)(part.selectable) or None
    return printed
