"""Objects as they go over the wire: alone, in lists, and in the frames of a watch.

Guarantees:
- Nothing is encoded here: an object's stored bytes are spliced into what surrounds them, so that one of a kilobyte
  costs a microsecond wherever it is sent.
- In a typed list the items have neither kind nor apiVersion, as Go leaves them out (apimachinery clears TypeMeta when
  it decodes what is stored).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.resources.operations import Listing

_UID = b'"uid":"'
_PIECE = 96 * 1024
"""Bytes that are put together before they are sent: enough to make sending cheap, little enough to hold nobody up."""


def whole(obj: Object) -> bytes:
    """Return an object as it is, with a newline at the end."""
    at = obj.version_at()
    if not at or not obj.revision:
        return obj.wire() + b"\n"
    body = obj.body
    return b"".join((body[:at], b',"resourceVersion":"%d"' % obj.revision, body[at:], b"\n"))


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


def items(head: bytes, objects: Iterable[Object], type_meta: bytes) -> Iterator[bytes]:
    """Yield a list of objects of one kind in pieces fit for sending, made as they are asked for.

    `type_meta` is what their bodies start with, `{"kind":"Pod","apiVersion":"v1",`; an object that starts otherwise
    is decoded and encoded again.
    """
    parts, size, start = [head], 0, len(type_meta)
    opening = b"{"
    for obj in objects:
        body, at = obj.body, obj.version_at()
        if at and body.startswith(type_meta):
            parts += (opening, body[start:at], b',"resourceVersion":"%d"' % obj.revision, body[at:])
        else:
            parts += (opening, _item_decoded(obj)[1:])
        opening = b",{"
        size += len(body)
        if size >= _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    parts.append(LIST_TAIL)
    yield b"".join(parts)


def items_length(head: bytes, objects: Sequence[Object], type_meta: bytes) -> int:
    """Return how many bytes `items` yields together."""
    length = len(head) + len(LIST_TAIL) - bool(objects)  # the first item has no comma
    frame = len(b',{,"resourceVersion":""') - len(type_meta)
    for obj in objects:
        if obj.version_at() and obj.body.startswith(type_meta):
            length += len(obj.body) + len(str(obj.revision)) + frame
        else:
            length += len(b",") + len(_item_decoded(obj))
    return length


def _item_decoded(obj: Object) -> bytes:
    fields = msgspec.json.decode(obj.wire(), type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in fields.items() if name not in ("kind", "apiVersion")})


def type_meta(kind: str, api_version: str) -> bytes:
    """Return what the bodies of a kind start with."""
    return b'{"kind":"%b","apiVersion":"%b",' % (kind.encode(), api_version.encode())


def pieces(head: bytes, items: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a list of items of any kind in such pieces."""
    parts, size, separator = [head], 0, b""
    for each in items:
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
