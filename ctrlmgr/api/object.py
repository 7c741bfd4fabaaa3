"""Defines one `Object` class for every kind, with typed metadata and a raw JSON body that is decoded on demand.

Guarantees:
- An object is immutable; its `body` contains exactly the bytes that the log stores and hashes.
- `body` is compact UTF-8 JSON that starts with kind, apiVersion and metadata in Go's field order. The body has no
  `metadata.resourceVersion`, because the log assigns the revision later. `wire()` inserts the resourceVersion into the
  body; therefore an object is encoded once for each change, and not for each reader. After a call of `wire()`, the
  object keeps only the result and drops the body, because readers will probably call `wire()` again.
- Unknown fields of an object are kept unchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from ctrlmgr.api.resource import Key, Resource, Revision, guess_resource
from ctrlmgr.errors import BadRequest

T = TypeVar("T")
_NOTHING: Mapping[str, str] = {}
_KIND, _METADATA, _UID = b'{"kind":"', b'"metadata":{', b'"uid":"'


# gc=False, because decoded metadata contains no reference cycles; the garbage collector need not track it.
class OwnerReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A reference to an owner of the object (meta/v1 OwnerReference)."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", kw_only=True):
    """meta/v1 ObjectMeta, in Go's field order; times are RFC 3339 strings as received."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None


class _StoredMeta(ObjectMeta, frozen=True, omit_defaults=True, rename="camel", kw_only=True):
    """Metadata fields that are copied as JSON, without decoding.

    `ObjectMeta` does not contain these fields, so cached objects do not hold them in decoded form.
    """

    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Head(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    metadata: ObjectMeta


class _MetadataOnly(msgspec.Struct):
    metadata: ObjectMeta


class _TypeMeta(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_metadata_only = msgspec.json.Decoder(_MetadataOnly).decode
_decode_stored_metadata = msgspec.json.Decoder(_StoredMeta).decode
_encode = msgspec.json.Encoder().encode


def _without_version(data: bytes, metadata: ObjectMeta) -> bytes | None:
    """Return an object in Go's encoding without its resourceVersion; return None if the encoding differs from Go's.

    Neither the uid nor the resourceVersion can contain a quotation mark, so the byte sequence that is searched for
    occurs only in the object's own metadata.
    """
    if not data.startswith(b'{"kind":"') or b"\n" in data:
        return None
    mark = f'"uid":"{metadata.uid}","resourceVersion":"{metadata.resource_version}"'.encode()
    at = data.find(mark)
    if at < 0:
        return None
    return b"".join((data[: at + len(metadata.uid) + 8], memoryview(data)[at + len(mark) :]))


def _encode_again(data: bytes, **metadata_changes: Any) -> bytes:
    """Encode an object as a body: kind, apiVersion and metadata first, without resourceVersion, the rest unchanged."""
    fields = _decode_fields(data)
    changes = {"resource_version": "", **metadata_changes}
    metadata = msgspec.structs.replace(_decode_stored_metadata(fields.pop("metadata")), **changes)
    head = {"kind": fields.pop("kind"), "apiVersion": fields.pop("apiVersion"), "metadata": metadata}
    return _encode({**head, **fields})


def _version_at(body: bytes) -> int:
    """Return the byte position of resourceVersion in Go's field order; 0 if the body has another encoding."""
    start = body.find(_METADATA) + len(_METADATA)
    at = body.find(_UID, start)
    # In the metadata, only names precede the uid. Within a string, no quotation mark is followed by a colon. If no
    # brace precedes the uid, the uid is that of the object, and not that of an owner.
    if at < 0 or not body.startswith(_KIND) or body.find(b"{", start, at) >= 0:
        return 0
    return body.index(b'"', at + len(_UID)) + 1


# msgspec analyzes a Struct when the first decoder for it is created, and other threads can see the unfinished state.
# Without this lock, the process crashes if two threads create decoders for one Struct at the same time.
_making = threading.Lock()


@cache
def _decoder(type_: Hashable) -> msgspec.json.Decoder[Any]:
    with _making:
        return msgspec.json.Decoder(type_)


class Object:
    """An API object at one revision (0 if it is not stored yet)."""

    __slots__ = ("_body", "_key", "_metadata", "_view", "_wire", "resource", "revision")

    def __init__(
        self, resource: Resource, body: bytes, revision: Revision = 0, metadata: ObjectMeta | None = None
    ) -> None:
        """Create an object from its stored bytes; `metadata`, if given, must equal the metadata in `body`."""
        self.resource = resource
        self.revision = revision
        # At least one of `_body` and `_wire` is always set. A thread that finds one field unset therefore finds the
        # other field set.
        self._body: bytes | None = body
        self._wire: bytes | None = None
        self._metadata = metadata
        self._key: Key | None = None
        self._view: Any = None

    @classmethod
    def from_wire(cls, data: bytes | msgspec.Raw) -> Object:
        """Decode an object in the form that an API server sends.

        Raises `BadRequest` unless the data is a JSON object with kind, apiVersion and well-formed metadata. The
        attribute `revision` of the result is the resourceVersion, or 0 if the resourceVersion is not a number.
        """
        data = bytes(data)
        try:
            head = _decode_head(data)
        except msgspec.MsgspecError as error:
            raise BadRequest(f"the object could not be decoded: {error}") from error
        metadata = head.metadata
        version = metadata.resource_version
        stored = msgspec.structs.replace(metadata, resource_version="") if version else metadata
        return cls(
            guess_resource(head.api_version, head.kind),
            _without_version(data, metadata) or _encode_again(data),
            int(version) if version.isascii() and version.isdecimal() and len(version) < 20 else 0,
            stored,
        )

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Object:
        """Encode an object from a dict with kind, apiVersion and metadata; raises `BadRequest` as `from_wire` does."""
        return cls.from_wire(_encode(fields))

    def with_metadata(self, **changes: Any) -> Object:
        """Return a copy with some metadata fields (named as in `ObjectMeta`) replaced."""
        return Object(self.resource, _encode_again(self.body, **changes), self.revision)

    def with_field(self, name: str, value: Any) -> Object:
        """Return a copy with one top-level field replaced, or appended if it is missing.

        The field must not be `metadata`.
        """
        fields: dict[str, Any] = _decode_fields(self.body)
        fields[name] = value
        copy = Object(self.resource, _encode(fields), self.revision, self._metadata)
        copy._key = self._key
        return copy

    def at(self, revision: Revision) -> Object:
        """Return an object with the same content at `revision`; both objects share the bytes."""
        same = Object(self.resource, self.body, revision, self._metadata)
        same._key = self._key
        return same

    @property
    def body(self) -> bytes:
        """The bytes that the log stores."""
        body = self._body
        return body if body is not None else self._cut()

    def is_stored_as(self, body: bytes) -> bool:
        """Return whether `body` equals the bytes that the log stores for this object."""
        if self._body is None and len(self._wire or b"") != len(body) + len(self._version):
            return False
        return self.body == body

    @property
    def size(self) -> int:
        """The size in bytes of the body or of the wire form, whichever the object keeps."""
        body = self._body
        return len(body if body is not None else self._wire or b"")

    def _cut(self) -> bytes:
        """Return the body of the object, computed from the wire form."""
        wire = self._wire or b""
        at = _version_at(wire)
        return b"".join((wire[:at], wire[at + len(self._version) :]))

    @property
    def metadata(self) -> ObjectMeta:
        """The object's metadata, decoded on first use."""
        metadata = self._metadata  # read the field once, because another thread may clear it at any moment
        if metadata is None:
            metadata = self._metadata = _decode_metadata_only(self.body).metadata
        return metadata

    @property
    def namespace(self) -> str:
        """The object's namespace, or "" for a cluster-scoped object."""
        return self.metadata.namespace

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def uid(self) -> str:
        """The object's uid; an object that is deleted and created again has another uid."""
        return self.metadata.uid

    @property
    def key(self) -> Key:
        """The object's key within its resource; the key is cached, because every reader of an event uses the key."""
        key = self._key
        if key is None:
            metadata = self.metadata
            key = self._key = Key(metadata.namespace, metadata.name)
        return key

    @property
    def labels(self) -> Mapping[str, str]:
        """The object's labels; empty rather than None."""
        return self.metadata.labels or _NOTHING

    @property
    def annotations(self) -> Mapping[str, str]:
        """The object's annotations; empty rather than None."""
        return self.metadata.annotations or _NOTHING

    @property
    def kind(self) -> str:
        """The object's kind, read from the body."""
        return str(_decoder(_TypeMeta).decode(self.body).kind)

    @property
    def is_terminating(self) -> bool:
        """Return whether the object's deletion has been requested."""
        return self.metadata.deletion_timestamp is not None

    def view(self, type_: type[T]) -> T:
        """Decode the body as `type_`, a msgspec Struct with only the fields that the caller reads.

        The object caches its last view, so several readers of the same view decode the body only once.
        """
        view = self._view
        if type(view) is not type_:
            view = self._view = _decoder(cast(Hashable, type_)).decode(self.body)
        return view  # type: ignore[no-any-return]  # one slot holds the Struct of the last call

    def mentions(self, word: bytes) -> bool:
        """Return whether the object's JSON contains `word`; this test is much faster than decoding the object."""
        body = self._body
        return word in (body if body is not None else self._wire or b"")

    def forget_decoded(self) -> None:
        """Drop the decoded metadata and view, which use about as much memory as the body.

        Metadata and view are decoded again when they are used.
        """
        self._metadata = self._key = self._view = None

    def to_dict(self) -> dict[str, Any]:
        """Return the whole object as a new dict, including resourceVersion."""
        return msgspec.json.decode(self.wire())  # type: ignore[no-any-return]  # a JSON object decodes to a dict

    def wire(self) -> bytes:
        """Return the body with `metadata.resourceVersion` in Go's position, without encoding it again."""
        wire = self._wire
        if wire is not None:
            return wire
        body = self.body
        if not self.revision:
            return body
        at = _version_at(body)
        if not at:
            return _encode_again(body, resource_version=str(self.revision))
        wire = self._wire = b"".join((body[:at], self._version, body[at:]))
        self._body = None
        return wire

    @property
    def _version(self) -> bytes:
        return b',"resourceVersion":"%d"' % self.revision

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Object):
            return NotImplemented
        return (self.revision, self.resource, self.body) == (other.revision, other.resource, other.body)

    def __hash__(self) -> int:
        return hash((self.revision, self.resource, self.body))

    def __repr__(self) -> str:
        return f"<{self.resource} {self.key} @{self.revision}>"
