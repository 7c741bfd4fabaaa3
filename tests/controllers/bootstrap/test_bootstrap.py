"""Tests of the whole bootstrap of a server: preparation, readiness, periodic repairs, stop."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from typing import Any

import pytest

from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, NAMESPACES, SERVICES, Key
from ctrlmgr.controllers.repair.address_findings import address_claim
from ctrlmgr.controllers.repair.repair_findings import ServiceValue
from ctrlmgr.errors import InternalError, LogUnavailable, ServiceUnavailable, SettingsError
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES
from ctrlmgr.manager import Phase
from ctrlmgr.manager.runnable import HasSynced, Manager
from ctrlmgr.testing.builders import a_service
from tests.background import DEADLINE, background
from tests.controllers.bootstrap.process import ENDPOINTS_PATH, SERVICE, SERVICE_CIDR, SLICE, Process


def test_a_new_cluster_gets_all_objects() -> None:
    process = Process().start()
    names = [each.name for each in process.log.snapshot(NAMESPACES).objects]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    service = process.fields(SERVICES)
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"] == {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        "clusterIP": "10.96.0.1",
        "clusterIPs": ["10.96.0.1"],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    endpoints = process.fields(ENDPOINTS)
    assert endpoints["metadata"]["labels"] == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": 6443, "protocol": "TCP"}]
    assert endpoints["subsets"] == [{"addresses": [{"ip": "192.0.2.2"}], "ports": ports}]
    slice_ = process.fields(ENDPOINT_SLICES)
    assert slice_["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    assert (slice_["addressType"], slice_["ports"]) == ("IPv4", ports)
    assert slice_["endpoints"] == [{"addresses": ["192.0.2.2"], "conditions": {"ready": True}}]
    assert process.get(IP_ADDRESSES, Key("", "10.96.0.1")) is not None


def test_correct_objects_are_not_written() -> None:
    process = Process().start()
    process.tick(1.0)
    head = process.head()
    process.do("kubernetes service", "default ServiceCIDR", "system namespaces", "repair cluster-ips")
    assert process.head() == head


def test_no_endpoint_is_published_before_the_process_is_ready() -> None:
    process = Process()
    process.ready.now = False
    process.start()
    assert process.get(NAMESPACES, Key("", "default")) is not None
    assert process.get(SERVICES) is None
    for _ in range(3):
        process.tick(0.1)
    assert process.ready.asked == 4
    process.ready.now = True
    process.tick(0.1)
    assert process.published() == [("192.0.2.2", 6443)]
    process.ready.now = False
    process.delete(ENDPOINTS_PATH)
    process.tick(10.0)
    assert process.published() == [("192.0.2.2", 6443)]


@pytest.mark.parametrize(
    "path", [SERVICE, ENDPOINTS_PATH, SLICE, SERVICE_CIDR], ids=["service", "endpoints", "slice", "cidr"]
)
def test_deleted_objects_are_recreated(path: str) -> None:
    process = Process().start()
    process.delete(path)
    process.settle()
    assert process.send("GET", path).code == 404
    process.tick(1.0)
    assert process.send("GET", path).code == 200
    assert process.published() == [("192.0.2.2", 6443)]


def test_the_period_recreates_objects_without_a_watch_event() -> None:
    process = Process().start()
    process.delete(SERVICE)
    process.settle()
    assert process.get(SERVICES) is None
    process.do("kubernetes service")
    assert process.get(SERVICES) is not None


def test_the_slice_follows_the_endpoints() -> None:
    process = Process().start()
    ports = [{"name": "https", "port": 443}]
    process.patch(ENDPOINTS_PATH, {"subsets": [{"addresses": [{"ip": "203.0.113.1"}], "ports": ports}]})
    process.tick(1.0)
    assert process.published() == [("192.0.2.2", 443)]
    process.delete(ENDPOINTS_PATH)
    process.tick(1.0)
    assert process.published() == [("192.0.2.2", 6443)]


def test_changes_of_the_service_are_kept_until_the_next_start() -> None:
    process = Process().start()
    changed = {"ports": [{"name": "https", "port": 444, "targetPort": 9}], "type": "NodePort"}
    process.patch(
        SERVICE, {"metadata": {"labels": {"component": "x"}}, "spec": {**changed, "sessionAffinity": "ClientIP"}}
    )
    process.tick()
    assert process.ports()[0]["port"] == 444
    again = Process(beside=process, ip="192.0.2.3").start()
    fields = again.fields(SERVICES)
    assert again.ports() == [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]
    assert (fields["spec"]["type"], fields["spec"]["sessionAffinity"]) == ("ClusterIP", "ClientIP")
    assert fields["metadata"]["labels"]["component"] == "x"
    assert not any(each.name.startswith("3") for each in again.log.snapshot(IP_ADDRESSES).objects)


def test_a_node_port_is_configured_by_the_settings() -> None:
    process = Process(kubernetes_service_node_port=30443).start()
    assert process.fields(SERVICES)["spec"]["type"] == "NodePort"
    assert [each["nodePort"] for each in process.ports()] == [30443]
    without = Process(beside=process, ip="192.0.2.3").start()
    assert without.fields(SERVICES)["spec"]["type"] == "ClusterIP"
    assert "nodePort" not in without.ports()[0]


def test_a_node_port_out_of_range_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"must be within service\.node_port_range, 30000-32767"):
        Process(kubernetes_service_node_port=443)


# Preparing.


def test_both_repairs_run_before_readiness() -> None:
    process = Process()
    process.namespace("ns")
    spec = {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]}
    body = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": spec}
    created = process.send("POST", "/api/v1/namespaces/ns/services", body)
    assert created.code == 201
    claim = process.get(IP_ADDRESSES, Key("", "10.96.0.9"))
    assert claim is not None
    process.internal.delete(claim)
    assert not process.bootstrap.has_synced()
    process.start()
    assert process.get(IP_ADDRESSES, Key("", "10.96.0.9")) is not None
    assert process.bootstrap.has_synced()
    assert process.bootstrap.has_synced()


def test_the_round_at_the_start_counts_as_a_round() -> None:
    process = Process()
    leak = address_claim(ServiceValue("10.96.0.77", a_service("gone"))).with_metadata(uid="leak")
    process.internal.create(leak)
    process.start()
    process.do("repair cluster-ips")
    assert process.get(IP_ADDRESSES, Key("", "10.96.0.77")) is not None
    process.do("repair cluster-ips")
    assert process.get(IP_ADDRESSES, Key("", "10.96.0.77")) is None


def failing(process: Process, monkeypatch: pytest.MonkeyPatch, error: Exception, times: int = 1_000) -> None:
    """Make the log fail when the repair controllers read it."""
    snapshot, left = process.log.snapshot, [times]

    def fail(*arguments: Any, **named: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return snapshot(*arguments, **named)

    monkeypatch.setattr(process.log, "snapshot", fail)


def test_a_failing_repair_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.informers.sync()
    failing(process, monkeypatch, InternalError("broken"))
    manager = Manager(clock=process.clock)
    for runnable in process.bootstrap.runnables:
        manager.add(runnable, Phase.SERVERS)
    with pytest.raises(InternalError, match="broken"):
        manager.run(threading.Event())
    assert not process.bootstrap.has_synced()


def test_a_failing_step_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.informers.sync()
    failing(process, monkeypatch, LogUnavailable("away"), times=2)
    preparing = background(lambda: process.bootstrap.prepare(threading.Event()))
    for _ in range(2):
        process.clock.wait_for_waiters(1)
        assert not process.bootstrap.has_synced()
        process.clock.step(0.1)
    preparing.result(DEADLINE)
    assert process.bootstrap.has_synced()


def test_a_step_that_fails_for_a_minute_fails_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.informers.sync()
    failing(process, monkeypatch, LogUnavailable("away"))
    preparing = background(lambda: process.bootstrap.prepare(threading.Event()))
    process.clock.wait_for_waiters(1)
    process.clock.step(60)
    with pytest.raises(LogUnavailable):
        preparing.result(DEADLINE)


def test_a_stop_ends_the_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.informers.sync()
    failing(process, monkeypatch, LogUnavailable("away"))
    stop = threading.Event()
    preparing = background(lambda: process.bootstrap.run(stop))
    process.clock.wait_for_waiters(1)
    stop.set()
    process.clock.step(0.1)
    preparing.result(DEADLINE)
    assert not process.bootstrap.has_synced()


def test_namespaces_that_cannot_be_created_do_not_block_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.informers.sync()

    def refuse(obj: object) -> None:
        raise InternalError("no")

    monkeypatch.setattr(process.client, "create", refuse)
    process.bootstrap.prepare(threading.Event())
    assert process.bootstrap.has_synced()
    monkeypatch.undo()
    process.do("system namespaces")
    assert process.get(NAMESPACES, Key("", "default")) is not None


# Running and stopping.


def test_bootstrap_runs_in_a_manager_until_it_is_stopped() -> None:
    process = Process()
    process.informers.sync()
    manager, stop = Manager(clock=process.clock), threading.Event()
    assert isinstance(process.bootstrap, HasSynced)
    for runnable in process.bootstrap.runnables:
        manager.add(runnable, Phase.LEADER)
    running = background(lambda: manager.run(stop))
    published = threading.Event()
    process.log.observe(lambda events: published.set() if any(e.resource == ENDPOINT_SLICES for e in events) else None)
    assert published.wait(DEADLINE)
    assert process.leases() == ["192.0.2.2:6443"]
    stop.set()
    while not wait([running], timeout=0.05).done:
        process.clock.step(0.05)  # the interval in which the manager may check whether everything has started
    running.result()
    assert process.leases() == []


def test_a_stopped_process_publishes_nothing() -> None:
    process = Process().start()
    process.bootstrap.stop()
    process.bootstrap.stop()
    assert process.leases() == []
    head = process.head()
    process.tick()
    assert process.head() == head


def test_stopping_gives_up_after_twice_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process().start()
    let_go = threading.Event()
    monkeypatch.setattr(process.internal, "delete", lambda obj: let_go.wait(DEADLINE))
    stopping = background(process.bootstrap.stop)
    process.clock.wait_for_waiters(1)
    process.clock.step(19.9)
    process.clock.wait_for_waiters(1)
    assert not stopping.done()
    process.clock.step(0.1)
    stopping.result(DEADLINE)
    let_go.set()


def test_an_unavailable_log_does_not_prevent_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process().start()

    def away(obj: object) -> None:
        raise ServiceUnavailable("away")

    monkeypatch.setattr(process.internal, "delete", away)
    process.bootstrap.stop()
    assert process.leases() == ["192.0.2.2:6443"]


def test_a_process_that_was_never_ready_removes_nothing() -> None:
    other = Process().start()
    process = Process(beside=other)
    process.ready.now = False
    process.start()
    head = process.head()
    process.bootstrap.stop()
    assert process.head() == head


def test_without_an_address_nothing_is_published() -> None:
    process = Process(ip=None).start()
    assert process.get(SERVICES) is not None
    assert process.get(ENDPOINTS) is None
    assert process.leases() == []
