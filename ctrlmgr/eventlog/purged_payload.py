"""The payload of a purged event: the object's kind and name, and the digest that the hash chain needs.

Guarantees: a payload counts as purged only if its bytes are exactly as this module writes them, so the payload cannot
contain other data. A client may create an object whose JSON has the form of a purged payload. Verification does not
treat the event of such an object as a purged event, because it checks the digest of each event first.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.resource import Key


class _Name(msgspec.Struct, omit_defaults=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class PayloadHead(msgspec.Struct):
    """The part of an object that every stored payload has."""

    kind: str = ""
    api_version: str = msgspec.field(default="", name="apiVersion")
    metadata: _Name = msgspec.field(default_factory=_Name)


class _Remains(PayloadHead):
    """The payload of a purged event."""

    purged: str = ""
    """The digest that the event had before the purge, in hexadecimal."""


payload_head = msgspec.json.Decoder(PayloadHead).decode
"""Returns the kind, the API version and the name in a payload."""
_remains = msgspec.json.Decoder(_Remains).decode
_encode = msgspec.json.Encoder().encode


def remains(body: bytes, digest: bytes) -> bytes:
    """Return the payload that replaces `body`; `digest` is the digest of the event."""
    head = payload_head(body)
    return _encode(_Remains(head.kind, head.api_version, head.metadata, digest.hex()))


def purged_digest(body: bytes, key: Key) -> bytes | None:
    """Return the digest in a purged payload of the object `key`; None if `body` is not a purged payload."""
    if b'"purged":"' not in body[-96:]:
        return None
    try:
        left = _remains(body)
        digest = bytes.fromhex(left.purged)
    except (msgspec.MsgspecError, ValueError):
        return None
    is_whole = len(digest) == 32 and _encode(left) == body
    return digest if is_whole and (left.metadata.namespace, left.metadata.name) == (key.namespace, key.name) else None
