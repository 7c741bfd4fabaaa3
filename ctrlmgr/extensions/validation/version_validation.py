"""Validates the parts of a CustomResourceDefinition's version: deprecation, columns, selectable fields, subresources.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, required, too_many
from ctrlmgr.extensions.paths.field_path import resolve
from ctrlmgr.extensions.structural import NotStructural, Raw, Structural, refuse_unsupported
from ctrlmgr.golang.go_text import escape_html

MOST_SELECTABLE_FIELDS: Final = 8
_LONGEST_WARNING: Final = 256
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES: Final = ("string", "boolean", "integer")


def deprecation_errors(version: Raw, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of a version's deprecation warning."""
    text: str | None = version.get("deprecationWarning")
    at = path.child("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield _invalid_text(at, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > _LONGEST_WARNING:
        yield _invalid_text(at, text, f"must be <= {_LONGEST_WARNING} characters long")
    if not text:
        yield _invalid_text(at, text, "must not be an empty string")
    for index, character in enumerate(text):
        if not character.isprintable():
            where = len(text[:index].encode())
            words = f"must only contain printable UTF-8 characters; non-printable character found at index {where}"
            yield _invalid_text(at, text, words)
            return


def _invalid_text(path: Path, text: str, detail: str) -> FieldError:
    """Return the validation error for an optional string, which Go formats as JSON because it is a pointer."""
    shown = escape_html(msgspec.json.encode(text)).decode()
    return FieldError("FieldValueInvalid", str(path), f"Invalid value: {shown}: {detail}")


def column_errors(columns: Sequence[Raw], path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of the printer columns of a CustomResourceDefinition."""
    for index, column in enumerate(columns):
        yield from _column_errors(column, path.child("additionalPrinterColumns").at(index))


def _column_errors(column: Raw, path: Path) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(path.child("name"))
    type_, words = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_:
        yield required(path.child("type"), words)
    elif type_ not in _COLUMN_TYPES:
        yield invalid(path.child("type"), type_, words)
    form = column.get("format") or ""
    if form and form not in _COLUMN_FORMATS:
        yield invalid(path.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    yield from _path_errors(column.get("jsonPath") or "", path.child("JSONPath"))


def _path_errors(text: str, path: Path) -> Iterator[FieldError]:
    if not text:
        yield required(path)
    elif not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")


def selectable_errors(fields: Sequence[Raw], schema: Raw, path: Path, *, allow_many: bool) -> Iterator[FieldError]:
    """Yield the validation errors of the selectable fields of a CustomResourceDefinition.

    If `allow_many` is set, too many fields are allowed, because the old CustomResourceDefinition had too many.
    """
    try:
        refuse_unsupported(schema)
    except NotStructural as error:
        yield invalid(path.child("schema.openAPIV3Schema"), "", str(error))
        return
    structural = Structural(schema)
    seen: set[str] = set()
    for index, each in enumerate(fields):
        yield from _selectable_errors(
            each.get("jsonPath") or "", structural, path.child("selectableFields").at(index), seen
        )
    if len(seen) > MOST_SELECTABLE_FIELDS and not allow_many:
        yield too_many(path.child("selectableFields"), len(seen), MOST_SELECTABLE_FIELDS)


def _selectable_errors(text: str, schema: Structural, path: Path, seen: set[str]) -> Iterator[FieldError]:
    at = path.child("jsonPath")
    if not text:
        yield required(at)
        return
    try:
        field, found = resolve(text, schema, allow_brackets=False)
    except ValueError as error:
        yield invalid(at, text, f"is an invalid path: {error}")
        return
    if field.partition(".")[0] == "metadata":
        yield invalid(at, text, "must not point to fields in metadata")
    if found.type not in _SELECTABLE_TYPES:
        words = "must point to a field of type string, boolean or integer."
        yield invalid(at, text, f"{words} Enum string fields and strings with formats are allowed.")
    if field in seen:
        yield duplicate(at, text)
    seen.add(field)


def subresource_errors(subresources: Raw | None, path: Path) -> Iterator[FieldError]:
    """Yield the validation errors of the paths of a scale subresource."""
    scale: Raw | None = (subresources or {}).get("scale")
    if scale is None:
        return
    at = path.child("subresources", "scale")
    for name, above in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        text = scale.get(name) or ""
        found = list(_path_errors(text, at.child(name)))
        yield from found
        if not found and not text.startswith(f"{above}."):
            yield invalid(at.child(name), text, f"should be a json path under {above}")
    selector = scale.get("labelSelectorPath")
    if selector:
        found = list(_path_errors(selector, at.child("labelSelectorPath")))
        yield from found
        if not found and not selector.startswith((".spec.", ".status.")):
            words = "should be a json path under either .spec or .status"
            yield _invalid_text(at.child("labelSelectorPath"), selector, words)
