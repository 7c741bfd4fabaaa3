"""Decodes bodies to custom objects and encodes custom objects to bodies, for one version of a custom kind.

Guarantees:
- A decoded object contains only fields of its schema, contains no forbidden nulls, and has all defaults; metadata is
  the same as for every kind. `Decoded.problems` lists the fields that were dropped.
- An encoded object begins with kind, apiVersion and metadata in Go's order, without a resourceVersion. All other fields
  are sorted by name, and numbers are formatted as in Go.
- An encoded object that is decoded and encoded again is unchanged.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go` (`unstructuredSchemaCoercer`,
`unstructuredDefaulter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.errors import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from ctrlmgr.extensions.compiled_schema import Schema
from ctrlmgr.extensions.shaping.embedded_metadata import read_metadata
from ctrlmgr.golang.go_text import escape_html, quote
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.schema.codec import JSON, YAML, Decoded, OtherVersion, summary
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema_pruning import json_kind, prune
from ctrlmgr.schema.structs import read_value, write_value
from ctrlmgr.work_budget import TooMuchWork, bounded

_UNREADABLE = f"the body of the request was in an unknown format - accepted media types include: {JSON}, {YAML}"
_NO_VERSION = "couldn't get version/kind; json parse error: "
_TYPE_META = "struct { APIVersion string; Kind string }"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SHOWN = 30
"""The number of characters of a body that an error message shows."""
MOST_DEFAULTED: Final = 3 * 1024 * 1024
"""The maximum number of bytes of JSON that defaults may add to a request.

The limit for defaults is equal to the maximum size of a request. The limit for defaults does not apply to stored
objects.
"""
_HEAD = ("kind", "apiVersion", "metadata")
_WHOLE_BELOW = 1e21
"""The smallest float that Go writes with an exponent."""

_encode = msgspec.json.Encoder(order="sorted").encode
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode


@cache
def _metadata_struct() -> type[msgspec.Struct]:
    definitions = Definitions.builtin()
    return definitions.struct(_OBJECT_META)


class CustomCodec:
    """Decodes and encodes the objects of one version of a custom kind."""

    def __init__(self, kind: str, group: str, version: str, schemas: Callable[[str], Schema | None]) -> None:
        """Create a codec for a kind with the given names.

        The function `schemas` returns the schema of a version; None if the version does not exist.
        """
        self.kind = kind
        self.api_version = f"{group}/{version}"
        self._version = version
        self._schemas = schemas

    def _schema(self) -> Schema:
        schema = self._schemas(self._version)
        assert schema is not None  # the version exists, because the kind exists
        return schema

    def decode(self, data: bytes, media_type: str) -> Decoded:
        """Decode the body of a request for a custom kind.

        Raises `UnsupportedMediaType`. Raises `BadRequest` if the body is malformed, has no kind, has another group or
        version, or has metadata with values of wrong types.
        """
        if media_type == JSON:
            value, repeated = self._json(data)
        elif media_type == YAML:
            value, repeated = self._yaml(data)
        else:
            raise UnsupportedMediaType(_UNREADABLE)
        fields, problems = self.read(self._identified(value, data))
        return Decoded(fields, repeated + problems)

    def _json(self, data: bytes) -> tuple[Any, tuple[str, ...]]:
        strict_json.refuse_many(data)
        try:
            value = strict_json.decode(data)
            if not strict_json.has_repeated_keys(data, value):
                return value, ()
            return value, tuple(strict_json.repeated_fields(strict_json.decode_repeated(data), ""))
        except ValueError as error:
            raise self._unrecognized(f"{_NO_VERSION}{error}", data) from error

    def _yaml(self, data: bytes) -> tuple[Any, tuple[str, ...]]:
        try:
            return yaml_document.decode(data)
        except ValueError as error:
            raise self._unrecognized(str(error), data) from error

    def _identified(self, value: Any, data: bytes) -> Unstructured:
        """Decode a body that has a kind and an apiVersion; validation checks the kind later."""
        if not isinstance(value, dict):
            reason = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_TYPE_META}"
            raise self._unrecognized(_NO_VERSION + reason, data)
        for name in (each for each in value if each in ("kind", "apiVersion")):
            if value[name] is not None and not isinstance(value[name], str):
                what = json_kind(value[name])
                reason = f"json: cannot unmarshal {what} into Go struct field .{name} of type string"
                raise self._unrecognized(_NO_VERSION + reason, data)
        kind, api_version = value.get("kind") or "", value.get("apiVersion") or ""
        if not kind:
            text = data.decode(errors="replace").strip()
            start = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {self.kind}):"
                f" Object 'Kind' is missing in '{text}' ({start})"
            )
        if api_version != self.api_version:
            raise self._other_version(value, kind, api_version)
        return value

    def _other_version(self, fields: Unstructured, kind: str, api_version: str) -> BadRequest:
        """Return the error for a body that has another version.

        If the body has the same kind in another version of the kind, the function also checks it against the schema of
        that version.
        """
        message = (
            f"the API version in the data ({api_version}) does not match the expected API version ({self.api_version})"
        )
        group, _, version = api_version.rpartition("/")
        if kind != self.kind or group != self.api_version.rpartition("/")[0]:
            return BadRequest(message)
        schema = self._schemas(version)
        if schema is not None:
            unknown, _ = schema.read(fields)
        else:
            unknown = sorted(fields.keys() - {*_HEAD})
        problems = [f"unknown field {quote(path)}" for path in unknown]
        reason = f"strict decoding error: {', '.join(problems)}"
        strictly = BadRequest(f"{kind} in version {quote(version)} cannot be handled as a {self.kind}: {reason}")
        return OtherVersion(message, problems, strictly)

    def read(self, fields: Unstructured, known: Unstructured | None = None) -> Decoded:
        """Read an object that is already decoded; `fields` is changed in place.

        The argument `known` is an object that was read before a patch; metadata that the patch did not change is not
        read again. A patch may produce any JSON value, so the method raises `BadRequest` if `fields` is not an object.
        Raises `RequestEntityTooLarge` if defaults make the object much larger than the body that was sent.
        """
        if not isinstance(fields, dict):
            raise BadRequest(
                f"json: cannot unmarshal {json_kind(fields)} into Go value of type map[string]interface {{}}"
            )
        try:
            metadata, problems = _read_metadata(fields, known)
        except ValueError as error:
            raise self.refuse(str(error)) from error
        try:
            with bounded(MOST_DEFAULTED):
                unknown, malformed = self._schema().read(fields)
        except TooMuchWork as error:
            raise RequestEntityTooLarge(f"the schema's defaults add more than {MOST_DEFAULTED} bytes") from error
        if malformed is not None:
            raise self.refuse(malformed.message)
        if metadata is not None:
            fields["metadata"] = metadata
        return Decoded(fields, tuple(f"unknown field {quote(path)}" for path in (*problems, *unknown)))

    def from_store(self, fields: Unstructured) -> Unstructured:
        """Read a stored object as `read` does, but drop malformed values, which an old object may contain."""
        metadata = fields.get("metadata")
        self._schema().read(fields, drop_invalid=True)
        fields["metadata"] = metadata
        return fields

    def from_other(self, fields: Unstructured) -> FieldError | None:
        """Read an object that was converted from another version, in place and without defaults.

        Return the error in the object's embedded metadata; None if there is no error.
        """
        metadata = fields.get("metadata")
        schema = self._schema()
        schema.prune(fields)
        error = schema.coerce(fields).error
        fields["metadata"] = metadata
        return error

    def encode(self, fields: Unstructured) -> bytes:
        """Encode a whole object; raises ValueError if its metadata has values of wrong types."""
        metadata = fields.get("metadata") or {}
        if "resourceVersion" in metadata:
            metadata = {name: each for name, each in metadata.items() if name != "resourceVersion"}
        head = _encode_in_order({"kind": fields.get("kind"), "apiVersion": fields.get("apiVersion")})
        rest = {name: each for name, each in fields.items() if name not in _HEAD}
        encoded = b'%b,"metadata":%b' % (head[:-1], _encode_in_order(_shaped(metadata)))
        return escape_html(b"%b,%b" % (encoded, _encode_numbers(rest)[1:]) if rest else b"%b}" % encoded)

    def refuse(self, reason: str) -> BadRequest:
        """Return the 400 error for a body that is not a valid object of this kind."""
        return BadRequest(f"{self.kind} in version {quote(self._version)} cannot be handled as a {self.kind}: {reason}")

    def refuse_strictly(self, problems: Iterable[str]) -> BadRequest:
        """Return the 400 error for a body with problems, if the client requested strict validation."""
        return self.refuse(f"strict decoding error: {', '.join(problems)}")

    def _unrecognized(self, reason: str, data: bytes) -> BadRequest:
        return BadRequest(
            f"the object provided is unrecognized (must be of type {self.kind}): {reason} ({summary(data)})"
        )


def _read_metadata(fields: Unstructured, known: Unstructured | None) -> tuple[Unstructured | None, list[str]]:
    """Return an object's metadata in the form of Go's struct, and the paths of unknown fields.

    Raises ValueError if a value has a wrong type.
    """
    if "metadata" not in fields:
        return None, []
    metadata = fields["metadata"]
    if type(metadata) is dict:
        if known is not None and metadata is known.get("metadata"):
            return metadata, []
        if metadata.get("managedFields") == []:  # an empty list has the same meaning as `[{}]`: remove all owners
            metadata = {**metadata, "managedFields": [{}]}
        try:
            struct = msgspec.convert(metadata, _metadata_struct(), dec_hook=read_value)
            shaped: Unstructured = msgspec.to_builtins(struct)
            return shaped, []
        except msgspec.ValidationError:
            pass
    shaped, unknown = read_metadata(metadata)
    return shaped, [f"metadata.{each}" for each in unknown]


def _shaped(metadata: Unstructured) -> msgspec.Struct:
    try:
        return msgspec.convert(metadata, _metadata_struct(), dec_hook=write_value)
    except msgspec.ValidationError:  # a strategy may have left a null or an empty list
        pruned = prune(Definitions.builtin().schema(_OBJECT_META), metadata)[0]
        return msgspec.convert(pruned, _metadata_struct(), dec_hook=write_value)


def _encode_numbers(fields: Unstructured) -> bytes:
    """Encode fields with numbers as in Go: a float without a fraction has no decimal point."""
    encoded = _encode(fields)
    return _encode(_whole(fields)) if b".0" in encoded else encoded


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE_BELOW
    return int(value) if is_whole else value
