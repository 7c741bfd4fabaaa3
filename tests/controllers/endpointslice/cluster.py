"""A log with real caches and the controllers of EndpointSlices; tests run the controllers step by step."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES
from ctrlmgr.controllers import endpointslice, endpointslice_mirroring
from ctrlmgr.controllers.endpointslice import controller as endpoint_slices_controller
from ctrlmgr.controllers.endpointslice_mirroring import controller as mirroring_controller
from ctrlmgr.eventlog.event import Event
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.testing.builders import a_namespace, a_node
from tests.controllers.log_cluster import LogCluster

ACTOR = endpointslice.DESCRIPTOR.user


class SliceCluster(LogCluster):
    """A log with the namespace `default` and the nodes `node-a` and `node-b` in two zones, and both controllers of
    EndpointSlices.
    """

    def __init__(
        self,
        *there: Object,
        log: MemoryEventLog | None = None,
        options: endpointslice.Options | None = None,
        mirroring: endpointslice_mirroring.Options | None = None,
    ) -> None:
        """Start with these objects, or with the log of another cluster whose process has ended."""
        super().__init__(log)
        if log is None:
            self.put(a_namespace(), a_node("node-a", "zone-1"), a_node("node-b", "zone-2"))
        self.put(*there)
        context = self.context(ACTOR, random.Random(self.log.head().revision))
        self.slices = endpoint_slices_controller.build(context, options or endpointslice.Options())
        self.mirroring = mirroring_controller.build(context, mirroring or endpointslice_mirroring.Options())
        self.informers.sync()
        for controller in (self.slices, self.mirroring):
            controller.start()

    def settle(self) -> list[str]:
        """Run the controllers until they are idle; return the controllers' writes, by type."""
        before = self.log.head().revision
        while True:
            self.follow()
            if not self.slices.process_next(timeout=0) and not self.mirroring.process_next(timeout=0):
                return types(self.log.events_after(before))

    def found(self, service: str = "web", manager: str = "") -> list[Object]:
        """Return the slices of a service, by default those of all managers."""
        labels: Mapping[str, str] = {SERVICE_NAME: service} | ({MANAGED_BY: manager} if manager else {})
        slices = self.log.snapshot(ENDPOINT_SLICES).objects
        return [obj for obj in slices if labels.items() <= obj.labels.items()]

    def addresses(self, service: str = "web") -> list[str]:
        """Return the addresses of all slices of a service, sorted."""
        views = [obj.view(EndpointSlice) for obj in self.found(service)]
        return sorted(each.addresses[0] for view in views for each in view.endpoints or ())


def types(events: Iterable[Event]) -> list[str]:
    """Return the types of events that controllers caused."""
    return [event.type.name for event in events if event.actor == ACTOR]
