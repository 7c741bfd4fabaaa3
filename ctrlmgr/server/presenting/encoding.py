"""Encodes single objects, lists, and the frames of a watch.

Guarantees:
- The server copies the stored bytes of an object into the response, and does not encode the object again.
- A piece of a list has at most twice `_PIECE` bytes, even if its items are large.
- As in Go, items of a typed list have neither kind nor apiVersion, because apimachinery clears TypeMeta when it decodes
  a stored object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.operations import Listing

_PIECE = 96 * 1024
"""Target size of a piece of a list in bytes.

Pieces of this size are large enough for efficient sending, and small enough not to delay other connections. For larger
pieces, the allocator would map memory separately (`interpreter.tune`), which is slow.
"""


class ListMeta(NamedTuple):
    """The metadata of a list (meta/v1 ListMeta); empty values, 0 and None are omitted."""

    revision: Revision
    continue_token: str = ""
    remaining: int | None = None

    @classmethod
    def of(cls, listing: Listing) -> ListMeta:
        """Create the metadata of the list `listing`."""
        return cls(listing.revision, listing.continue_token, listing.remaining)

    def encode(self) -> bytes:
        """Return the metadata of the list as JSON."""
        fields: dict[str, str | int] = {}
        if self.revision:
            fields["resourceVersion"] = str(self.revision)
        if self.continue_token:
            fields["continue"] = self.continue_token
        if self.remaining is not None:
            fields["remainingItemCount"] = self.remaining
        return msgspec.json.encode(fields)


def list_head(kind: str, api_version: str, metadata: ListMeta) -> bytes:
    """Return the beginning of a list, up to its first item."""
    return b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
        kind.encode(),
        api_version.encode(),
        metadata.encode(),
    )


LIST_TAIL = b"]}\n"


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_decode_metadata = msgspec.json.Decoder(_Metadata).decode


def metadata(obj: Object) -> bytes:
    """Return an object's metadata as JSON, including resourceVersion and managedFields."""
    return bytes(_decode_metadata(obj.wire()).metadata)


def custom_list_head(kind: str, api_version: str, metadata: ListMeta) -> bytes:
    """Return the beginning of a list of custom objects, whose continue token is never omitted."""
    head = list_head(kind, api_version, metadata)
    return head if metadata.continue_token else head.replace(b'"metadata":{', b'"metadata":{"continue":"",', 1)


def items(head: bytes, objects: Iterable[Object], type_meta: bytes) -> Iterator[bytes]:
    """Yield the encoded objects of a list in pieces for sending; the function creates each piece on demand.

    `type_meta` is the expected beginning of each object, such as `{"kind":"Pod","apiVersion":"v1",`. An object with
    another beginning is decoded and encoded again.
    """
    parts, size, separator, start = [head], 0, b"{", len(type_meta)
    for obj in objects:
        wire = obj.wire()
        if len(wire) > _PIECE:
            yield b"".join((*parts, separator))
            yield from _cut(wire, start) if wire.startswith(type_meta) else _cut(_item_decoded(wire), 0)
            parts, size, separator = [], 0, b",{"
            continue
        item = wire[start:] if wire.startswith(type_meta) else _item_decoded(wire)
        parts += (separator, item)
        separator = b",{"
        size += len(item)
        if size >= _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    parts.append(LIST_TAIL)
    yield b"".join(parts)


def _cut(item: bytes, start: int) -> Iterator[bytes]:
    """Yield the bytes of a large item from position `start` on in pieces; each piece is copied on demand."""
    return (item[at : at + _PIECE] for at in range(start, len(item), _PIECE))


def _item_decoded(wire: bytes) -> bytes:
    """Decode and encode a list item; return its JSON without the opening brace, the kind and the apiVersion."""
    fields = msgspec.json.decode(wire, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in ("kind", "apiVersion")})[
        1:
    ]


def type_meta(kind: str, api_version: str) -> bytes:
    """Return the first bytes of every stored object of the kind."""
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())


def pieces(head: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a list of encoded items in pieces for sending."""
    parts, size, separator = [head], 0, b""
    for each in items:
        if len(each) > _PIECE:
            yield b"".join((*parts, separator))
            yield from _cut(each, 0)
            parts, size, separator = [], 0, b","
            continue
        parts += (separator, each)
        separator = b","
        size += len(each)
        if size >= _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    parts.append(LIST_TAIL)
    yield b"".join(parts)


def frame(type: str, obj: bytes) -> bytes:
    """Return one event of a watch; `obj` is the object in JSON without a final newline."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), obj)


def bookmark(kind: str, api_version: str, revision: Revision, *, initial_events_end: bool = False) -> bytes:
    """Return the object of a BOOKMARK event, which contains only a revision (KEP-956, KEP-3157)."""
    ended = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
    return b'%b"metadata":{"resourceVersion":"%d"%b}}' % (type_meta(kind, api_version), revision, ended)
