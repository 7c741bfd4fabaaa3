"""Tests of several processes on one log: the address of each process is published while the process runs."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, Key
from ctrlmgr.controllers.bootstrap.leases import MASTER_LEASES, Address
from tests.controllers.bootstrap.process import Process

A, B, C = ("192.0.2.2", 6443), ("192.0.2.3", 6443), ("192.0.2.4", 6443)


def processes(number: int, **settings: Any) -> list[Process]:
    """Return processes that share one log, with the addresses 192.0.2.2, 192.0.2.3 and so on."""
    first = Process(A[0], **settings).start()
    numbers = range(3, 2 + number)
    return [first, *(Process(f"192.0.2.{each}", beside=first, seed=each, **settings).start() for each in numbers)]


def tick(seconds: float, *running: Process) -> None:
    """Advance the shared clock once, and run the due jobs of all processes."""
    running[0].tick(seconds)
    for process in running[1:]:
        process.tick(0)


def settle(*running: Process) -> None:
    for process in running:
        process.settle()


def renew(*running: Process) -> None:
    for process in running:
        process.do("kubernetes service")
    settle(*running)


@pytest.mark.parametrize(
    ("address", "name"), [(Address("192.0.2.1", 1), "192.0.2.1:1"), (Address("2001:db8::1", 2), "[2001:db8::1]:2")]
)
def test_a_lease_is_named_like_the_host_of_a_url(address: Address, name: str) -> None:
    assert address.name == name


def test_all_serving_processes_are_published() -> None:
    first, second, third = processes(3)
    assert first.published() == [A, B, C]
    settle(first, second, third)
    head = first.head()
    settle(first, second, third)
    assert first.head() == head


def test_a_stopped_process_is_removed_at_once() -> None:
    first, second, third = processes(3)
    second.bootstrap.stop()
    assert first.published() == [A, C]
    assert first.leases() == ["192.0.2.2:6443", "192.0.2.4:6443"]
    settle(first, third)
    assert first.published() == [A, C]


def test_the_last_process_keeps_its_address() -> None:
    first, second = processes(2)
    first.bootstrap.stop()
    settle(second)
    second.bootstrap.stop()
    assert first.published() == [B]
    assert first.leases() == []


def test_a_killed_process_is_removed_when_its_lease_expires() -> None:
    first, second, killed = processes(3)
    settle(first, second, killed)
    tick(10.0, first, second)
    renew(second)
    tick(4.9, first, second)
    assert first.published() == [A, B, C]
    tick(0.1, first, second)
    assert first.published() == [A, B]
    assert first.leases() == ["192.0.2.2:6443", "192.0.2.3:6443"]


def test_a_process_that_was_considered_dead_is_published_again() -> None:
    first, second = processes(2)
    settle(first, second)
    tick(10.0, first)
    tick(5.0, first)
    assert first.published() == [A]
    second.step_informers()
    renew(second)
    settle(first)
    assert first.published() == [A, B]


def test_restarted_controller_grants_full_grace_periods() -> None:
    first, killed = processes(2)
    settle(first, killed)
    first.bootstrap.stop()
    killed.clock.step(14.0)
    late = Process(C[0], beside=first).start()
    assert late.published() == [B, C]
    tick(10.0, late)
    assert late.published() == [B, C]
    tick(5.0, late)
    assert late.published() == [C]


def test_a_lease_renewed_without_a_watch_event_is_not_removed() -> None:
    first, second = processes(2)
    settle(first, second)
    first.clock.step(15.0)
    # The second process renews its lease, and the first one's cache does not contain the renewal.
    second.bootstrap.periodic.jobs["kubernetes service"]()
    second.step_informers()
    while any(each.process_next(0) for each in second.controllers):
        pass
    first.bootstrap.periodic.jobs["kubernetes service"]()
    while any(each.process_next(0) for each in first.controllers):
        pass
    assert "192.0.2.3:6443" in first.leases()
    settle(first)
    assert first.published() == [A, B]


def test_a_lease_is_renewed_every_period_only() -> None:
    process = Process().start()

    def renewals() -> int:
        return len(process.log.events_after(0, resource=MASTER_LEASES))

    assert renewals() == 1
    for _ in range(3):
        process.do("kubernetes service")
    assert renewals() == 1
    process.tick()
    assert renewals() == 2


def test_deleted_lease_is_acquired_again() -> None:
    process = Process().start()
    lease = process.get(MASTER_LEASES, Key("", "192.0.2.2:6443"))
    assert lease is not None
    process.internal.delete(lease)
    process.settle()
    assert process.leases() == ["192.0.2.2:6443"]


def test_the_next_process_at_an_address_removes_a_killed_ones_lease() -> None:
    killed, other = processes(2)
    again = Process(A[0], beside=killed)
    again.ready.now = False
    again.start()
    assert again.published() == [B]
    again.ready.now = True
    again.tick(0.1)
    settle(other)
    assert again.published() == [A, B]


# Ports.


def test_servers_at_one_address_and_different_ports_are_all_published() -> None:
    first = Process(*A).start()
    second = Process(A[0], 6444, beside=first).start()
    third = Process(B[0], 6444, beside=first).start()
    settle(first, second, third)
    assert first.published() == [A, (A[0], 6444), (B[0], 6444)]
    slices = [each.name for each in first.log.snapshot(ENDPOINT_SLICES).objects]
    assert slices == ["kubernetes", "kubernetes-6444"]
    second.bootstrap.stop()
    third.bootstrap.stop()
    settle(first)
    assert first.published() == [A]
    assert [each.name for each in first.log.snapshot(ENDPOINT_SLICES).objects] == ["kubernetes"]


def test_the_published_port_belongs_to_a_running_server() -> None:
    killed = Process(*A).start()
    other = Process(B[0], 7443, beside=killed).start()
    settle(killed, other)
    assert other.published() == [A, B]
    tick(10.0, other)
    tick(5.0, other)
    assert other.published() == [(B[0], 7443)]


def test_a_process_that_returns_at_another_port_is_published_there() -> None:
    first = Process(*A).start()
    first.bootstrap.stop()
    assert first.published() == [A]
    again = Process(A[0], 7443, beside=first).start()
    assert again.published() == [(A[0], 7443)]
    assert again.ports()[0]["targetPort"] == 7443


def test_slices_of_other_owners_are_unchanged() -> None:
    process = Process().start()
    labels = {"kubernetes.io/service-name": "kubernetes", "endpointslice.kubernetes.io/managed-by": "somebody"}
    body = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "kubernetes-1", "namespace": "default", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [A[0]]}],
        "ports": [{"name": "https", "port": 6443}],
    }
    process.client.create(Object.from_dict(body))
    process.tick()
    assert process.get(ENDPOINT_SLICES, Key("default", "kubernetes-1")) is not None


# The other reconcilers.


def test_the_master_count_is_not_exceeded() -> None:
    settings = {"endpoint_reconciler_type": "master-count", "apiserver_count": 2}
    first, second, third = processes(3, **settings)
    assert first.leases() == []
    assert first.published() == [B, C]
    first.do("kubernetes service")
    settle(second, third)
    assert len(first.published()) == 2


def test_master_count_server_removes_its_address_at_stop() -> None:
    settings = {"endpoint_reconciler_type": "master-count", "apiserver_count": 2}
    first, second = processes(2, **settings)
    settle(first, second)
    first.bootstrap.stop()
    assert first.published() == [B]
    settle(second)
    second.bootstrap.stop()
    assert first.published() == []


def test_reconciler_type_none_does_not_write_endpoints() -> None:
    process = Process(endpoint_reconciler_type="none").start()
    process.tick()
    assert process.get(ENDPOINTS) is None
    process.bootstrap.stop()
    assert process.leases() == []
