"""Decodes and applies the body of a PATCH (apiserver `endpoints/handlers/patch.go`).

Guarantees: each attempt applies the patch to the newest state, in the served version. The error that the object does
not exist (404) takes precedence over errors in the patch, and errors in the patch take precedence over errors in the
new state (422).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.field import invalid, refuse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch import check_json_patch, json_patch, merge_patch, strategic_merge_patch
from ctrlmgr.engine.patch.json_patch import MAX_COPIED
from ctrlmgr.engine.request_options import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Body,
    WriteOptions,
)
from ctrlmgr.errors import BadRequest, Invalid, StatusDetails, UnsupportedMediaType
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.schema.codec import ObjectCodec
from ctrlmgr.schema.raw_extension import with_sorted_raw_extensions
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.schema_pruning import json_kind

_YAML_ERRORS = "yaml: unmarshal errors:\n"

_encode = msgspec.json.Encoder().encode


class Patched(NamedTuple):
    """An object to which a patch was applied, in the API version of the patch."""

    fields: Unstructured
    warnings: Sequence[str]


class Patch:
    """One patch in the form in which it was sent; it is decoded when it is applied."""

    def __init__(self, body: Body, options: WriteOptions) -> None:
        """Create a patch from a body; raises `UnsupportedMediaType` if the media type of the body is unknown."""
        self.is_apply = body.media_type == APPLY_PATCH
        """Whether the patch is a server-side apply; callers must use `applied` for a server-side apply, and `apply` for
        other patches.
        """
        if not self.is_apply and body.media_type not in _KINDS:
            raise UnsupportedMediaType("415: Unsupported Media Type", details=StatusDetails())
        self._body = body
        self._directive = options.field_validation

    @property
    def size(self) -> int:
        """An estimate of the work that the patch causes, in bytes; a few `copy` operations may create megabytes."""
        data = self._body.data
        may_copy = self._body.media_type == JSON_PATCH and (b"copy" in data or b"\\u" in data)
        return len(data) + (MAX_COPIED if may_copy else 0)

    def apply(self, live: Unstructured, codec: ObjectCodec, schema: Schema | None) -> Patched:
        """Return the object that results if the patch is applied to `live`, decoded as its kind.

        The argument `live` is not changed, but the result shares unchanged parts with it. The argument `schema` is the
        schema for strategic merge patches; None if the kind does not accept such patches. Raises `BadRequest` if the
        patch is malformed. Raises `Invalid` if applying the patch fails, or if the patched object is not a valid object
        of this kind.
        """
        patched, problems = _KINDS[self._body.media_type](live, self._body.data, schema, self._directive)
        try:
            fields, unknown = codec.read(patched, live)
        except BadRequest as error:
            raise _unreadable(_encode(patched).decode(), str(error)) from error
        except RecursionError as error:  # operations can create deeper nesting than a document may have
            raise BadRequest("the patched object nests too deeply") from error
        problems = (*problems, *unknown)
        if problems and self._directive == "Strict":
            raise _unreadable(_encode(patched).decode(), f"strict decoding error: {', '.join(problems)}")
        return Patched(fields, problems if self._directive == "Warn" else ())

    def applied(self) -> Patched:
        """Return the body of an apply, which is YAML; raises `BadRequest` if the YAML cannot be decoded."""
        try:
            fields, repeated = yaml_document.decode(self._body.data)
        except ValueError as error:
            raise BadRequest(f"error decoding YAML: {error}") from error
        if not isinstance(fields, dict):
            raise BadRequest("error decoding YAML: error converting YAML to JSON: not an object")
        return Patched(fields, repeated)

    def check_applied(self, repeated: Sequence[str]) -> Sequence[str]:
        """Return the warnings for the body of an apply, or raise `BadRequest`.

        The caller must call this function after it has merged the body.
        """
        if repeated and self._directive == "Strict":
            raise BadRequest(f"error strict decoding YAML: {repeated[0]}")
        return split_warnings(repeated) if self._directive == "Warn" else ()


def split_warnings(problems: Iterable[str]) -> list[str]:
    """Return the problems of a patch as separate warnings.

    The problems of a YAML document are split into lines (`parseYAMLWarnings`).
    """
    found: list[str] = []
    for each in problems:
        found += [line.strip() for line in each.removeprefix(_YAML_ERRORS).split("\n")]
    return found


def _unreadable(patched: str, reason: str) -> Invalid:
    return refuse("", "", "", [invalid("patch", patched, reason)])


def _json(
    live: Unstructured, data: bytes, schema: Schema | None, directive: str
) -> tuple[Unstructured, tuple[str, ...]]:
    operations, problems = _decoded(data, directive, "error decoding patch: " if directive != "Ignore" else "")
    if directive != "Ignore":
        problems = (*(f"json patch {each}" for each in problems), *check_json_patch(operations))
    return json_patch(live, operations), problems


def _merge(
    live: Unstructured, data: bytes, schema: Schema | None, directive: str
) -> tuple[Unstructured, tuple[str, ...]]:
    patch, problems = _decoded(data, directive, "error decoding patch: " if directive != "Ignore" else "")
    if not isinstance(patch, dict) and patch is not None:
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type"
            " map[string]interface {}"
            if directive != "Ignore"
            else "Invalid JSON Patch"
        )
    return merge_patch(live, patch, has_nulls=b"null" in data), problems


def _strategic(
    live: Unstructured, data: bytes, schema: Schema | None, directive: str
) -> tuple[Unstructured, tuple[str, ...]]:
    if schema is None:  # such a request was refused when it was parsed
        raise UnsupportedMediaType("415: Unsupported Media Type", details=StatusDetails())
    patch, problems = _decoded(data, directive, "")
    return with_sorted_raw_extensions(schema, strategic_merge_patch(live, patch, schema)), problems


def _decoded(data: bytes, directive: str, prefix: str) -> tuple[Any, tuple[str, ...]]:
    """Decode a patch, and search for repeated keys only if the client requires field validation."""
    strict_json.refuse_many(data)
    try:
        value = strict_json.decode(data)
    except ValueError as error:
        raise BadRequest(f"{prefix}{error}") from error
    if directive == "Ignore" or not strict_json.has_repeated_keys(data, value):
        return value, ()
    return value, tuple(strict_json.repeated_fields(strict_json.decode_repeated(data), ""))


_KINDS: dict[str, Callable[[Unstructured, bytes, Schema | None, str], tuple[Unstructured, tuple[str, ...]]]] = {
    JSON_PATCH: _json,
    MERGE_PATCH: _merge,
    STRATEGIC_MERGE_PATCH: _strategic,
}
