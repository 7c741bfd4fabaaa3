"""Exports a log of ctrlmgr as a recording, with the author of each change.

Guarantees: the recording begins with an ADDED event for each object that exists at the start revision. After the
initial objects, the recording contains each later event once, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_GROUP, Resource, Revision
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.recording.capture.watch_merge import Recorded
from ctrlmgr.recording.format import ChangeOrigin

_PAGE = 1000


def history(
    log: EventLog, is_selected: Callable[[Object], bool], *, start: Revision | None = None, opening: bool = True
) -> Iterator[Recorded]:
    """Yield the objects at `start` (None for the oldest complete revision), and the events since then.

    If `opening` is not set, yield only the events, without the objects. Raises `Expired` if events since `start` were
    compacted.
    """

    @lru_cache(maxsize=1000)
    def reconcile(id: int) -> tuple[int, Revision]:
        known = log.reconcile(id)
        return (known.cause.started_at, max(known.cause.triggers, default=0)) if known is not None else (0, 0)

    revision = log.floor() if start is None else start
    head = log.head().revision
    there = [obj for obj in log.snapshot(at=revision).objects if is_selected(obj)] if opening else []
    for obj in sorted(there, key=lambda each: each.revision):
        yield Recorded(EventType.ADDED, obj, 0)
    while revision < head and (events := log.events_after(revision, limit=_PAGE)):
        for event in events:
            if event.revision <= head and is_selected(event.object):
                began, seen = reconcile(event.reconcile) if event.reconcile else (0, 0)
                yield Recorded(event.type, event.object, event.recorded_at, ChangeOrigin(event.actor, began, seen))
        revision = events[-1].revision


def is_api_object(resource: Resource) -> bool:
    """Return whether a resource is visible in the API; internal resources have their own group."""
    return resource.group != INTERNAL_GROUP
