"""Tests of the Services that pods on simulated nodes can use."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, SERVICES, Key
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.controllers.simulated_nodes.cluster_services import Services
from ctrlmgr.controllers.simulated_nodes.runtime import SimulatedRuntime
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change
from ctrlmgr.simulation.simulated_network import REFUSED, UNKNOWN_HOST
from ctrlmgr.testing import FakeClock

POD = Key("a", "p")
WEB = Key("a", "web")
SLICE = Key("a", "web-x")


def service() -> Object:
    spec = {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]}
    return Object.from_dict(
        {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web", "namespace": "a"}, "spec": spec}
    )


def slice_of(*, ready: bool) -> Object:
    metadata = {"name": "web-x", "namespace": "a", "labels": {"kubernetes.io/service-name": "web"}}
    endpoints = [{"addresses": ["10.244.0.2"], "conditions": {"ready": ready}}]
    fields: dict[str, Any] = {"metadata": metadata, "endpoints": endpoints, "ports": [{"name": "", "port": 8080}]}
    return Object.from_dict({"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", **fields})


class ServiceObserver:
    """A pod on a node, and the changes of Services that the pod sees."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.services = Services(self.clock)
        self.time = PodTime(self.clock.now(), 1.0)

    def problem(self, at: float, host: str = "web", *, is_told: bool = True) -> str:
        return self.services.seen_by(POD, self.time, is_told=is_told).connect(host, 80, at).problem

    def ready(self, ready: bool) -> None:
        self.services.apply(ENDPOINT_SLICES, SLICE, slice_of(ready=ready))


def test_each_moment_has_a_result() -> None:
    cluster = ServiceObserver()
    cluster.clock.step(5)
    cluster.services.apply(SERVICES, WEB, service())
    cluster.clock.step(5)
    cluster.ready(True)
    cluster.clock.step(5)
    cluster.services.apply(ENDPOINT_SLICES, SLICE, None)
    cluster.clock.step(5)
    assert [cluster.problem(each) for each in (1, 6, 11, 16)] == [UNKNOWN_HOST, REFUSED, "", REFUSED]
    assert cluster.problem(11, "10.96.0.9") == ""
    assert cluster.services.seen_by(POD, cluster.time).next_change(0) == 5


def test_a_result_is_stable_despite_a_change_in_the_same_second() -> None:
    cluster = ServiceObserver()
    cluster.services.apply(SERVICES, WEB, service())
    cluster.clock.step(0.5)
    assert cluster.problem(0.4) == REFUSED
    cluster.ready(True)
    assert [cluster.problem(each) for each in (0.4, 0.5)] == [REFUSED, ""]


def test_a_change_is_visible_from_the_start_of_its_second() -> None:
    cluster = ServiceObserver()
    cluster.services.apply(SERVICES, WEB, service())
    cluster.clock.step(0.5)
    cluster.ready(True)
    assert cluster.problem(0.4) == ""


def test_objects_at_the_start_have_always_existed() -> None:
    cluster = ServiceObserver()
    cluster.clock.step(60)
    cluster.services.note_service(Change(EventType.ADDED, None, service(), 1, is_listed=True))
    cluster.services.note_slice(Change(EventType.ADDED, None, slice_of(ready=True), 2, is_listed=True))
    assert cluster.problem(1) == ""
    cluster.services.reset(ENDPOINT_SLICES, [])
    assert cluster.problem(1) == REFUSED


def test_a_change_returns_the_pods_that_queried_it() -> None:
    cluster = ServiceObserver()
    change = Change(EventType.ADDED, None, service(), 1)
    cluster.problem(0, is_told=False)
    assert cluster.services.askers(change) == []
    cluster.problem(0)
    cluster.services.note_service(change)
    assert cluster.services.askers(change) == [POD]
    assert cluster.services.askers_of_slice(Change(EventType.ADDED, None, slice_of(ready=True), 2)) == [POD]
    assert cluster.services.changes(POD) == 1
    cluster.services.forget(POD)
    assert (cluster.services.askers(change), cluster.services.changes(POD)) == ([], 0)


@pytest.mark.parametrize(("host", "problem"), [("localhost", ""), ("example.com", ""), ("web", UNKNOWN_HOST)])
def test_hosts_outside_the_cluster_are_no_services(host: str, problem: str) -> None:
    assert ServiceObserver().problem(0, host) == problem


def test_logs_use_the_same_services_as_the_status() -> None:
    clock = FakeClock()
    runtime = SimulatedRuntime(Rules(), 1.0, clock=clock)
    command = ["sh", "-c", "until nc -z web 80; do echo waiting; sleep 2; done; echo there; sleep 100"]
    status = {"startTime": "2026-01-01T00:00:00Z"}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "busybox", "command": command}]}
    metadata = {"name": "p", "namespace": "a"}
    pod = Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status})
    labels = {"simulate.ctrlmgr.io/node": "true"}
    node = Object.from_dict({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "labels": labels}})
    runtime.index.apply(SERVICES, WEB, service())
    clock.step(6)
    runtime.index.apply(ENDPOINT_SLICES, SLICE, slice_of(ready=True))
    clock.step(6)
    found = runtime.logs(pod, node, LogOptions())
    assert found is not None
    assert found.more(pod, node).data == b"waiting\nwaiting\nwaiting\nthere\n"
