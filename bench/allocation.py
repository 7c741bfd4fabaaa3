"""Measures allocation from a nearly full range compared with an empty range, and a round of both repairs.

Creations with the full range and with the empty range alternate. The benchmark measures the CPU time of a whole
creation, including the search for an address and the update of the set of used addresses.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

import msgspec

from bench.report import Claim, report, run
from ctrlmgr import interpreter
from ctrlmgr.admission.plugin_registry import default_chain
from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import SERVICES, Resource, Revision
from ctrlmgr.clock import SystemClock
from ctrlmgr.controllers.repair.address_findings import address_claim, find_address_findings
from ctrlmgr.controllers.repair.controller import read_listings
from ctrlmgr.controllers.repair.port_findings import find_port_findings, port_claim
from ctrlmgr.controllers.repair.repair_findings import ServiceValue
from ctrlmgr.engine.blocking_driver import Driver
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.request_options import Body, Requester, WriteOptions
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.eventlog import Author, EventLog, EventType, Proposal, Snapshot, open_log
from ctrlmgr.eventlog.memory_log import MemoryEventLog
from ctrlmgr.informer import EventWindow
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS, Ranges
from ctrlmgr.kinds.builtin import builtin_kinds

RANGES = Ranges.parse("10.96.0.0/12", "30000-32767")
FULL = 0.9
TURNS = 20
CREATIONS = 200
"""Number of creations that are measured in each turn."""
SERVICES_IN_ALL = 10_000
_AUTHOR = Author("bench")
_BATCH = 1000
_CLAIM = (
    b'{"kind":"IPAddress","apiVersion":"networking.k8s.io/v1","metadata":{"name":"%s"},'
    b'"spec":{"parentRef":{"resource":"services","namespace":"bench","name":"old"}}}'
)
_MILLISECONDS = 1000.0


class Beginning(MemoryEventLog):
    """An event log that begins with given objects but without the events that created them."""

    def __init__(self, objects: list[Object]) -> None:
        """Create a log with these `objects`."""
        super().__init__(clock=SystemClock(), random=random.Random(1))
        self._objects = objects

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects at the first call, and no objects later."""
        objects, self._objects = self._objects, []
        return Snapshot(0, objects)


class Cluster:
    """An engine whose range of addresses is used up to a fraction."""

    def __init__(self, share: float) -> None:
        """Claim a fraction of all addresses; the claimed addresses are evenly distributed over the range."""
        log = Beginning([claim(address) for address in addresses(share)])
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "bench", "uid": "uid"}}
        feed = EventWindow(log, clock=SystemClock())
        self.cacher = Cacher(log, feed)
        kinds = builtin_kinds(RANGES)
        self.engine = Engine(
            kinds,
            self.cacher,
            log,
            clock=SystemClock(),
            random=random.Random(2),
            admission=default_chain(kinds, SystemClock()),
        )
        self.driver = Driver(log, feed, self.cacher)
        log.append([Proposal(EventType.ADDED, Object.from_dict(namespace), 0)], author=_AUTHOR)
        kind = kinds.stored(SERVICES)
        assert kind is not None
        self.target = Target(kind, "bench", "")
        self.created = 0

    def create(self) -> None:
        """Create a Service."""
        self.created += 1
        fields = {"metadata": {"name": f"s{self.created}"}, "spec": {"ports": [{"port": 80}]}}
        body = Body("application/json", msgspec.json.encode({"kind": "Service", "apiVersion": "v1", **fields}))
        self.driver.run(self.engine.create(self.target, body, WriteOptions(), Requester("bench")))


def addresses(share: float) -> Iterator[str]:
    """Yield a fraction of the range's addresses."""
    [whole] = RANGES.addresses
    draw = random.Random(3).random
    return (whole[index] for index in range(whole.count) if draw() < share)


def claim(address: str) -> Object:
    """Return an IPAddress or a port claim as the allocator creates it, with only the fields that it reads."""
    metadata = ObjectMeta(name=address)
    return Object(IP_ADDRESSES, _CLAIM % address.encode(), 0, metadata)


def creations(cluster: Cluster) -> float:
    """Return the average CPU time of a creation, in microseconds."""
    began = time.process_time()
    for _ in range(CREATIONS):
        cluster.create()
    return (time.process_time() - began) / CREATIONS * 1_000_000


def compare() -> tuple[float, float]:
    """Return two times of a creation in microseconds of CPU: with an empty range, and with a nearly full range."""
    empty, full = Cluster(0.0), Cluster(FULL)
    gc.freeze()
    turns = [(creations(empty), creations(full)) for _ in range(TURNS + 1)][1:]  # the first creation compiles schemas
    return median(each for each, _ in turns), median(each for _, each in turns)


def service(number: int) -> Object:
    """Return a Service with an address; every second Service also has a node port."""
    metadata = {"name": f"s{number}", "namespace": "bench", "uid": f"uid-{number}"}
    address = RANGES.addresses[0][number]
    port: dict[str, object] = {"port": 80, "protocol": "TCP"}
    if number < RANGES.ports.count:
        port["nodePort"] = RANGES.ports.first + number
    kind = "NodePort" if "nodePort" in port else "ClusterIP"
    spec = {"type": kind, "clusterIP": address, "clusterIPs": [address], "ports": [port], "selector": {"app": "a"}}
    return Object.from_dict({"kind": "Service", "apiVersion": "v1", "metadata": metadata, "spec": spec})


def fill(log: EventLog) -> None:
    """Append Services and the claims of their addresses and ports to a log."""
    objects: list[Object] = []
    for number in range(SERVICES_IN_ALL):
        each = service(number)
        objects += [
            each,
            address_claim(ServiceValue(RANGES.addresses[0][number], each)).with_metadata(uid=f"ip-{number}"),
        ]
        if number < RANGES.ports.count:
            objects.append(port_claim(ServiceValue(RANGES.ports[number], each)).with_metadata(uid=f"port-{number}"))
    for at in range(0, len(objects), _BATCH):
        log.append([Proposal(EventType.ADDED, each, 0) for each in objects[at : at + _BATCH]], author=_AUTHOR)


def repair_round(log: EventLog) -> float:
    """Return the CPU seconds of one round of both repairs, which finds no problem."""
    began = time.process_time()
    services, claims, service_cidrs = read_listings(log, IP_ADDRESSES)
    findings = find_address_findings(services, claims, RANGES, service_cidrs)
    services, claims, _ = read_listings(log, NODE_PORTS)
    findings += find_port_findings(services, claims, RANGES.ports)
    assert not findings, findings[0]
    return time.process_time() - began


def rounds() -> float:
    """Return the median of the CPU seconds of several rounds."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'log.db'}"
        with closing(open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)) as log:
            fill(log)
            return median(repair_round(log) for _ in range(5))


def main(arguments: Sequence[str]) -> int:
    """Print the claims; with --check, exit with code 1 if a claim fails."""
    interpreter.tune()
    repaired = rounds() * _MILLISECONDS
    empty, full = compare()
    return report(
        [
            Claim(
                "create of a Service in a /12 that is 90 % full, compared with an empty /12",
                full,
                empty,
                1.5,
                "us CPU",
                at_most=True,
            ),
            Claim(
                "a repair of the ClusterIPs and node ports of 10,000 Services",
                repaired,
                _MILLISECONDS,
                1.0,
                "ms CPU",
                at_most=True,
            ),
        ],
        arguments,
    )


if __name__ == "__main__":
    run(main, __doc__)
