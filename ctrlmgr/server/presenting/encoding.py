"""Objects as they go over the wire: alone, in lists, and in the frames of a watch.

Guarantees:
- Nothing is encoded here: an object's stored bytes are spliced into what surrounds them, so that one of a kilobyte
  costs a microsecond wherever it is sent.
- A piece of a list has twice `_PIECE` bytes at the most, however large its items are.
- In a typed list the items have neither kind nor apiVersion, as Go leaves them out (apimachinery clears TypeMeta when
  it decodes what is stored).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.operations import Listing

_PIECE = 96 * 1024
"""Bytes that are put together before they are sent: enough to make sending cheap, little enough to hold up no other
connection, and not to be mapped and unmapped by themselves (`interpreter.tune`), which takes longer than putting them
together."""


class ListMeta(NamedTuple):
    """What a list says of itself (meta/v1 ListMeta); empty, 0 or None is left out."""

    revision: Revision
    continue_token: str = ""
    remaining: int | None = None

    @classmethod
    def of(cls, listing: Listing) -> ListMeta:
        """Return what `listing` says of itself."""
        return cls(listing.revision, listing.continue_token, listing.remaining)

    def encode(self) -> bytes:
        """Return it as JSON."""
        fields: dict[str, str | int] = {}
        if self.revision:
            fields["resourceVersion"] = str(self.revision)
        if self.continue_token:
            fields["continue"] = self.continue_token
        if self.remaining is not None:
            fields["remainingItemCount"] = self.remaining
        return msgspec.json.encode(fields)


def list_head(kind: str, api_version: str, metadata: ListMeta) -> bytes:
    """Return how a list starts, up to its first item."""
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
    """Return the metadata of an object with its resourceVersion, managedFields and all."""
    return bytes(_decode_metadata(obj.wire()).metadata)


def custom_list_head(kind: str, api_version: str, metadata: ListMeta) -> bytes:
    """Return the same of a list of custom objects, whose continue token is there even if it is empty."""
    head = list_head(kind, api_version, metadata)
    return head if metadata.continue_token else head.replace(b'"metadata":{', b'"metadata":{"continue":"",', 1)


def items(head: bytes, objects: Iterable[Object], type_meta: bytes) -> Iterator[bytes]:
    """Yield a list of objects of one kind in pieces fit for sending, made as they are asked for.

    `type_meta` is what they start with, `{"kind":"Pod","apiVersion":"v1",`; one that starts otherwise is decoded and
    encoded again.
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
    """Yield a large item from `start` on in pieces, each made as it is asked for: what all share is the item itself."""
    return (item[at : at + _PIECE] for at in range(start, len(item), _PIECE))


def _item_decoded(wire: bytes) -> bytes:
    """Return what follows an item's opening brace, looking at every field."""
    fields = msgspec.json.decode(wire, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in ("kind", "apiVersion")})[
        1:
    ]


def type_meta(kind: str, api_version: str) -> bytes:
    """Return what the bodies of a kind start with."""
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())


def pieces(head: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a list of items of any kind in such pieces."""
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
    """Return one event of a watch; `obj` is JSON without a newline at the end."""
    return b'{"type":"%b","object":%b}\n' % (type.encode(), obj)


def bookmark(kind: str, api_version: str, revision: Revision, *, initial_events_end: bool = False) -> bytes:
    """Return the object of a BOOKMARK event: nothing but where the watch has got to (KEP-956, KEP-3157)."""
    ended = b',"annotations":{"k8s.io/initial-events-end":"true"}' if initial_events_end else b""
    return b'%b"metadata":{"resourceVersion":"%d"%b}}' % (type_meta(kind, api_version), revision, ended)
