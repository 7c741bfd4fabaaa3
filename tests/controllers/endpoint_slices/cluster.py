"""A log with real caches and the controllers that keep slices on it, stepped by hand."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES
from ctrlmgr.controllers.endpoint_slices.controller import new_endpoint_slice_controller
from ctrlmgr.controllers.mirroring.controller import new_mirroring_controller
from ctrlmgr.eventlog.event import Event
from ctrlmgr.eventlog.memory import MemoryEventLog
from ctrlmgr.testing.builders import a_namespace, a_node
from tests.authorization.controllers import account_of
from tests.controllers.log_cluster import LogCluster

ACTOR = account_of("endpointslice-controller").name


class SliceCluster(LogCluster):
    """Namespace `default`, nodes `node-a` and `node-b` in two zones, and both controllers."""

    def __init__(self, *there: Object, log: MemoryEventLog | None = None, batch_period: float = 0.0) -> None:
        """Start with these objects, or on the log of another cluster whose process has ended."""
        super().__init__(log)
        if log is None:
            self.put(a_namespace(), a_node("node-a", "zone-1"), a_node("node-b", "zone-2"))
        self.put(*there)
        client = self.client(ACTOR)
        drawn = random.Random(self.log.head().revision)
        self.slices = new_endpoint_slice_controller(
            self.informers, client, self.log, clock=self.clock, random=drawn, workers=1, batch_period=batch_period
        )
        self.mirroring = new_mirroring_controller(
            self.informers, client, self.log, clock=self.clock, random=drawn, workers=1
        )
        self.informers.sync()
        for controller in (self.slices, self.mirroring):
            controller.start()

    def settle(self) -> list[str]:
        """Let the controllers do all they have to do now; return what they wrote, by type."""
        before = self.log.head().revision
        while True:
            self.follow()
            if not self.slices.process_next(timeout=0) and not self.mirroring.process_next(timeout=0):
                return types(self.log.events_after(before))

    def found(self, service: str = "web", manager: str = "") -> list[Object]:
        """Return the slices of a service, whoever keeps them if no `manager` is given."""
        labels: Mapping[str, str] = {SERVICE_NAME: service} | ({MANAGED_BY: manager} if manager else {})
        slices = self.log.snapshot(ENDPOINT_SLICES).objects
        return [obj for obj in slices if labels.items() <= obj.labels.items()]

    def addresses(self, service: str = "web") -> list[str]:
        """Return the addresses of all slices of a service, sorted."""
        views = [obj.view(EndpointSlice) for obj in self.found(service)]
        return sorted(each.addresses[0] for view in views for each in view.endpoints or ())


def types(events: Iterable[Event]) -> list[str]:
    """Return which types of events controllers caused."""
    return [event.type.name for event in events if event.actor == ACTOR]
