"""An event log in memory to which other processes also append, and objects for tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog.event import Author, Event, EventType, Proposal
from ctrlmgr.eventlog.memory_log import MemoryEventLog

AUTHOR = Author("tester")


def thing(
    name: str, namespace: str = "default", *, kind: str = "Pod", labels: Mapping[str, str] | None = None, note: str = ""
) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    return Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": metadata, "note": note})


class SharedLog(MemoryEventLog):
    """A log to which other processes append: appends within `elsewhere` do not notify the observers of this process."""

    def __init__(self, *, clock: Clock, seed: int = 0) -> None:
        super().__init__(clock=clock, random=random.Random(seed))
        self._elsewhere = False
        self.reads = 0
        self.outages = 0
        """The number of next reads that fail."""

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        self._elsewhere = True
        try:
            yield
        finally:
            self._elsewhere = False

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        super().observe(lambda events: None if self._elsewhere else observer(events))

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        self.reads += 1
        if self.outages:
            self.outages -= 1
            raise LogUnavailable
        return super().events_after(revision, resource=resource, limit=limit)

    def put(self, *objects: Object) -> Revision:
        """Create or replace objects in one append; return the revision of the last event."""
        return self._change([self._put(obj) for obj in objects])

    def remove(self, obj: Object) -> Revision:
        stored = self.get(obj.resource, obj.key)
        assert stored is not None
        return self._change([Proposal(EventType.DELETED, stored, stored.revision)])

    def _put(self, obj: Object) -> Proposal:
        stored = self.get(obj.resource, obj.key)
        if stored is None:
            return Proposal(EventType.ADDED, obj, 0)
        return Proposal(EventType.MODIFIED, obj, stored.revision)

    def _change(self, proposals: Sequence[Proposal]) -> Revision:
        return self.append(proposals, author=AUTHOR)[-1].revision

    def keys(self, resource: Resource) -> list[Key]:
        return [obj.key for obj in self.snapshot(resource).objects]
