"""A `ctrlmgr serve` process without its HTTP server: the real engine, informers and bootstrap controller on a log in
memory.

Several processes may share one log and one clock. No thread runs in the background: `settle` runs due work, and `tick`
advances the time of one process and runs its periodic jobs.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Key, Resource
from ctrlmgr.client import EngineClient, LogClient
from ctrlmgr.controllers.bootstrap.bootstrap_tasks import Parts, new_bootstrap
from ctrlmgr.controllers.bootstrap.controller import Bootstrap
from ctrlmgr.controllers.bootstrap.leases import MASTER_LEASES
from ctrlmgr.controllers.events.recorder import EventBroadcaster
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.eventlog import Author, Cause, Fence
from ctrlmgr.informer import Informers
from ctrlmgr.kinds.allocators.service_ranges import DEFAULT_RANGES, Ranges
from ctrlmgr.manager import Controller
from ctrlmgr.settings import ServiceSettings
from tests.engine.stage import Response, Stage

T = TypeVar("T")

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ENDPOINTS_PATH = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
SERVICE_CIDR = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
KUBERNETES = Key("default", "kubernetes")

JOBS = {10.0: ("kubernetes service", "default ServiceCIDR"), 60.0: ("system namespaces",)}


@dataclass
class Readiness:
    """Whether the process reports that it is ready for requests."""

    now: bool = True
    asked: int = field(default=0)

    def __call__(self) -> bool:
        self.asked += 1
        return self.now


class Process(Stage):
    """One process; it shares the log and the clock of the process `beside`, if given."""

    def __init__(
        self,
        ip: str | None = "192.0.2.2",
        port: int = 6443,
        *,
        beside: Process | None = None,
        ranges: Ranges = DEFAULT_RANGES,
        seed: int = 1,
        **settings: Any,
    ) -> None:
        super().__init__(log=beside.log if beside is not None else None, seed=seed)
        if beside is not None:
            self.clock = beside.clock
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self.ready = Readiness()
        random = Random(seed)
        self.internal = LogClient(
            self.log,
            author=Author("system:apiserver"),
            clock=self.clock,
            new_uid=lambda: new_uid(random),
        )
        self.client = EngineClient(self.engine, self.run, Requester("system:apiserver", ("system:masters",), "test"))
        self.broadcaster = EventBroadcaster(clock=self.clock, random=random)
        parts = Parts(
            self.informers, self.log, self.client, self.internal, self.client, self.broadcaster, self.clock, random
        )
        service = ServiceSettings(**settings)
        self.bootstrap: Bootstrap = new_bootstrap(parts, service, ranges, address=ip, port=port, ready=self.ready)

    def run(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        """Run an operation of the engine on the calling thread."""
        return Driver(self.log, self.feed, self.cacher, patience=0, fence=fence, cause=cause).run(operation)

    def start(self) -> Process:
        """Prepare the process, and run every job once, as `Bootstrap.run` does."""
        self.informers.sync()
        self.bootstrap.prepare(threading.Event())
        self.step_informers()
        for jobs in JOBS.values():
            self.do(*jobs)
        return self

    def do(self, *jobs: str) -> None:
        """Make periodic jobs due, and run all due work."""
        for job in jobs:
            self.bootstrap.periodic.jobs[job]()
        self.settle()

    def step_informers(self) -> None:
        self.feed.catch_up()
        while self.informers.step():
            pass

    def settle(self) -> None:
        """Run due work until no work is left."""
        self.step_informers()
        while any(each.process_next(0) for each in self.controllers):
            self.step_informers()
        self.broadcaster.flush()

    @property
    def controllers(self) -> list[Controller]:
        return [each for each in self.bootstrap.runnables if isinstance(each, Controller)]

    def tick(self, seconds: float = 10.0) -> None:
        """Advance the time by one period, and run the periodic jobs that become due."""
        self.clock.step(seconds)
        self.do(*JOBS.get(seconds, ()))

    def patch(self, path: str, body: Any) -> Response:
        answer = self.send("PATCH", path, body, media_type="application/merge-patch+json")
        assert answer.code == 200, answer.body
        self.step_informers()
        return answer

    def delete(self, path: str) -> None:
        assert self.send("DELETE", path).code == 200
        self.step_informers()

    def get(self, resource: Resource, key: Key = KUBERNETES) -> Object | None:
        return self.log.get(resource, key)

    def fields(self, resource: Resource, key: Key = KUBERNETES) -> dict[str, Any]:
        obj = self.get(resource, key)
        assert obj is not None
        return obj.to_dict()

    def published(self) -> list[tuple[str, int]]:
        """Return the addresses of the Endpoints `kubernetes`, after a check that the EndpointSlices contain the same
        addresses.
        """
        subsets = self.fields(ENDPOINTS).get("subsets") or []
        pairs = [
            (address["ip"], port["port"]) for each in subsets for address in each["addresses"] for port in each["ports"]
        ]
        slices = [each.to_dict() for each in self.log.snapshot(ENDPOINT_SLICES, namespace="default").objects]
        recorded = {
            (endpoint["addresses"][0], port["port"])
            for each in slices
            for endpoint in each["endpoints"] or ()
            for port in each["ports"] or ()
        }
        assert recorded == set(pairs)
        return pairs

    def leases(self) -> list[str]:
        return [each.name for each in self.log.snapshot(MASTER_LEASES).objects]

    def head(self) -> int:
        return self.log.head().revision

    def ports(self) -> list[dict[str, Any]]:
        ports: list[dict[str, Any]] = self.fields(SERVICES)["spec"]["ports"]
        return ports
