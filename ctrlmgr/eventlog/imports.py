"""Imports: events that have revisions of their own, because another log or cluster has given them out.

Guarantees:
- An imported event keeps the revision it was recorded at, so revisions have gaps there. Such a stretch of the log is
  remembered (`Stretch`), and `verify` accepts gaps within it and nowhere else. The chain links each event to the one
  before it, so a gap in a sound chain is one that was imported, not one where something was removed.
- Imported revisions ascend, from the log's head on. What a recording says of an object that the log sees otherwise is
  put right: what is added but exists is a modification, what is modified but does not exist is an addition, and the
  deletion of what does not exist is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.eventlog.acceptance import Slot
from ctrlmgr.eventlog.appending.pending import resource_name
from ctrlmgr.eventlog.chain import Place, Stamp, content_digest, link
from ctrlmgr.eventlog.event import Author, Event, EventType


class Imported(NamedTuple):
    """An event to import: `object` is at the revision that is kept, `recorded_at` in microseconds since 1970."""

    type: EventType
    object: Object
    recorded_at: int
    author: Author


class Stretch(NamedTuple):
    """A part of a log that was imported: the revisions after `after` up to `last`, not all of which there are."""

    after: Revision
    last: Revision


def covered(stretches: Sequence[Stretch], after: Revision, revision: Revision) -> bool:
    """Whether it may be right that nothing is between two revisions, because that part of the log was imported."""
    return any(stretch.after <= after and revision <= stretch.last for stretch in stretches)


def extended(stretches: Sequence[Stretch], after: Revision, last: Revision) -> Stretch:
    """Return the stretch that an import from `after` to `last` makes: the last one grown, or a new one."""
    newest = stretches[-1] if stretches else None
    return newest._replace(last=last) if newest and newest.last == after else Stretch(after, last)


def place_batch(
    batch: Sequence[Imported], after: Revision, parent: bytes, slot_of: Callable[[Place], Slot], append_id: int
) -> list[tuple[Place, Event]]:
    """Return what a batch becomes in a log that ends at `after` with the hash `parent`; changes nothing.

    `slot_of` tells what the log has at a place. Raises `BadRequest` for a revision that does not go on from there.
    """
    placed: list[tuple[Place, Event]] = []
    touched: dict[Place, Slot] = {}
    for each in batch:
        obj = each.object
        if obj.revision <= after:
            raise BadRequest(f"revision {obj.revision} cannot be imported behind revision {after}")
        at = (resource_name(obj.resource), obj.namespace, obj.name)
        slot = touched.get(at) or slot_of(at)
        type_ = _effective_type(each.type, slot)
        if type_ is None:
            continue
        stamp = Stamp(each.recorded_at, each.author.actor, each.author.user_agent, 0, 0, append_id)
        after = obj.revision
        parent = link(parent, after, slot.head, content_digest(at, obj.body, type_.value, stamp))
        placed.append((at, Event(after, slot.head, type_, obj, *stamp, parent)))
        touched[at] = Slot(after, type_ is not EventType.DELETED)
    return placed


def _effective_type(type_: EventType, slot: Slot) -> EventType | None:
    """Return the type that an imported event has in the log; None if it changes nothing."""
    if type_ is EventType.DELETED:
        return type_ if slot.exists else None
    return EventType.MODIFIED if slot.exists else EventType.ADDED
