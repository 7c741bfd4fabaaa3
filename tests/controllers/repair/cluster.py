"""A cluster whose claims of addresses and ports a test can corrupt: the real engine on a log in memory, and both repair
controllers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, NAMESPACES, SERVICES, Key, Resource
from ctrlmgr.client import EngineClient, LogClient
from ctrlmgr.controllers.events.recorder import EventBroadcaster
from ctrlmgr.controllers.repair.controller import HandledFinding, Repair, cluster_ip_repair, node_port_repair
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import Author, Cause, EventLog, EventType, Fence, Proposal
from ctrlmgr.kinds.allocators.allocation_claims import Claim
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from tests.engine.stage import Stage

VANDAL = Author("vandal")
DEFAULT = Ranges.parse("10.96.0.0/16,fd00:10:96::/112", "30000-32767")
"""The primary range of addresses is the range of the built-in Services strategy."""

T = TypeVar("T")
Change = Callable[[dict[str, Any]], None]


class RepairCluster(Stage):
    """A cluster with namespaces `a` and `b`, both repair controllers, and a client that corrupts allocations."""

    def __init__(self, ranges: Ranges = DEFAULT, *, log: EventLog | None = None) -> None:
        super().__init__(log=log)
        for name in ("a", "b", "default"):
            self.namespace(name)
        uids = itertools.count(1)
        self.internal = LogClient(
            self.log,
            author=Author("system:controller:repair"),
            clock=self.clock,
            new_uid=lambda: f"uid-{next(uids)}",
        )
        broadcaster = EventBroadcaster(clock=self.clock, random=Random(1), host="host")
        self.broadcasters = [broadcaster]
        self.client = EngineClient(self.engine, self.run, Requester("repair"))
        self.addresses = cluster_ip_repair(self.log, ranges, broadcaster, self.client)
        self.ports = node_port_repair(self.log, ranges, broadcaster, self.client)

    def run(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation of the engine on the calling thread."""
        return Driver(self.log, self.feed, self.cacher, patience=0, fence=fence, cause=cause).run(operation)

    def service(self, name: str = "web", namespace: str = "a", **spec: Any) -> Object:
        body = {
            "kind": "Service",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], **spec},
        }
        answer = self.send("POST", f"/api/v1/namespaces/{namespace}/services", body)
        assert answer.code == 201, answer.body
        return self.get(SERVICES, name, namespace)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        obj = self.find(resource, name, namespace)
        assert obj is not None
        return obj

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self.log.get(resource, Key(namespace, name))

    def tamper(self, obj: Object, change: Change) -> Object:
        """Append a changed object directly to the log, without validation."""
        fields = obj.to_dict()
        change(fields)
        events = self.log.append([Proposal(EventType.MODIFIED, Object.from_dict(fields), obj.revision)], author=VANDAL)
        return events[0].object

    def remove(self, obj: Object) -> None:
        self.log.append([Proposal(EventType.DELETED, obj, obj.revision)], author=VANDAL)

    def add(self, obj: Object) -> Object:
        return self.log.append([Proposal(EventType.ADDED, obj, 0)], author=VANDAL)[0].object

    def claim(self, resource: Resource, name: str) -> str:
        """Return the owner of a claim; an empty string means that the claim does not exist."""
        claim = self.find(resource, name)
        parent = claim.view(Claim).parent if claim is not None else None
        return f"{parent.namespace}/{parent.name}" if parent is not None else ""

    def claims(self) -> dict[str, str]:
        """Return all claims of addresses and ports, each with its owner."""
        found = [*self.log.snapshot(IP_ADDRESSES).objects, *self.log.snapshot(NODE_PORTS).objects]
        return {claim.name: self.claim(claim.resource, claim.name) for claim in found}

    def another(self) -> Repair[EngineClient]:
        """Return the repair controller of addresses in another process."""
        self.broadcasters.append(EventBroadcaster(clock=self.clock, random=Random(2)))
        return cluster_ip_repair(self.log, DEFAULT, self.broadcasters[-1], self.client)

    def repair_addresses(self) -> list[HandledFinding]:
        return self.addresses.run(self.client)

    def repair_ports(self) -> list[HandledFinding]:
        return self.ports.run(self.internal)

    def stored_events(self) -> list[Object]:
        for broadcaster in self.broadcasters:
            broadcaster.flush()
        return self.log.snapshot(EVENTS).objects

    def events(self) -> list[dict[str, Any]]:
        return [event.to_dict() for event in self.stored_events()]

    def namespaces(self) -> list[str]:
        return [each.name for each in self.log.snapshot(NAMESPACES).objects]


def summary(handled: list[HandledFinding]) -> list[tuple[str, str, str]]:
    """Return the reason, value and outcome of each finding of a repair."""
    return [(each.finding.reason, each.finding.value, each.outcome.value) for each in handled]


def rounds(run: Callable[[], list[HandledFinding]], number: int) -> list[list[tuple[str, str, str]]]:
    return [summary(run()) for _ in range(number)]
