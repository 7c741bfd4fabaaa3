"""Compaction and restore, the only operations that remove history.

Guarantees:
- Before compaction deletes the first event, it raises the floor (the oldest readable revision) in a separate
  transaction. Therefore a reader that does not find an event finds the raised floor, and a crash during compaction
  leaves the log consistent. A compaction floor never decreases.
- A compaction keeps the current state of each object. A compaction also keeps the newest event of the log, because the
  next event's hash depends on it.
- The first event after a removed range also stores the hash of the last removed event, so the hash chain can still be
  verified.
- Events are deleted in chunks. Each chunk of deletions is a transaction that takes about 0.1 seconds, so appends do not
  wait long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Select, delete, exists, func, insert, select, update

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog.event import EventType, Head
from ctrlmgr.eventlog.log_tables import (
    append_trace,
    compaction_floor,
    event,
    log_epoch,
    log_head,
    object_,
    reconcile,
    reconcile_trigger,
)

_FIRST_CHUNK, _LARGEST_CHUNK = 500, 8_000
_BRIEF, _LONG = 0.06, 0.15
"""The minimum and maximum duration of a chunk, in seconds.

A long chunk of deletions delays appends. Short chunks rewrite shared index pages more often.
"""

Write = Callable[[], AbstractContextManager[Connection]]


class _Chunk:
    """The number of events in a chunk, which is adapted to the measured duration of chunks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.size = _FIRST_CHUNK

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the duration of one chunk, and adapt the size of the next chunk."""
        began = self._clock.monotonic()
        yield
        took = self._clock.monotonic() - began
        if took < _BRIEF:
            self.size = min(self.size * 2, _LARGEST_CHUNK)
        elif took > _LONG:
            self.size = max(self.size // 2, _FIRST_CHUNK)


def compact(write: Write, before: Revision, resource: Resource | None, keep: int, *, clock: Clock) -> int:
    """Remove superseded events chunk by chunk (see `EventLog.compact`) and return the number of removed events."""
    name = str(resource) if resource else ""
    with write() as connection:
        head = connection.execute(select(log_head.c.revision)).scalar_one()
        before = min(before, head)
        raise_floor(connection, name, before)
    chunk = _Chunk(clock)
    removed = after = 0
    while True:
        with chunk.timed(), write() as connection:
            doomed = connection.execute(_superseded(after, before, name, keep).limit(chunk.size)).scalars().all()
            _remove(connection, doomed)
        if not doomed:
            break
        removed += len(doomed)
        after = doomed[-1]
    while True:
        with chunk.timed(), write() as connection:
            head = connection.execute(select(log_head.c.revision)).scalar_one()
            gone = connection.execute(_deletions(min(before, head - 1), name).limit(chunk.size)).all()
            _remove(connection, [row.revision for row in gone])
            connection.execute(delete(object_).where(object_.c.id.in_([row.object_id for row in gone])))
        removed += len(gone)
        if not gone:
            return removed


def count(connection: Connection, before: Revision, resource: Resource | None, keep: int) -> int:
    """Return the number of events that `compact` would remove now."""
    name = str(resource) if resource else ""
    head = connection.execute(select(log_head.c.revision)).scalar_one()
    last = min(before, head)
    superseded = _superseded(0, last, name, keep)
    gone = _deletions(min(last, head - 1), name, alone=keep > 1)
    counts = (select(func.count()).select_from(each.subquery()) for each in (superseded, gone))
    return sum(int(connection.execute(each).scalar_one()) for each in counts)


def raise_floor(connection: Connection, resource: str, floor: Revision) -> None:
    """Raise the floor of `resource`, or of all resources if it is empty, to `floor`.

    A floor that is already higher is kept.
    """
    known = connection.execute(select(compaction_floor.c.floor).where(compaction_floor.c.resource == resource)).scalar()
    if known is None:
        connection.execute(insert(compaction_floor).values(resource=resource, floor=floor))
    elif known < floor:
        connection.execute(
            update(compaction_floor)
            .where(compaction_floor.c.resource == resource, compaction_floor.c.floor < floor)
            .values(floor=floor)
        )


def _superseded(after: Revision, before: Revision, resource: str, keep: int) -> Select[Any]:
    """Select the revisions of superseded events, except the newest `keep` events of each object.

    An event is superseded if another event of its object follows at or before `before`.
    """
    successor = event.alias("successor")
    query = (
        select(event.c.revision)
        .join(successor, (successor.c.object_id == event.c.object_id) & (successor.c.previous == event.c.revision))
        .where(event.c.revision > after, successor.c.revision <= before)
        .order_by(event.c.revision)
    )
    if resource:
        query = query.join(object_, object_.c.id == event.c.object_id).where(object_.c.resource == resource)
    if keep > 1:
        newer = event.alias("newer")
        count = (
            select(func.count())
            .where(newer.c.object_id == event.c.object_id, newer.c.previous >= event.c.revision)
            .scalar_subquery()
        )
        query = query.where(count >= keep)
    return query


def _deletions(before: Revision, resource: str, *, alone: bool = True) -> Select[Any]:
    """Select deletion events at or before `before`.

    If `alone` is set, select only deletions of objects that have no older event.
    """
    older = event.alias("older")
    query = (
        select(event.c.revision, event.c.object_id)
        .join(object_, object_.c.head_revision == event.c.revision)
        .where(event.c.type == EventType.DELETED, event.c.revision <= before)
        .order_by(event.c.revision)
    )
    if alone:
        query = query.where(
            ~exists().where(older.c.object_id == event.c.object_id, older.c.previous < event.c.previous)
        )
    return query.where(object_.c.resource == resource) if resource else query


def _remove(connection: Connection, doomed: Any) -> None:
    """Delete events, and store the hash of each removed range's last event in the event after the range."""
    if not doomed:
        return
    _chain_on(connection, doomed)
    reconciles = (
        connection.execute(
            select(event.c.reconcile_id).where(event.c.revision.in_(doomed), event.c.reconcile_id != 0).distinct()
        )
        .scalars()
        .all()
    )
    # Only the traces of new events are useful, so a trace is deleted together with the first event of its append.
    appends = select(event.c.append_id).where(event.c.revision.in_(doomed))
    connection.execute(delete(append_trace).where(append_trace.c.append_id.in_(appends)))
    connection.execute(delete(event).where(event.c.revision.in_(doomed)))
    _forget_reconciles(connection, reconciles)


def _chain_on(connection: Connection, doomed: Any) -> None:
    """Store the hash of each `doomed` event as the parent hash of the next event, unless this is already stored."""
    parent, other = event.alias("parent"), event.alias("other")
    # The next event need not have the next revision, because imported ranges have gaps.
    after = select(func.min(other.c.revision)).where(other.c.revision > parent.c.revision).scalar_subquery()
    behind = set(connection.execute(select(after).where(parent.c.revision.in_(doomed))).scalars()) - {None}
    before = select(func.max(other.c.revision)).where(other.c.revision < event.c.revision).correlate(event)
    parent_hash = select(parent.c.hash).where(parent.c.revision == before.scalar_subquery()).correlate(event)
    connection.execute(
        update(event)
        .where(event.c.revision.in_(sorted(behind - set(doomed))), event.c.parent_hash.is_(None))
        .values(parent_hash=parent_hash.scalar_subquery())
    )


def _forget_reconciles(connection: Connection, candidates: Any) -> None:
    """Delete the reconciles in `candidates` to which no event refers."""
    if not candidates:
        return
    left = select(event.c.reconcile_id).where(event.c.reconcile_id.in_(candidates), event.c.reconcile_id != 0)
    gone = set(candidates) - set(connection.execute(left).scalars())
    connection.execute(delete(reconcile_trigger).where(reconcile_trigger.c.reconcile_id.in_(gone)))
    connection.execute(delete(reconcile).where(reconcile.c.id.in_(gone)))


def begin_epoch(connection: Connection, uuid: str, reason: str, *, above: Revision, started_at: int) -> Head:
    """Start a new incarnation of the log, with revisions greater than both the head and `above`; return its head."""
    row = connection.execute(select(log_head.c.revision, log_head.c.hash)).one()
    head = Head(uuid, max(row.revision, above), row.hash)
    connection.execute(
        insert(log_epoch).values(
            uuid=uuid, after_revision=head.revision, parent_hash=head.hash, started_at=started_at, reason=reason
        )
    )
    connection.execute(update(log_head).values(uuid=uuid, revision=head.revision))
    raise_floor(connection, "", head.revision)
    return head
