"""The hash chain over canonical event bytes.

Each event's hash covers all stored fields of the event and the hash of the event before it:

    digest(event) = SHA-256( MessagePack of the fields in a fixed order ‖ body )
    hash(n)       = SHA-256( hash(n-1) ‖ revision ‖ previous ‖ digest )      the first: 32 zero bytes

In PostgreSQL, only the database knows the revision of a new event. Therefore the hash of an event is computed in two
steps. The writer computes the digest, which does not depend on the revision. The append function in the database, which
holds the lock of the head, then hashes only 80 bytes per event.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.resource import Revision

GENESIS = bytes(32)
"""The parent hash of the first event of a log."""

Place = tuple[str, str, str]
"""The key of an object: its resource, namespace and name, as the database stores them."""


class Stamp(NamedTuple):
    """The fields that all events of an append share: time (µs since 1970), author, term, reconcile and append id."""

    recorded_at: int
    actor: str
    user_agent: str
    term: int
    reconcile: int
    append_id: int


_encode = msgspec.msgpack.Encoder().encode
_PIECE: Final = 2047
"""The maximum number of bytes that hashlib hashes without releasing the GIL.

In a busy process, acquiring the GIL again takes longer than hashing many pieces of `_PIECE` bytes.
"""
_LONG: Final = 16 * _PIECE
"""A body with more bytes than this is hashed in one call, which releases the GIL."""
_LINK = struct.Struct(">32sqq32s")


def content_digest(place: Place, body: bytes, type: int, stamp: Stamp) -> bytes:
    """Return the digest (32 bytes) of the fields that the writer knows before the log assigns a revision.

    The hashed fields other than the body are encoded as a MessagePack array. MessagePack encodes the length of every
    string, so two different events never have the same encoding.
    """
    digest = sha256(_encode((type, *place, *stamp)))
    if len(body) > _LONG:
        digest.update(body)
    else:
        for at in range(0, len(body), _PIECE):
            digest.update(body[at : at + _PIECE])
    return digest.digest()


def link(parent: bytes, revision: Revision, previous: Revision, digest: bytes) -> bytes:
    """Return the hash (32 bytes) of an event at `revision`, computed from its digest and its parent's hash."""
    return sha256(_LINK.pack(parent, revision, previous, digest)).digest()
