"""Validates the root schema of a version of a CustomResourceDefinition, and the fields next to this schema.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
(`validateCustomResourceDefinitionValidation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid
from ctrlmgr.extensions.structural import NotStructural, Raw, Structural, refuse_unsupported
from ctrlmgr.extensions.validation.default_values import validate_defaults
from ctrlmgr.extensions.validation.error_formatting import SCHEMA_FIELDS, printed_schema
from ctrlmgr.extensions.validation.internal_form import Part, schema_of
from ctrlmgr.extensions.validation.ratcheting import Requirements
from ctrlmgr.extensions.validation.rule_validation import expression_errors
from ctrlmgr.extensions.validation.schema_validation import Rules, validate_schema
from ctrlmgr.extensions.validation.structural_violations import validate_structure
from ctrlmgr.extensions.validation.version_validation import (
    column_errors,
    deprecation_errors,
    selectable_errors,
    subresource_errors,
)

_BESIDE_STATUS: Final = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
    "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items",
    "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
"""The keywords that are allowed in the root schema if the CustomResourceDefinition has a status subresource.

All other keywords are forbidden, because writes to the status validate only the status, without the root schema.
"""

_STATUS_WORDS = "at the root of the schema if the status subresource is enabled"


def part_errors(part: Part, required: Requirements, *, has_status: bool) -> Iterator[FieldError]:
    """Yield the validation errors of the parts of one version, or of the parts that all versions share."""
    schema = schema_of(part.validation)
    if schema is not None:
        below = "schema" if part.version else "validation"
        at, is_unchanged = part.path.child(below, "openAPIV3Schema"), part.version in required.unchanged
        yield from schema_errors(schema, at, required, has_status=has_status, is_unchanged=is_unchanged)
    yield from subresource_errors(part.subresources, part.path)
    yield from column_errors(part.columns, part.path)
    if part.selectable:
        yield from _selectable(part, schema, required)


def _selectable(part: Part, schema: Raw | None, required: Requirements) -> Iterator[FieldError]:
    if schema is not None:
        allow_many = part.version in required.many_selectable
        yield from selectable_errors(part.selectable, schema, part.path, allow_many=allow_many)
    elif part.version:
        words = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield invalid(part.path.child("selectableFields"), "", words)
    elif part.validation is None:
        yield invalid(part.path.child("selectableFields"), "", "may only be set when validations.schema is included")


def version_errors(version: Raw, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of the fields that only a version has, such as its deprecation warning."""
    yield from deprecation_errors(version, path)


def schema_errors(
    schema: Raw, path: Path, required: Requirements, *, has_status: bool, is_unchanged: bool = False
) -> list[FieldError]:
    """Return the validation errors of a schema, in Kubernetes' order.

    `is_unchanged` says that the old CustomResourceDefinition has an equal schema.
    """
    errors = list(_beside_status(schema, path)) if has_status else []
    if schema.get("nullable"):
        errors.append(forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    unsupported: list[FieldError] = []
    unsound: list[FieldError] = []
    if required.structural:
        try:
            refuse_unsupported(schema)
        except NotStructural as error:
            unsupported = [invalid(path, "", str(error))]
        else:
            unsound = _structural(schema, path, required)
    rules = Rules(required.known_types, required.atomic_set_items, required.strict_lists)
    found = list(validate_schema(schema, path, rules))
    errors += unsound + found
    if required.structural and not unsupported and not unsound:
        errors += expression_errors(schema, path, is_unchanged=is_unchanged, known=found)
    return errors or unsupported


def _structural(schema: Raw, path: Path, required: Requirements) -> list[FieldError]:
    return validate_structure(schema, path) or validate_defaults(
        Structural(schema), path, require_pruned=required.pruned_defaults
    )


def _beside_status(schema: Raw, path: Path) -> Iterator[FieldError]:
    for keyword, name, *_ in SCHEMA_FIELDS:
        value = schema.get(keyword)
        if value is None or (value in ("", False, [], {}) and not isinstance(value, Mapping)):
            continue
        if name == "Type":
            if value != "object":
                yield invalid(path.child("type"), value, f'only "object" is allowed as the type {_STATUS_WORDS}')
                return
        elif name not in _BESIDE_STATUS:
            yield invalid(
                path, printed_schema(schema), f"only [{' '.join(_BESIDE_STATUS)}] fields are allowed {_STATUS_WORDS}"
            )
            return
