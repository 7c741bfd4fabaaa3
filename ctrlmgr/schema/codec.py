"""Decodes bodies to objects and encodes objects to bodies; each version of each kind has its own codec.

Guarantees:
- A decoded object has the form of the kind's Go struct: only known fields with the right types, in Go's order. A
  decoded object contains a zero value (such as `status: {}` or `rules: None`) unless Go's `omitempty` drops the zero
  value. Quantities and times in a decoded object are in canonical form. The codec drops unknown and duplicate fields,
  and lists the dropped fields in `Decoded.problems`.
- An encoded object has the bytes that Kubernetes would write, beginning with kind and apiVersion, but without a
  resourceVersion.
- An encoded object that is decoded and encoded again has the same bytes.

In the common case, C code decodes a document, converts it to the kind's Struct (`schema.structs`) and back to a dict.
If the conversion to a Struct refuses a document, Python code checks the document field by field
(`schema.schema_pruning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.errors import BadRequest, UnsupportedMediaType
from ctrlmgr.golang.go_text import escape_html, quote
from ctrlmgr.schema import strict_json, yaml_document
from ctrlmgr.schema.former_versions import is_former
from ctrlmgr.schema.protobuf import protobuf_decoding as protobuf
from ctrlmgr.schema.schema import Schema, Schemas
from ctrlmgr.schema.schema_pruning import json_kind, prune
from ctrlmgr.schema.structs import Structs, attribute, read_value, write_value

JSON: Final = "application/json"
YAML: Final = "application/yaml"

_UNREADABLE = (
    "the body of the request was in an unknown format - accepted media types include: "
    f"{JSON}, {YAML}, {protobuf.MEDIA_TYPE}"
)
_TYPE_META = "struct { APIVersion string; Kind string }"
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NESTS = (dict, list)

_encode = msgspec.json.Encoder(order="deterministic").encode


class OtherVersion(BadRequest):
    """Raised if the version of a body differs from the version of the request.

    The error contains the problems that the body has in the body's own version.
    """

    def __init__(self, message: str, problems: Sequence[str], strictly: BadRequest) -> None:
        """Create the error with the body's `problems` for warnings, and with the error for strict validation."""
        super().__init__(message)
        self.problems = problems
        self.strictly = strictly


class Decoded(NamedTuple):
    """A decoded object, and the problems of the body that contained the object."""

    fields: Unstructured
    problems: tuple[str, ...] = ()
    """The body's problems in Kubernetes' wording and order, such as `unknown field "spec.foo"`."""


class ObjectCodec(Protocol):
    """The methods of a codec that the engine uses, for built-in and custom kinds."""

    def decode(self, data: bytes, media_type: str) -> Decoded:
        """Decode a body; see `Codec.decode`."""

    def read(self, fields: Unstructured, known: Unstructured | None = None) -> Decoded:
        """Read an object that is already decoded; see `Codec.read`."""

    def encode(self, fields: Unstructured) -> bytes:
        """Encode an object in its stored form."""

    def refuse_strictly(self, problems: Iterable[str]) -> BadRequest:
        """Return the 400 error for a body with problems, if the client requested strict validation."""


class Codec:
    """Decodes and encodes the objects of one kind in one version."""

    def __init__(self, kind: str, api_version: str, schemas: Schemas, structs: Structs, schema: Schema) -> None:
        """Create a codec with the schema of the kind, the schemas of all kinds, and their Structs.

        The schemas of other kinds are needed to recognize a body of another kind.
        """
        self.kind = kind
        self.api_version = api_version
        self.schema = schema
        self._schemas = schemas
        self._structs = structs

    def decode(self, data: bytes, media_type: str) -> Decoded:
        """Decode a body; a missing kind or apiVersion in the body is replaced by that of this codec.

        The codec also accepts a body with the right kind but another API group, because clients send DeleteOptions with
        any group.

        Raises `UnsupportedMediaType`. Raises `BadRequest` if the body is malformed, has another kind, or has values of
        wrong types.
        """
        if media_type == JSON:
            return self._decode_json(data)
        if media_type == YAML:
            return self._decode_yaml(data)
        if media_type == protobuf.MEDIA_TYPE:
            return self._decode_protobuf(data)
        raise UnsupportedMediaType(_UNREADABLE)

    def _decode_json(self, data: bytes) -> Decoded:
        strict_json.refuse_many(data)
        try:
            if self._is_recursive:
                strict_json.refuse_depth(data)
            value = strict_json.decode_shallow(data)
            if not strict_json.has_repeated_keys(data, value):
                fields = self._own(value, data)
                shaped = self._shaped(fields)
                if shaped is not None:
                    return Decoded(shaped)
                fields = self._own(strict_json.decode_as_written(data), data)
            else:
                fields = self._own(strict_json.decode_repeated(data), data)
            strict_json.refuse_depth(data)
        except ValueError as error:
            raise self._unrecognized(f"couldn't get version/kind; json parse error: {error}", data) from error
        return self._read_slowly(fields)

    def _decode_yaml(self, data: bytes) -> Decoded:
        try:
            value, repeated = yaml_document.decode(data)
        except ValueError as error:
            raise self._unrecognized(str(error), data) from error
        fields, problems = self.read(self._own(value, data))
        return Decoded(fields, repeated + problems)

    def _decode_protobuf(self, data: bytes) -> Decoded:
        fields = protobuf.decode(data, self.api_version, self.kind)
        text = _encode(fields)
        strict_json.refuse_many(text)
        try:
            strict_json.refuse_nul(text)
        except ValueError as error:
            raise self.refuse(str(error)) from error
        return self.read(fields)

    def read(self, fields: Unstructured, known: Unstructured | None = None) -> Decoded:
        """Read an object whose JSON is already decoded; the codec may change `fields` and use its parts in the result.

        `known` is an object that this codec read before. The codec does not check those parts of `known` again that a
        patch left unchanged. Raises `BadRequest` if `fields` is not an object, because a patch may produce any JSON
        value.
        """
        if not isinstance(fields, dict):
            raise BadRequest(_no_object(fields))
        self._identify(fields)
        if self._is_recursive and strict_json.depth_exceeds(_encode(fields), strict_json.DEEPEST):
            raise self.refuse("exceeded max depth")
        left, rest = ({}, fields) if known is None else _told_apart(fields, known)
        shaped = self._shaped(rest)
        if shaped is None:
            return self._read_slowly(fields)
        return Decoded(self._in_order({**shaped, **left}) if left else shaped)

    def _in_order(self, fields: Unstructured) -> Unstructured:
        return {name: fields[name] for name in self.schema.properties if name in fields}

    def _shaped(self, fields: Unstructured) -> Unstructured | None:
        """Return `fields` in the form of the Go struct; None if Python code must check `fields` field by field."""
        try:
            return self._fitted(fields)
        except msgspec.ValidationError:
            return None

    def _fitted(self, fields: Unstructured) -> Unstructured:
        fitted: Unstructured = msgspec.to_builtins(msgspec.convert(fields, self._struct, dec_hook=read_value))
        return fitted

    def _read_slowly(self, fields: Unstructured) -> Decoded:
        try:
            pruned, problems = prune(self.schema, fields)
            pruned["kind"], pruned["apiVersion"] = self.kind, self.api_version
            return Decoded(self._fitted(pruned), problems)
        except (ValueError, msgspec.ValidationError) as error:
            raise self.refuse(str(error)) from error

    def encode(self, fields: Unstructured) -> bytes:
        """Encode an object as Kubernetes does.

        Raises ValueError if the object contains a value of a wrong type.
        """
        try:
            struct = self._writable(fields)
        except msgspec.ValidationError:  # a strategy may have left a null or an empty list
            struct = self._pruned_struct(fields)
        if self._version_at:
            metadata, version = self._version_at
            setattr(getattr(struct, metadata), version, "")
        return escape_html(_encode(struct))

    def _writable(self, fields: Unstructured) -> msgspec.Struct:
        return msgspec.convert(fields, self._struct, dec_hook=write_value)

    def _pruned_struct(self, fields: Unstructured) -> msgspec.Struct:
        try:
            return self._writable(prune(self.schema, fields)[0])
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error

    @cached_property
    def _struct(self) -> type[msgspec.Struct]:
        return self._structs.of(self.schema)

    @cached_property
    def _is_recursive(self) -> bool:
        return self._structs.is_recursive(self.schema)

    @cached_property
    def _version_at(self) -> tuple[str, str] | None:
        """The attributes of a Struct for metadata and its resourceVersion; None for types that are not API objects."""
        metadata = self.schema.properties.get("metadata")
        if metadata is None or metadata.definition != _OBJECT_META:
            return None
        return attribute(self.schema, "metadata"), attribute(metadata, "resourceVersion")

    def _own(self, value: Any, data: bytes) -> Unstructured:
        fields = self._object(value, data)
        if reason := _unnamed(fields):
            raise self._unrecognized(reason, data)
        self._identify(fields)
        return fields

    def _object(self, value: Any, data: bytes) -> Unstructured:
        if value is None:  # Go's decoder reads null as an object without fields
            return {}
        if isinstance(value, dict):
            return value
        raise self._unrecognized(_no_object(value), data)

    def _identify(self, fields: Unstructured) -> None:
        """Set the kind and the apiVersion of a body to those of this codec; raises `BadRequest` for another kind.

        The function replaces an empty list of managedFields by `[{}]`, because the conversion to Go's form would drop
        the empty list. Both lists mean that all owners of fields are removed.
        """
        kind = fields.get("kind") or self.kind
        api_version = fields.get("apiVersion") or self.api_version
        if kind != self.kind or api_version != self.api_version:
            self._check_kind(kind, api_version)
        fields["kind"], fields["apiVersion"] = self.kind, self.api_version
        metadata = fields.get("metadata")
        if type(metadata) is dict and metadata.get("managedFields") == []:
            metadata["managedFields"] = [{}]

    def _check_kind(self, kind: Any, api_version: Any) -> None:
        if reason := _unnamed({"kind": kind, "apiVersion": api_version}):
            raise BadRequest(reason)
        definition = self._schemas.by_kind.get((api_version, kind))
        if definition is None and is_former(kind, api_version) and kind == self.kind:
            raise self._other_version(api_version)
        if definition is None:
            raise self.refuse(protobuf.not_registered(kind, api_version, self.api_version), kind, api_version)
        if kind != self.kind:
            theirs = f"{_version(api_version)}.{kind}"
            reason = f"converting ({theirs}) to ({_internal_package(self.api_version)}.{self.kind}): unknown conversion"
            raise self.refuse(reason, kind, api_version)
        if definition != self.schema.definition:
            raise self._other_version(api_version)

    def _other_version(self, api_version: str) -> BadRequest:
        return BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version ({self.api_version})"
        )

    def refuse(self, reason: str, kind: str = "", api_version: str = "") -> BadRequest:
        """Return the 400 error for an invalid body of this kind, or for a body of another kind."""
        version = quote(_version(api_version or self.api_version))
        return BadRequest(f"{kind or self.kind} in version {version} cannot be handled as a {self.kind}: {reason}")

    def refuse_strictly(self, problems: Iterable[str]) -> BadRequest:
        """Return the 400 error for a body with problems, if the client requested strict validation."""
        return self.refuse(f"strict decoding error: {', '.join(problems)}")

    def _unrecognized(self, reason: str, data: bytes) -> BadRequest:
        return BadRequest(
            f"the object provided is unrecognized (must be of type {self.kind}): {reason} ({summary(data)})"
        )


def _told_apart(fields: Unstructured, known: Unstructured) -> tuple[Unstructured, Unstructured]:
    """Return those containers in `fields` that are the same Python objects as in `known`, and the remaining fields."""
    left: Unstructured = {}
    rest: Unstructured = {}
    for name, each in fields.items():
        (left if each is known.get(name) and type(each) in _NESTS else rest)[name] = each
    return left, rest


def _no_object(value: Any) -> str:
    reason = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_TYPE_META}"
    return f"couldn't get version/kind; json parse error: {reason}"


def _unnamed(fields: Unstructured) -> str:
    """Return the reason why Go cannot read the kind of a body; empty if Go can read the kind.

    The reasons are those of Go's `SimpleMetaFactory.Interpret`.
    """
    for name in (each for each in fields if each in ("kind", "apiVersion")):
        if not isinstance(fields[name], str) and fields[name] is not None:
            reason = f"json: cannot unmarshal {json_kind(fields[name])} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {reason}"
    api_version = fields.get("apiVersion") or ""
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _internal_package(api_version: str) -> str:
    """Return the Go package of a group's internal types, whose name appears in Kubernetes' messages."""
    group, slash, _ = api_version.partition("/")
    return group.partition(".")[0] if slash else "core"


def summary(data: bytes) -> str:
    """Return the beginning of a body as Kubernetes shows it: JSON as text, any other body in hexadecimal."""
    if not data:
        return "<empty>"
    start = data[:30]
    shown = start.decode(errors="replace") if start.startswith(b"{") else start.hex()
    return f"{shown} ..." if len(data) > 30 else shown
