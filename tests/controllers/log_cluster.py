"""A log with real caches on it, and somebody else who writes to it; what the stepped controllers' clusters share."""

from __future__ import annotations

import itertools
import random

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.client import LogClient
from ctrlmgr.eventlog.event import Author, EventType, Proposal
from ctrlmgr.eventlog.memory import MemoryEventLog
from ctrlmgr.informer import Informers, WatchCache
from ctrlmgr.testing import FakeClock

WEB = Key("default", "web")


class LogCluster:
    """`put` and `delete` are a client's; `informers` have not synced yet."""

    def __init__(self, log: MemoryEventLog | None = None) -> None:
        """Start with an empty log, or on that of another cluster whose process has ended."""
        self.clock = FakeClock()
        self.log = log or MemoryEventLog(clock=self.clock, random=random.Random(0))
        self.informers = Informers(self.log, WatchCache(self.log, clock=self.clock), clock=self.clock)

    def client(self, actor: str) -> LogClient:
        """Return what a controller of that name writes with."""
        uids = itertools.count(self.log.head().revision)
        return LogClient(
            self.log,
            author=Author(actor),
            clock=self.clock,
            new_uid=lambda: f"uid-{next(uids)}",
            namespaces=self.informers.informer(NAMESPACES).lister,
        )

    def put(self, *objects: Object) -> None:
        """Create or replace objects, as somebody else."""
        for obj in objects:
            stored = self.log.get(obj.resource, obj.key)
            kind = EventType.MODIFIED if stored else EventType.ADDED
            self.log.append([Proposal(kind, obj, stored.revision if stored else 0)], author=Author("client"))

    def delete(self, resource: Resource, key: Key) -> None:
        """Delete an object, as somebody else."""
        stored = self.log.get(resource, key)
        assert stored is not None
        self.log.append([Proposal(EventType.DELETED, stored, stored.revision)], author=Author("client"))

    def follow(self) -> None:
        """Bring the caches up to date."""
        while self.informers.step():
            pass
