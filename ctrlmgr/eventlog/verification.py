"""Verifies a log: checks every retained event against the hash chain, the head and the anchor.

Guarantees:
- Verification detects a changed bit of any stored field, a missing, added or reordered event, and a log that ends
  before its anchor. The error names the first damaged revision.
- After a range that compaction has removed, verification continues with the parent hash that the first event after the
  range contains.
- Gaps between revisions are accepted only in imported ranges. If an event was removed from an imported range, the hash
  chain is not valid.
- The digest of a purged event cannot be recomputed. Purged events are accepted and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import LogCorrupt
from ctrlmgr.eventlog.event import Event, Head
from ctrlmgr.eventlog.hash_chain import Stamp, content_digest, link
from ctrlmgr.eventlog.imports import ImportedRange, covered
from ctrlmgr.eventlog.purged_payload import purged_digest

_REPORT_EVERY = 1000


class Epoch(NamedTuple):
    """An incarnation of a log: its events follow `after_revision`, and its hash chain continues from `parent_hash`."""

    uuid: str
    after_revision: Revision
    parent_hash: bytes
    started_at: int
    reason: str


class Stored(NamedTuple):
    """An event as it is stored; `key` is the key in the database's index.

    The field `parent` is set only if the event follows a compacted range.
    """

    event: Event
    key: Key
    parent: bytes | None


class Verifiable(Protocol):
    """The interface of a log that can be verified."""

    def head(self) -> Head:
        """Return the newest revision of the log and its hash."""

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the highest compaction floor."""

    def stored(self, *, start: Revision = 1) -> Iterator[Stored]:
        """Yield every retained event."""

    def epochs(self) -> Sequence[Epoch]:
        """Return the incarnations, oldest first."""

    def imports(self) -> Sequence[ImportedRange]:
        """Return the imported ranges of revisions, oldest first."""


class Verification(NamedTuple):
    """The result for an undamaged log: the number of checked events, the head, and the number of purged events."""

    events: int
    head: Head
    purged: int = 0


class _Marks(NamedTuple):
    """The places where events may be missing: up to `floor`, at the start of an incarnation, and in imported ranges."""

    floor: Revision
    epochs: list[Epoch]
    imports: Sequence[ImportedRange]


def verify(log: Verifiable, *, progress: Callable[[int], None] = lambda events: None) -> Verification:
    """Check a whole log; after every thousand events and at the end, call `progress` with the number of checked events.

    Raises `LogCorrupt`, which names the first damaged revision.
    """
    head = log.head()
    marks = _Marks(log.floor(), list(log.epochs()), log.imports())
    revision, chain, count, purged = 0, b"", 0, 0
    for stored in log.stored():
        if stored.event.revision > head.revision:
            break  # appended since
        revision, chain = _check(stored, revision, chain, marks)
        count += 1
        purged += purged_digest(stored.event.object.body, stored.key) is not None
        if count % _REPORT_EVERY == 0:
            progress(count)
    _check_end(head, revision, chain, marks.epochs)
    progress(count)
    return Verification(count, head, purged)


def _check(stored: Stored, after: Revision, chain: bytes, marks: _Marks) -> tuple[Revision, bytes]:
    """Check one event against the hash of the event before it; return the event's revision and hash."""
    event, revision = stored.event, stored.event.revision
    parent = _parent(stored, after, chain, marks)
    place = (str(event.resource), stored.key.namespace, stored.key.name)
    stamp = Stamp(event.recorded_at, event.actor, event.user_agent, event.term, event.reconcile, event.append_id)
    digest = content_digest(place, event.object.body, event.type.value, stamp)
    if link(parent, revision, event.previous, digest) != event.hash and not _is_purged(stored, parent):
        # At an imported gap, a wrong hash may mean a changed event or a missing event.
        missing = f", or one after {after} is missing" if revision > after + 1 and parent is chain else ""
        text = f"revision {revision} is damaged: its content does not match its hash{missing}"
        raise LogCorrupt(text, revision=revision)
    return revision, event.hash


def _is_purged(stored: Stored, parent: bytes) -> bool:
    """Return whether an event's payload was purged, and the digest in the purged payload matches the hash chain."""
    event = stored.event
    digest = purged_digest(event.object.body, stored.key)
    return digest is not None and link(parent, event.revision, event.previous, digest) == event.hash


def _parent(stored: Stored, after: Revision, chain: bytes, marks: _Marks) -> bytes:
    """Return the parent hash that this event must have; raises `LogCorrupt` if events are missing before the event."""
    revision = stored.event.revision
    started = [epoch for epoch in marks.epochs if after <= epoch.after_revision < revision]
    if started and started[-1].after_revision == revision - 1:
        return started[-1].parent_hash
    if stored.parent is not None and (
        revision <= marks.floor + 1 or covered(marks.imports, max(after, marks.floor), revision)
    ):
        return stored.parent
    if revision == after + 1 or covered(marks.imports, after, revision):
        return chain
    raise LogCorrupt(f"revision {after + 1} is missing: revision {revision} follows {after}", revision=after + 1)


def _check_end(head: Head, revision: Revision, chain: bytes, epochs: list[Epoch]) -> None:
    """Check that the last event is the event of the head, unless the newest incarnation has no event yet."""
    newest = epochs[-1]
    if newest.uuid != head.uuid:
        raise LogCorrupt("the head and the newest incarnation of the log differ")
    if revision <= newest.after_revision:
        revision, chain = newest.after_revision, newest.parent_hash
    if revision != head.revision:
        raise LogCorrupt(
            f"revision {revision + 1} is missing: the log's head is at {head.revision}", revision=revision + 1
        )
    if chain != head.hash:
        raise LogCorrupt(f"revision {revision} does not have the hash of the log's head", revision=revision)
