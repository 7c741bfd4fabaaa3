"""A log with real caches and the endpoints controller on it, stepped by hand."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, NAMESPACES, Key, Resource
from ctrlmgr.client import LogClient
from ctrlmgr.controllers.endpoints import CONTROLLER_NAME, new_endpoints_controller
from ctrlmgr.eventlog.event import Author, Event, EventType, Proposal
from ctrlmgr.eventlog.memory import MemoryEventLog
from ctrlmgr.informer import Informers, WatchCache
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.builders import a_namespace

WEB = Key("default", "web")
ACTOR = f"system:controller:{CONTROLLER_NAME}"


class Cluster:
    """A log, and the controller on it."""

    def __init__(self, *there: Object, batch_period: float = 0.0) -> None:
        self.clock = FakeClock()
        self.log = MemoryEventLog(clock=self.clock, random=random.Random(0))
        self.put(a_namespace(), *there)
        self.informers = Informers(self.log, WatchCache(self.log, clock=self.clock), clock=self.clock)
        uids = itertools.count(1)
        client = LogClient(
            self.log,
            author=Author(ACTOR),
            clock=self.clock,
            new_uid=lambda: f"uid-{next(uids)}",
            namespaces=self.informers.informer(NAMESPACES).lister,
        )
        self.controller = new_endpoints_controller(
            self.informers,
            client,
            self.log,
            clock=self.clock,
            random=random.Random(0),
            workers=1,
            batch_period=batch_period,
        )
        self.informers.sync()
        self.controller.start()

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

    def settle(self) -> list[Event]:
        """Let the controller do all it has to do now; return what it wrote."""
        before = self.log.head().revision
        while True:
            self.follow()
            if not self.controller.process_next(timeout=0):
                break
        return [event for event in self.log.events_after(before) if event.actor == ACTOR]

    def endpoints(self, key: Key = WEB) -> Object | None:
        return self.log.get(ENDPOINTS, key)

    def ready(self, key: Key = WEB) -> list[str] | None:
        """Return the IPs of the ready addresses; None if there is no Endpoints object."""
        found = self.endpoints(key)
        if found is None:
            return None
        return [
            address["ip"] for subset in found.to_dict().get("subsets", []) for address in subset.get("addresses", [])
        ]


def types(events: Sequence[Event]) -> list[str]:
    return [event.type.name for event in events]
