"""A log with real caches and the endpoints controller; tests run the controller step by step."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, Key
from ctrlmgr.controllers.endpoints import DESCRIPTOR, Options
from ctrlmgr.controllers.endpoints.controller import build
from ctrlmgr.eventlog.event import Event
from ctrlmgr.testing.builders import a_namespace
from tests.controllers.log_cluster import WEB, LogCluster

ACTOR = DESCRIPTOR.user


class Cluster(LogCluster):
    """A log with the namespace `default`, and the endpoints controller."""

    def __init__(self, *there: Object, batch_period: float = 0.0) -> None:
        super().__init__()
        self.put(a_namespace(), *there)
        options = Options(endpoint_updates_batch_period=batch_period)
        self.controller = build(self.context(ACTOR, random.Random(0)), options)
        self.informers.sync()
        self.controller.start()

    def settle(self) -> list[Event]:
        """Run the controller until it is idle; return the controller's writes."""
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
