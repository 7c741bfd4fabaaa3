"""Converts the metadata of embedded objects to the form of Go's struct, and validates it as in any object.

Guarantees: coerced metadata contains only known fields of the right types, in Kubernetes' canonical form. Schemas
without embedded resources cause no work.

Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/{algorithm,coerce,validation}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.field import ROOT, FieldError, Path, invalid, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import validate_metadata
from ctrlmgr.extensions.structural import TYPE_META, Structural
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.schema_pruning import json_kind, prune
from ctrlmgr.schema.structs import read_value

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAME = "fakename"
"""Kubernetes' placeholder for a missing name, which is not an error in embedded metadata."""


class Coerced(NamedTuple):
    """The result of the coercion of embedded metadata."""

    unknown: list[str]
    """The sorted paths of unknown fields in embedded metadata."""
    error: FieldError | None = None
    """The error of the first value that could not be coerced; None if there was no error."""


@cache
def _object_meta() -> tuple[Schema, type[msgspec.Struct]]:
    definitions = Definitions.builtin()
    schema = definitions.schema(_OBJECT_META)
    return schema, definitions.struct(schema.definition)


def read_metadata(value: Any) -> tuple[dict[str, Any], list[str]]:
    """Return metadata in the form of Go's struct, and its unknown fields.

    Raises ValueError, with Go's message, if a value has a wrong type.
    """
    schema, struct = _object_meta()
    if value is None:
        return {}, []
    if type(value) is not dict:
        raise ValueError(f"json: cannot unmarshal {json_kind(value)} into Go value of type v1.ObjectMeta")
    try:
        pruned, problems = prune(schema, value)
        shaped = msgspec.to_builtins(msgspec.convert(pruned, struct, dec_hook=read_value))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if shaped.get("creationTimestamp") is None:
        shaped.pop("creationTimestamp", None)
    unknown = [each.removeprefix('unknown field "').removesuffix('"') for each in problems if each[0] == "u"]
    return shaped, unknown


def _read_leniently(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return metadata without the fields whose values have wrong types."""
    kept: dict[str, Any] = {}
    unknown: list[str] = []
    for key, each in value.items():
        try:
            shaped, problems = read_metadata({key: each})
        except ValueError:
            continue
        kept |= shaped
        unknown += problems
    return kept, unknown


def has_embedded(schema: Structural) -> bool:
    """Return whether a schema node, or a schema node nested in it, is an embedded resource."""
    return schema.embedded or any(map(has_embedded, schema.below()))


def coerce(value: Any, schema: Structural, *, path: Path = ROOT, drop_invalid: bool = False) -> Coerced:
    """Coerce the metadata of embedded resources in place; if `drop_invalid` is true, remove invalid fields."""
    unknown: list[str] = []
    try:
        _coerce(value, schema, path, drop_invalid, unknown)
    except _NotCoercible as refused:
        return Coerced(sorted(unknown), refused.error)
    return Coerced(sorted(unknown))


class _NotCoercible(Exception):
    def __init__(self, error: FieldError) -> None:
        self.error = error


def _coerce(value: Any, schema: Structural, path: Path, drop_invalid: bool, unknown: list[str]) -> None:
    if type(value) is dict:
        if schema.embedded:
            _coerce_meta(value, path, drop_invalid, unknown)
        for below, each, at in _below(value, schema, path):
            _coerce(each, below, at, drop_invalid, unknown)
    elif type(value) is list and schema.items is not None:
        for index, each in enumerate(value):
            _coerce(each, schema.items, path.at(index), drop_invalid, unknown)


def _below(value: dict[str, Any], schema: Structural, path: Path) -> Iterator[tuple[Structural, Any, Path]]:
    for key, each in value.items():
        declared = schema.properties.get(key)
        if declared is not None:
            yield declared, each, path.child(key)
        elif schema.additional is not None:
            yield schema.additional, each, path.key(key)


def _coerce_meta(value: dict[str, Any], path: Path, drop_invalid: bool, unknown: list[str]) -> None:
    for key in TYPE_META:
        if key in value and type(value[key]) is not str:
            if not drop_invalid:
                raise _NotCoercible(invalid(path.child(key), value[key], "must be a string"))
            del value[key]
    if "metadata" not in value:
        return
    at = path.child("metadata")
    metadata = value["metadata"]
    try:
        shaped, problems = read_metadata(metadata)
    except ValueError as error:
        if not drop_invalid:
            raise _NotCoercible(invalid(at, metadata, str(error))) from error
        if type(metadata) is not dict:
            return
        shaped, problems = _read_leniently(metadata)
    value["metadata"] = shaped
    unknown += [f"{at}.{each}" for each in problems]


def validate_embedded(value: Any, schema: Structural, path: Path = ROOT) -> list[FieldError]:
    """Return the errors in the metadata of embedded resources."""
    errors: list[FieldError] = []
    if type(value) is dict:
        if schema.embedded:
            errors += _validate_resource(value, path)
        for below, each, at in _below(value, schema, path):
            errors += validate_embedded(each, below, at)
    elif type(value) is list and schema.items is not None:
        for index, each in enumerate(value):
            errors += validate_embedded(each, schema.items, path.at(index))
    return errors


def _validate_resource(value: dict[str, Any], path: Path) -> list[FieldError]:
    errors = [required(path.child(key)) for key in ("apiVersion", "kind") if key not in value]
    if "apiVersion" in value:
        errors += _validate_api_version(value["apiVersion"], path.child("apiVersion"))
    if "kind" in value:
        errors += _validate_kind(value["kind"], path.child("kind"))
    if "metadata" in value:
        errors += _validate_metadata(value["metadata"], path.child("metadata"))
    return errors


def _validate_api_version(value: Any, path: Path) -> list[FieldError]:
    if type(value) is not str:
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    if value.count("/") > 1:
        return [invalid(path, value, f"unexpected GroupVersion string: {value}")]
    return []


def _validate_kind(value: Any, path: Path) -> list[FieldError]:
    if type(value) is not str:
        return [invalid(path, value, "must be a string")]
    if not value:
        return [invalid(path, value, "must not be empty")]
    problems = name_formats.dns1035_label(value.lower())
    words = "may have mixed case, but should otherwise match: " + ",".join(problems)
    return [invalid(path, value, words)] if problems else []


def _validate_metadata(value: Any, path: Path) -> list[FieldError]:
    try:
        metadata, _ = read_metadata(value)
    except ValueError as error:
        return [invalid(path, value, str(error))]
    return validate_metadata(
        {"name": _NAME, **metadata},
        namespaced=bool(metadata.get("namespace")),
        name_check=name_formats.path_segment_name,
        path=path,
        any_finalizer=True,
    )
