"""Bodies to objects and objects to bodies, for one kind each.

Guarantees:
- What is decoded has the shape of the kind's Go struct: known fields only, of the right types, in Go's order; zero
  values gone where `omitempty` drops them, and there where it does not (`status: {}`, `rules: None`); quantities and
  times in canonical form. What was dropped on the way is named in `Decoded.problems`.
- What is encoded are the bytes Kubernetes would write, with kind and apiVersion first, without a resourceVersion.
- Decoding what was encoded and encoding it again changes nothing.

The common case never leaves C: a document is decoded, converted to the kind's Struct (`schema.structs`) and back to
a dict. Only what that refuses is looked at field by field (`schema.prune`).
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
from ctrlmgr.schema.protobuf import kinds as protobuf
from ctrlmgr.schema.prune import json_kind, prune
from ctrlmgr.schema.schema import Schema, Schemas
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
    """A body is of another version than is asked for; what else is wrong with it, in its own version, is known."""

    def __init__(self, message: str, problems: Sequence[str], strictly: BadRequest) -> None:
        """Take the `problems` that a caller may want to be warned of, and the refusal where these are errors."""
        super().__init__(message)
        self.problems = problems
        self.strictly = strictly


class Decoded(NamedTuple):
    """An object, and what in its body was not part of it."""

    fields: Unstructured
    problems: tuple[str, ...] = ()
    """`unknown field "spec.foo"`, `duplicate field "metadata.name"`, as Kubernetes words them, in its order."""


class ObjectCodec(Protocol):
    """What the engine asks of a codec, whatever its kind's schema comes from."""

    def decode(self, data: bytes, media_type: str) -> Decoded:
        """Decode a body, see `Codec.decode`."""

    def read(self, fields: Unstructured, known: Unstructured | None = None) -> Decoded:
        """Do the same with what is decoded already, see `Codec.read`."""

    def encode(self, fields: Unstructured) -> bytes:
        """Write an object as it is stored."""

    def refuse_strictly(self, problems: Iterable[str]) -> BadRequest:
        """Return the 400 for a body with problems, where the client wants them to be errors."""


class Codec:
    """Decodes and encodes the objects of one kind in one version."""

    def __init__(self, kind: str, api_version: str, schemas: Schemas, structs: Structs, schema: Schema) -> None:
        """Take the kind's schema, the schemas it is one of (they say what other kinds there are) and their Structs."""
        self.kind = kind
        self.api_version = api_version
        self.schema = schema
        self._schemas = schemas
        self._structs = structs

    def decode(self, data: bytes, media_type: str) -> Decoded:
        """Decode a body; a missing kind or apiVersion is this codec's, and so is that of the same kind elsewhere.

        That is for DeleteOptions, which clients send as of whatever group.

        Raises `UnsupportedMediaType`, and `BadRequest` for what is malformed, of another kind, or has values of wrong
        types.
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
        """Do the same with what is decoded already; `fields` may be changed, and shared by the result.

        `known` is an object that was read before: what a patch has left as it was there is not looked at again.
        A patch may have made anything of the rest: raises `BadRequest` for what is no object, too.
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
        """Return `fields` in Go's shape; None if they do not simply fit."""
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
        """Write an object as Kubernetes would; raises ValueError for values of wrong types, which decoding refuses."""
        try:
            struct = self._writable(fields)
        except msgspec.ValidationError:  # a null, an empty list: what strategies may leave behind
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
        """Where a Struct has metadata.resourceVersion; None for kinds that are no objects."""
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
        if value is None:  # which Go's decoder takes for an object without any fields
            return {}
        if isinstance(value, dict):
            return value
        raise self._unrecognized(_no_object(value), data)

    def _identify(self, fields: Unstructured) -> None:
        """Fill in kind and apiVersion; raises `BadRequest` when they are another kind's.

        An empty list of managedFields, which says "forget whose the fields are" as `[{}]` does, becomes that: it would
        not survive being brought into Go's shape.
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
        """Return the 400 for a body of this kind (or of another, which was sent instead) that cannot be used."""
        version = quote(_version(api_version or self.api_version))
        return BadRequest(f"{kind or self.kind} in version {version} cannot be handled as a {self.kind}: {reason}")

    def refuse_strictly(self, problems: Iterable[str]) -> BadRequest:
        """Return the 400 for a body with problems, where the client wants them to be errors."""
        return self.refuse(f"strict decoding error: {', '.join(problems)}")

    def _unrecognized(self, reason: str, data: bytes) -> BadRequest:
        return BadRequest(
            f"the object provided is unrecognized (must be of type {self.kind}): {reason} ({summary(data)})"
        )


def _told_apart(fields: Unstructured, known: Unstructured) -> tuple[Unstructured, Unstructured]:
    """Return the objects and lists in `fields` that are those of `known`, and not just equal to them, and the rest."""
    left: Unstructured = {}
    rest: Unstructured = {}
    for name, each in fields.items():
        (left if each is known.get(name) and type(each) in _NESTS else rest)[name] = each
    return left, rest


def _no_object(value: Any) -> str:
    reason = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_TYPE_META}"
    return f"couldn't get version/kind; json parse error: {reason}"


def _unnamed(fields: Unstructured) -> str:
    """Return why Go cannot tell what kind a body is of, empty if it can (`SimpleMetaFactory.Interpret`)."""
    for name in (each for each in fields if each in ("kind", "apiVersion")):
        if not isinstance(fields[name], str) and fields[name] is not None:
            reason = f"json: cannot unmarshal {json_kind(fields[name])} into Go struct field .{name} of type string"
            return f"couldn't get version/kind; json parse error: {reason}"
    api_version = fields.get("apiVersion") or ""
    return f"unexpected GroupVersion string: {api_version}" if api_version.count("/") > 1 else ""


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _internal_package(api_version: str) -> str:
    """Return the Go package of a group's internal types, which Kubernetes' messages name."""
    group, slash, _ = api_version.partition("/")
    return group.partition(".")[0] if slash else "core"


def summary(data: bytes) -> str:
    """Show the beginning of a body as Kubernetes does: an object as its text, anything else in hexadecimal."""
    if not data:
        return "<empty>"
    start = data[:30]
    shown = start.decode(errors="replace") if start.startswith(b"{") else start.hex()
    return f"{shown} ..." if len(data) > 30 else shown
