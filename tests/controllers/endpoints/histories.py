"""Random histories of Services, pods, nodes, namespaces and handwritten Endpoints, with checks of the final state.

Processes may be killed, watches may repeat, delay or lose events, and controllers may reconcile keys in any order. When
nothing changes any more, Endpoints and EndpointSlices must equal the oracle's result, and no controller may write
again, not even in a newly started process.

`python -m tests.controllers.endpoints.histories --histories N --seed S` runs N histories; a failing history is
shortened and printed.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import operator
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, NODES, PODS, SERVICES, Resource
from ctrlmgr.eventlog import EventType
from ctrlmgr.testing.builders import (
    a_namespace,
    a_node,
    a_pod,
    a_service,
    container_port,
    endpoints,
    service_port,
)
from tests.controllers.endpoints.check import State, check_end
from tests.controllers.endpoints.endpoints_stage import CONTENT, EndpointsStage, ProcessKilled
from tests.controllers.endpoints.oracle import selects

Step = tuple[Any, ...]

SLICE_SIZE = 3
"""The maximum number of endpoints in a slice; it is so small that a few pods need several slices."""

SHORTEST, LONGEST = 15, 60
"""The number of steps of a history; it is fixed because random lists would be short, and have few events."""

NODE_NAMES = ("node-a", "node-b", "node-c")
WEB = {"app": "web"}
DATABASE = {"app": "db"}
HTTP = service_port("http", 80, target="http")
DNS = service_port("dns", 53, target=53, protocol="UDP")
PLAIN = service_port()

SERVICE_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "web": [
        {},
        {"labels": {"team": "a"}},
        {"ports": [HTTP]},
        {"ports": [HTTP, DNS]},
        {"families": ["IPv4", "IPv6"]},
        {"publish_not_ready": True},
        {"traffic_distribution": "PreferClose"},
        {"traffic_distribution": "PreferSameNode"},
        {"selector": DATABASE},
        {"selector": {}},
        {"selects_nothing": True},
        {"type": "ExternalName", "cluster_ip": ""},
    ],
    "db": [  # headless
        {"cluster_ip": "None", **each}
        for each in (
            {"selector": DATABASE},
            {"selector": DATABASE, "ports": []},
            {"selector": {"app": "db", "tier": "1"}},
            {"families": ["IPv6"]},
            {"selects_nothing": True, "ports": []},
        )
    ],
}
POD_NAMES = "pqrst"
POD_SPECS: list[dict[str, Any]] = [
    {"ports": [container_port("http", 8080)], "node": "node-a"},
    {"ports": [container_port("http", 9090)], "node": "node-b"},
    {"ports": [container_port("dns", 53, "UDP")], "node": "node-c"},
    {"node": "", "hostname": "h", "subdomain": "db"},
]
LABELS = (WEB, DATABASE, {"app": "db", "tier": "1"})
BY_HAND: list[list[dict[str, Any]]] = [
    [],
    [{"addresses": [{"ip": "203.0.113.1"}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}],
    [{"addresses": [{"ip": "203.0.113.1", "hostname": "one"}, {"ip": "2001:db8::1"}]}],
    [
        {"notReadyAddresses": [{"ip": "203.0.113.2"}], "ports": [{"port": 80, "protocol": "TCP"}]},
        {
            "addresses": [{"ip": "203.0.113.2"}, {"ip": "203.0.113.3"}],
            "ports": [{"port": 80, "protocol": "TCP"}, {"name": "b", "port": 81, "protocol": "TCP"}],
        },
    ],
]

spaces = st.sampled_from(["default", "default", "default", "other"])
services = st.sampled_from(sorted(SERVICE_VARIANTS))
pods = st.sampled_from(POD_NAMES)
states = st.sampled_from(["Ready", "Ready", "Ready", "Running", "Running", "Failed", "Succeeded", "Terminating"])
few = st.integers(0, 4)

STEPS: dict[str, tuple[int, tuple[st.SearchStrategy[Any], ...]]] = {
    "serve": (4, (spaces, services, st.integers(0, 11))),
    "unserve": (1, (spaces, services)),
    "pod": (4, (spaces, pods, few, st.sampled_from(LABELS), st.sampled_from(["", "4", "6", "46"]), states)),
    "touch": (6, (spaces, pods, states)),
    "replace": (2, (spaces, pods, st.booleans())),
    "renumber": (2, (spaces, pods, st.sampled_from(["", "4", "6", "46"]))),
    "kill_pod": (1, (spaces, pods)),
    "node": (2, (st.sampled_from(NODE_NAMES), st.sampled_from(["zone-1", "zone-2", ""]))),
    "kill_node": (1, (st.sampled_from(NODE_NAMES),)),
    "endpoints": (2, (spaces, services, st.integers(0, len(BY_HAND) - 1), st.booleans())),
    "lose": (3, (st.sampled_from([ENDPOINTS, ENDPOINT_SLICES]), few)),
    "spoil": (1, (few,)),
    "terminate": (1, ()),
    "empty": (1, ()),
    "hear": (4, (st.integers(1, 5),)),
    "work": (8, (st.integers(0, 2), few)),
    "race": (4, (st.integers(0, 2), few)),
    "strike": (2, (st.integers(0, 2), few)),
    "settle": (6, ()),
    "hear_again": (1, (st.integers(1, 20),)),
    "miss": (3, ()),
    "restart": (1, ()),
    "wait": (1, ()),
}
"""The random events of a history, each with its relative frequency."""

BEGINNING: list[Step] = [
    ("serve", "default", "web", 0),
    ("serve", "default", "db", 0),
    ("pod", "default", "p", 0, WEB, "4", "Ready"),
    ("pod", "default", "q", 1, WEB, "46", "Running"),
    ("pod", "default", "r", 3, DATABASE, "4", "Ready"),
    ("settle",),
]
"""The initial objects of half of the histories, so that events have objects to change."""

_step = st.sampled_from([name for name, (weight, _) in STEPS.items() for _ in range(weight)]).flatmap(
    lambda name: st.tuples(st.just(name), *STEPS[name][1])
)
_beginning = st.sampled_from([[], BEGINNING])
_rest = st.integers(SHORTEST, LONGEST).flatmap(lambda length: st.lists(_step, min_size=length, max_size=length))
histories = st.builds(operator.add, _beginning, _rest)

kills = st.one_of(st.just(0), st.integers(1, 12))
"""The number of controllers' writes after which the process is killed; 0 means that the process is not killed."""


class History:
    """A cluster and its random events; each step is possible at any time and may do nothing."""

    def __init__(self, world: EndpointsStage) -> None:
        self.world = world

    def take(self, step: Step) -> None:
        name, *arguments = step
        getattr(self, name)(*arguments)

    def _may_create(self, namespace: str) -> bool:
        found = self.world.get(NAMESPACES, "", namespace)
        return found is not None and found.to_dict()["status"]["phase"] == "Active"

    def _put(self, obj: Object) -> None:
        """Create an object with a new uid, or change it."""
        if self.world.get(obj.resource, obj.namespace, obj.name) is not None:
            self.world.put(obj)
        elif not obj.namespace or self._may_create(obj.namespace):
            self.world.put(obj.with_metadata(uid=self.world.new_uid()))

    def _delete(self, resource: Resource, namespace: str, name: str) -> None:
        if (found := self.world.get(resource, namespace, name)) is not None:
            self.world.delete(found)

    def serve(self, namespace: str, name: str, variant: int) -> None:
        variants = SERVICE_VARIANTS[name]
        self._put(a_service(name, namespace=namespace, **variants[variant % len(variants)]))

    def unserve(self, namespace: str, name: str) -> None:
        self._delete(SERVICES, namespace, name)

    def pod(self, namespace: str, name: str, spec: int, labels: dict[str, str], families: str, state: str) -> None:
        """Create a pod, or change the mutable fields of an existing pod; a terminated pod is not changed."""
        found = self.world.get(PODS, namespace, name)
        now = found.to_dict() if found is not None else {}
        spec = int(now.get("metadata", {}).get("annotations", {}).get("spec", spec))
        options = dict(POD_SPECS[spec % len(POD_SPECS)])
        options["node"] = now.get("spec", {}).get("nodeName") or (NODE_NAMES[0] if found else options["node"])
        if (ended := now.get("status", {}).get("phase")) in ("Failed", "Succeeded"):
            state = ended
        number = 1 + POD_NAMES.index(name)
        ips = [{"4": f"10.0.0.{number}", "6": f"fd00::{number}"}[family] for family in families]
        leaving = state == "Terminating" or "deletionTimestamp" in now.get("metadata", {})
        pod = a_pod(
            name,
            namespace=namespace,
            labels=labels,
            ips=ips,
            ready=state == "Ready",
            phase=state if state in ("Failed", "Succeeded") else "Running",
            deleted_at="2026-01-01T00:00:00Z" if leaving else None,
            **options,
        )
        self._put(pod.with_metadata(annotations={"spec": str(spec)}))

    def touch(self, namespace: str, name: str, state: str) -> None:
        """Change only the status of a pod."""
        if (found := self.world.get(PODS, namespace, name)) is not None:
            ips = found.to_dict()["status"].get("podIPs", ())
            families = "".join("6" if ":" in each["ip"] else "4" for each in ips)
            self.pod(namespace, name, 0, dict(found.labels), families, state)

    def renumber(self, namespace: str, name: str, families: str) -> None:
        """Change only the addresses of a running pod."""
        if (found := self.world.get(PODS, namespace, name)) is not None:
            ready = {"type": "Ready", "status": "True"} in found.to_dict()["status"]["conditions"]
            self.pod(namespace, name, 0, dict(found.labels), families, "Ready" if ready else "Running")

    def replace(self, namespace: str, name: str, unseen: bool) -> None:
        """Delete a pod and create it again; if `unseen` is set, the watch is lost, so that the deletion and the
        creation appear as one change.
        """
        if (found := self.world.get(PODS, namespace, name)) is not None:
            self.world.delete(found)
            self._put(found.with_metadata(deletion_timestamp=None, deletion_grace_period_seconds=None))
            if unseen:
                self.miss()

    def kill_pod(self, namespace: str, name: str) -> None:
        self._delete(PODS, namespace, name)

    def node(self, name: str, zone: str) -> None:
        self._put(a_node(name, zone))

    def kill_node(self, name: str) -> None:
        self._delete(NODES, "", name)

    def endpoints(self, namespace: str, name: str, variant: int, mirrored: bool) -> None:
        """Write Endpoints as a client, for a Service without a selector."""
        service = self.world.get(SERVICES, namespace, name)
        if service is not None and selects(service.to_dict()):
            return
        labels = {"by": "hand"} if mirrored else {"endpointslice.kubernetes.io/skip-mirror": "true"}
        self._put(endpoints(name, namespace=namespace, subsets=BY_HAND[variant], labels=labels))

    def lose(self, resource: Resource, pick: int) -> None:
        """Delete an object of a type that controllers write."""
        if found := self.world.all(resource):
            self.world.delete(found[pick % len(found)])

    def spoil(self, pick: int) -> None:
        """Overwrite a slice."""
        if found := self.world.all(ENDPOINT_SLICES):
            obj = found[pick % len(found)]
            self.world.put(Object.from_dict({**obj.to_dict(), "endpoints": None}))

    def terminate(self) -> None:
        """Delete the namespace `other`, or create it again."""
        if self.world.get(NAMESPACES, "", "other") is None:
            self._put(a_namespace("other"))
        else:
            self.world.put(a_namespace("other", phase="Terminating"))

    def empty(self) -> None:
        """Delete the content of a terminating namespace, and then the namespace, as the namespace controller does."""
        found = self.world.get(NAMESPACES, "", "other")
        if found is None or self._may_create("other"):
            return
        for obj in itertools.chain(*(self.world.all(resource, "other") for resource in CONTENT)):
            self.world.delete(obj)
        self.world.delete(found)

    def hear(self, events: int) -> None:
        self.world.informers.step(events)

    def hear_again(self, events: int) -> None:
        self.world.feed.again = events
        self.world.informers.step(1)

    def miss(self) -> None:
        """Lose the watch: the cache gets the net result of all events since the last received event."""
        self.world.informers.sync()

    def work(self, number: int, pick: int) -> None:
        self.world.work(number, pick)

    def race(self, number: int, pick: int) -> None:
        """Let a controller reconcile after each received event, so that the controller's cache is always outdated."""
        while self.world.informers.step(1):
            self.world.work(number, pick)

    def strike(self, number: int, pick: int) -> None:
        """Delete an object that a controller has just created, and lose the watch before the creation and the deletion
        are received.
        """
        self.world.follow()
        self.world.work(number, pick)
        for event in self.world.log.events_after(self.world.informers.revision):
            if event.type is EventType.ADDED and (made := self.world.log.get(event.resource, event.key)) is not None:
                self.world.delete(made)
        self.miss()

    def settle(self) -> None:
        """Run until all controllers are idle, and check the state of each namespace that is not terminating."""
        self.world.settle()
        if self._may_create("other") or self.world.get(NAMESPACES, "", "other") is None:
            State(self.world).check(SLICE_SIZE)

    def wait(self) -> None:
        self.world.clock.step(0.5)

    def restart(self) -> None:
        self.world.start()

    def end(self) -> None:
        """End all changes: run until the controllers are idle, and remove a terminating namespace with its content."""
        self.world.settle()
        while self.world.get(NAMESPACES, "", "other") is not None and not self._may_create("other"):
            self.empty()
            self.world.settle()


def check_history(steps: Sequence[Step], kill_after: int = 0) -> EndpointsStage:
    """Run the steps, start a new process whenever one is killed, and check the final state."""
    history = History(EndpointsStage(kill_after, slice_size=SLICE_SIZE))
    for step in steps:
        _survive(history, partial(history.take, step))
    _survive(history, history.end)
    history.world.log.kill_after = 0
    check_end(history.world, SLICE_SIZE)
    return history.world


def _survive(history: History, act: Callable[[], None]) -> None:
    try:
        act()
    except ProcessKilled:
        history.world.start()
        act()


def many(count: int, seed_: int) -> None:
    """Run `count` random histories; raise the error of the shortest failing history."""

    @seed(seed_)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(histories, kills)
    def check(steps: list[Step], kill_after: int) -> None:
        check_history(steps, kill_after)

    check()


def main(arguments: Sequence[str]) -> int:
    """Run the number of histories in the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    began = time.perf_counter()
    many(options.histories, options.seed)
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{options.histories} histories, seed {options.seed}: all well, {seconds:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
