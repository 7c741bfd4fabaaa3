"""Imports events from another log or cluster, at their original revisions.

Guarantees:
- An imported event keeps its recorded revision, so there are gaps between imported revisions. The log records each
  imported range (`ImportedRange`), and `verify` accepts gaps only within such a range. The hash chain links each event
  to the event before it. Therefore, if the chain is valid across a gap, no event was removed there.
- Imported revisions ascend and are greater than the log's head. If an event contradicts the log, the import corrects
  the event's type. If the object exists already, ADDED becomes MODIFIED; if the object does not exist, MODIFIED becomes
  ADDED, and DELETED is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog.appending.pending import resource_name
from ctrlmgr.eventlog.event import Author, Event, EventType
from ctrlmgr.eventlog.hash_chain import Place, Stamp, content_digest, link
from ctrlmgr.eventlog.optimistic_concurrency import Slot


class Imported(NamedTuple):
    """An event to import.

    The event's `object` has the revision that the event keeps; `recorded_at` is in microseconds since 1970.
    """

    type: EventType
    object: Object
    recorded_at: int
    author: Author


class ImportedRange(NamedTuple):
    """An imported range of a log: the revisions greater than `after` up to `last`, possibly with gaps."""

    after: Revision
    last: Revision


def covered(stretches: Sequence[ImportedRange], after: Revision, revision: Revision) -> bool:
    """Return whether the gap between two revisions is within an imported range."""
    return any(stretch.after <= after and revision <= stretch.last for stretch in stretches)


def extended(stretches: Sequence[ImportedRange], after: Revision, last: Revision) -> ImportedRange:
    """Return the range after an import from `after` to `last`: either the newest range, extended, or a new range."""
    newest = stretches[-1] if stretches else None
    return newest._replace(last=last) if newest and newest.last == after else ImportedRange(after, last)


class Placed(NamedTuple):
    """An imported event, with the key of its object and the payload to store."""

    at: Place
    event: Event
    body: bytes


def place_of(each: Imported) -> Place:
    """Return the key of the object of an imported event."""
    return (resource_name(each.object.resource), each.object.namespace, each.object.name)


def place_batch(
    batch: Sequence[Imported],
    after: Revision,
    parent: bytes,
    slot_of: Callable[[Place], Slot],
    append_id: int,
    bodies: Sequence[bytes] | None = None,
) -> list[Placed]:
    """Return the events of a batch for a log that ends at `after` with the hash `parent`.

    The function does not change the log. The argument `bodies` contains the payload to store for each element of the
    batch; if None, the objects themselves are stored. The function `slot_of` returns the state of an object in the log.
    Raises `BadRequest` if a revision is not greater than the previous revision.
    """
    placed: list[Placed] = []
    touched: dict[Place, Slot] = {}
    for number, each in enumerate(batch):
        obj = each.object
        if obj.revision <= after:
            raise BadRequest(f"revision {obj.revision} cannot be imported after revision {after}")
        at = place_of(each)
        slot = touched.get(at) or slot_of(at)
        type_ = _effective_type(each.type, slot)
        if type_ is None:
            continue
        stamp = Stamp(each.recorded_at, each.author.actor, each.author.user_agent, 0, 0, append_id)
        after = obj.revision
        body = obj.body if bodies is None else bodies[number]
        parent = link(parent, after, slot.head, content_digest(at, body, type_.value, stamp))
        placed.append(Placed(at, Event(after, slot.head, type_, obj, *stamp, parent), body))
        touched[at] = Slot(after, type_ is not EventType.DELETED)
    return placed


def _effective_type(type_: EventType, slot: Slot) -> EventType | None:
    """Return an event's type, corrected by the object's state; None if the event must be skipped."""
    if type_ is EventType.DELETED:
        return type_ if slot.exists else None
    return EventType.MODIFIED if slot.exists else EventType.ADDED
