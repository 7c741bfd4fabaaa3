"""What is left of an event's payload that was purged: what it was called, and the digest that the hash chain needs.

Guarantees: it is told from every other payload by its whole form, byte for byte, so nothing can be kept beside it; an
object of a client's that looks alike has a digest of its own, which is looked at first.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.resource import Key


class _Name(msgspec.Struct, omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Head(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: _Name = msgspec.field(default_factory=_Name)


class _Remains(_Head):
    """What is left of an object."""

    purged: str = ""
    """The digest of the event as it was, hexadecimal."""


_head = msgspec.json.Decoder(_Head).decode
_remains = msgspec.json.Decoder(_Remains).decode
_encode = msgspec.json.Encoder().encode


def remains(body: bytes, digest: bytes) -> bytes:
    """Return what takes the place of a payload whose event has this digest."""
    head = _head(body)
    return _encode(_Remains(head.kind, head.api_version, head.metadata, digest.hex()))


def purged_digest(body: bytes, key: Key) -> bytes | None:
    """Return the digest that a purged payload of an object has kept, None if this is no such payload, byte for byte."""
    if b'"purged":"' not in body[-96:]:
        return None
    try:
        left = _remains(body)
        digest = bytes.fromhex(left.purged)
    except (msgspec.MsgspecError, ValueError):
        return None
    is_whole = len(digest) == 32 and _encode(left) == body
    return digest if is_whole and (left.metadata.namespace, left.metadata.name) == (key.namespace, key.name) else None
