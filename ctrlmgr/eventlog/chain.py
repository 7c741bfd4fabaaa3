"""The hash chain over canonical event bytes.

Each event's hash covers everything stored about it and the hash of the event before it:

    digest(event) = SHA-256( MessagePack of the fields in a fixed order ‖ body )
    hash(n)       = SHA-256( hash(n-1) ‖ revision ‖ previous ‖ digest )      the first: 32 zero bytes

The split is there for PostgreSQL: the digest needs nothing that only the database knows, so the writer computes
it, and the append function under the head lock is left with 80 bytes an event.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.resource import Revision

GENESIS = bytes(32)
"""The parent of the first event of a log."""

Place = tuple[str, str, str]
"""Where an object lives: resource, namespace and name, as the database has them."""


class Stamp(NamedTuple):
    """What all events of one append share: time (µs since 1970), author, term, reconcile and append id."""

    recorded_at: int
    actor: str
    user_agent: str
    term: int
    reconcile: int
    append_id: int


_encode = msgspec.msgpack.Encoder().encode
_PIECE: Final = 2047
"""Bytes of the longest piece for which hashlib keeps the interpreter's lock: in a busy process it takes longer to get
that back than to hash such a piece a hundred times over."""
_LONG: Final = 16 * _PIECE
"""Bytes from which on others may have the lock meanwhile."""
_LINK = struct.Struct(">32sqq32s")


def content_digest(place: Place, body: bytes, type: int, stamp: Stamp) -> bytes:
    """Return the digest (32 bytes) of what the writer knows of an event before the log has placed it.

    The fields ahead of the body are a MessagePack array: every text carries its length, so no two different
    events encode alike.
    """
    digest = sha256(_encode((type, *place, *stamp)))
    if len(body) > _LONG:
        digest.update(body)
    else:
        for at in range(0, len(body), _PIECE):
            digest.update(body[at : at + _PIECE])
    return digest.digest()


def link(parent: bytes, revision: Revision, previous: Revision, digest: bytes) -> bytes:
    """Return the hash (32 bytes) of an event placed at `revision`, on top of its parent's hash."""
    return sha256(_LINK.pack(parent, revision, previous, digest)).digest()
