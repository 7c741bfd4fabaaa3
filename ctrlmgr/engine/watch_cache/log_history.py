"""Reads from the log the changes that the cacher no longer holds; the calling thread may block.

Guarantees: the changes equal the changes that the cacher held earlier, including `old`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer.informer import Change


class History(NamedTuple):
    """A range of the changes of one resource."""

    changes: Sequence[Change]
    whole: bool
    """Whether the range extends to the last change that the log had when it was read."""


def read_history(log: EventLog, resource: Resource, revision: Revision, limit: int) -> History:
    """Return up to `limit` changes after `revision`.

    Raises `Expired` if compaction has removed one of these changes.
    """
    events = log.events_after(revision, resource=resource, limit=limit)
    # The state of an object before its first event in this range is its state at `revision`.
    changed = {event.key for event in events if event.type is not EventType.ADDED}
    states: dict[Key, Object | None] = {**log.states(resource, changed, at=revision)} if changed else {}
    changes: list[Change] = []
    for event in events:
        old = None if event.type is EventType.ADDED else states.get(event.key)
        states[event.key] = new = None if event.type is EventType.DELETED else event.object
        changes.append(Change(event.type, old, new, event.revision))
    return History(changes, len(events) < limit)
