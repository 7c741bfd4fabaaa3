"""The hash chain over canonical event bytes.

Each event's hash covers everything stored about it and the hash of the event before it:

    digest(event) = SHA-256( numbers ‖ lengths of the texts ‖ texts ‖ body )
    hash(n)       = SHA-256( hash(n-1) ‖ revision ‖ previous ‖ digest )      the first: 32 zero bytes

The split is there for PostgreSQL: the digest needs nothing that only the database knows, so the writer computes
it, and the append function under the head lock is left with 80 bytes an event.
"""

from __future__ import annotations

import struct
from hashlib import sha256

from ctrlmgr.api.resource import Revision
from ctrlmgr.eventlog.event import Event, EventType

GENESIS = bytes(32)
"""The parent of the first event of a log."""

_FIXED = struct.Struct(">BqQqQ6I")
_LINK = struct.Struct(">32sqq32s")


def content_digest(
    type: EventType,
    resource: str,
    namespace: str,
    name: str,
    body: bytes,
    *,
    recorded_at: int,
    actor: str,
    user_agent: str,
    term: int,
    reconcile: int,
    append_id: int,
) -> bytes:
    """Return the digest (32 bytes) of what the writer knows of an event before the log has placed it."""
    texts = f"{resource}{namespace}{name}{actor}{user_agent}".encode()
    fixed = _FIXED.pack(
        type,
        recorded_at,
        append_id,
        term,
        reconcile,
        len(resource),
        len(namespace),
        len(name),
        len(actor),
        len(user_agent),
        len(texts),
    )
    return sha256(fixed + texts + body).digest()


def link(parent: bytes, revision: Revision, previous: Revision, digest: bytes) -> bytes:
    """Return the hash (32 bytes) of an event placed at `revision`, on top of its parent's hash."""
    return sha256(_LINK.pack(parent, revision, previous, digest)).digest()


def digest_of(event: Event) -> bytes:
    """Compute again the content digest of an event read back from a log."""
    namespace, name = event.object.key
    return content_digest(
        event.type,
        str(event.resource),
        namespace,
        name,
        event.object.body,
        recorded_at=event.recorded_at,
        actor=event.actor,
        user_agent=event.user_agent,
        term=event.term,
        reconcile=event.reconcile,
        append_id=event.append_id,
    )
