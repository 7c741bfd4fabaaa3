from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, SERVICES
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.repair.address_findings import address_claim
from ctrlmgr.controllers.repair.controller import (
    ADDRESSES_NAME,
    ATTEMPTS,
    new_repair_controller,
    read_listings,
)
from ctrlmgr.controllers.repair.repair_findings import ServiceValue
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import Conflict, InternalError, LogUnavailable
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES
from ctrlmgr.metrics import CLUSTER_IP_REPAIR, REGISTRY
from ctrlmgr.testing.builders import a_service
from tests.controllers.repair.cluster import RepairCluster, rounds, summary


class ConflictingClient(EngineClient):
    """A client that runs a write of another client before each of its first writes."""

    def __init__(self, cluster: RepairCluster, *interventions: Callable[[], Any]) -> None:
        super().__init__(cluster.engine, cluster.run, Requester("repair"))
        self._interventions = list(interventions)

    def create(self, obj: Object) -> Object:
        self._intervene(obj)
        return super().create(obj)

    def delete(self, obj: Object, propagation: str | None = None, *, grace: int | None = None) -> None:
        self._intervene(obj)
        super().delete(obj, propagation, grace=grace)

    def _intervene(self, obj: Object) -> None:
        if self._interventions and obj.resource != EVENTS:
            self._interventions.pop(0)()


def leak(address: str = "10.96.0.77", uid: str = "leaked") -> Object:
    return address_claim(ServiceValue(address, a_service("gone"))).with_metadata(uid=uid)


def unclaimed(cluster: RepairCluster) -> Object:
    """Create a Service and remove the claim of its address."""
    service = cluster.service(clusterIP="10.96.0.5")
    cluster.remove(cluster.get(IP_ADDRESSES, "10.96.0.5"))
    return service


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


# Leaks.


def test_a_leak_is_released_in_the_third_round() -> None:
    cluster = RepairCluster()
    cluster.add(leak())
    before = counted("apiserver_clusterip_repair_ip_errors_total", type="leak")
    flagged = [("IPAddressNotAllocated", "10.96.0.77", "flagged")]
    released = [("IPAddressNotAllocated", "10.96.0.77", "released")]
    assert rounds(cluster.repair_addresses, 4) == [flagged, flagged, released, []]
    assert cluster.claims() == {}
    assert counted("apiserver_clusterip_repair_ip_errors_total", type="leak") == before + 1


def test_a_leak_used_meanwhile_starts_at_the_first_round() -> None:
    cluster = RepairCluster()
    claim = cluster.add(leak())
    assert len(rounds(cluster.repair_addresses, 2)) == 2
    cluster.remove(claim)
    service = cluster.service(clusterIP="10.96.0.77")
    assert cluster.repair_addresses() == []
    cluster.remove(service)
    assert [found[0][2] for found in rounds(cluster.repair_addresses, 3)] == ["flagged", "flagged", "released"]


def test_a_new_claim_of_the_same_name_is_another_leak() -> None:
    cluster = RepairCluster()
    claim = cluster.add(leak())
    assert len(rounds(cluster.repair_addresses, 2)) == 2
    cluster.remove(claim)
    cluster.add(leak(uid="another"))
    assert summary(cluster.repair_addresses()) == [("IPAddressNotAllocated", "10.96.0.77", "flagged")]


def test_each_process_counts_rounds_and_one_releases() -> None:
    cluster = RepairCluster()
    other = cluster.another()
    cluster.add(leak())
    for _ in range(3):
        found = [summary(repair.run(cluster.client)) for repair in (cluster.addresses, other)]
    assert [[outcome for _, _, outcome in each] for each in found] == [["released"], []]


# Lost races with other clients.


def test_repair_reads_again_after_a_conflict() -> None:
    cluster = RepairCluster()
    service = unclaimed(cluster)
    other = cluster.another()
    handled = cluster.addresses.run(ConflictingClient(cluster, lambda: other.run(cluster.client)))
    assert handled == []
    assert cluster.claims() == {"10.96.0.5": "a/web"}
    assert ["series" in event for event in cluster.events()] == [False]
    assert cluster.find(SERVICES, service.name, "a") == service


def test_address_allocated_to_another_service_is_reported() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    handled = cluster.addresses.run(
        ConflictingClient(cluster, lambda: cluster.service("new", "b", clusterIP="10.96.0.5"))
    )
    assert summary(handled) == [("ClusterIPAlreadyAllocated", "10.96.0.5", "reported")]
    assert cluster.claims() == {"10.96.0.5": "b/new"}


def test_the_result_contains_repairs_before_a_conflict() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    cluster.service("db", clusterIP="10.96.0.6")
    cluster.remove(cluster.get(IP_ADDRESSES, "10.96.0.6"))
    theirs = address_claim(ServiceValue("10.96.0.5", cluster.get(SERVICES, "web", "a"))).with_metadata(uid="theirs")
    # Services are listed by name, so `web` is the second.
    handled = cluster.addresses.run(ConflictingClient(cluster, lambda: None, lambda: cluster.add(theirs)))
    assert summary(handled) == [("ClusterIPNotAllocated", "10.96.0.6", "repaired")]
    assert cluster.claims() == {"10.96.0.5": "a/web", "10.96.0.6": "a/db"}


def test_repeated_conflicts_fail() -> None:
    cluster = RepairCluster()
    claim = cluster.add(leak())
    assert len(rounds(cluster.repair_addresses, 2)) == 2
    before = counted("apiserver_clusterip_repair_reconcile_errors_total")
    touched = [claim]

    def touch() -> None:
        touched.append(cluster.tamper(touched[-1], lambda fields: fields["metadata"].update(generation=len(touched))))

    with pytest.raises(Conflict):
        cluster.addresses.run(ConflictingClient(cluster, *[touch] * ATTEMPTS))
    assert counted("apiserver_clusterip_repair_reconcile_errors_total") == before + 1
    assert summary(cluster.repair_addresses()) == [("IPAddressNotAllocated", "10.96.0.77", "released")]


def test_listings_have_one_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = RepairCluster()
    cluster.service("old", clusterIP="10.96.0.5")
    snapshot = cluster.log.snapshot
    created: list[Object] = []

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        result = snapshot(*arguments, **named)
        if not created:
            created.append(cluster.service("new", clusterIP="10.96.0.6"))
        return result

    monkeypatch.setattr(cluster.log, "snapshot", meanwhile)
    listings = read_listings(cluster.log, IP_ADDRESSES)
    assert [each.name for each in listings.services] == ["old"]
    assert [each.name for each in listings.claims] == ["10.96.0.5"]


# Events.


def test_a_finding_emits_an_event() -> None:
    cluster = RepairCluster()
    service = unclaimed(cluster)
    cluster.repair_addresses()
    [event] = cluster.events()
    name = event["metadata"].pop("name")
    assert name.startswith("web.")
    assert len(name) == len("web.") + 16
    assert event["metadata"].pop("creationTimestamp") == "2026-01-01T00:00:00Z"
    reference = event.pop("involvedObject")
    assert reference == {
        "kind": "Service",
        "namespace": "a",
        "name": "web",
        "uid": service.uid,
        "apiVersion": "v1",
        "resourceVersion": str(service.revision),
    }
    expected = {
        "kind": "Event",
        "apiVersion": "v1",
        "reason": "ClusterIPNotAllocated",
        "message": "Cluster IP [IPv4]: 10.96.0.5 is not allocated; repairing",
        "source": {},
        "type": "Warning",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "ClusterIPAllocation",
        "reportingComponent": "ipallocator-repair-controller",
        "reportingInstance": "ipallocator-repair-controller-host",
    }
    assert {field: event[field] for field in expected} == expected


def test_the_api_returns_the_event_as_stored() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    cluster.repair_addresses()
    [stored] = cluster.stored_events()
    [kind] = [each for each in cluster.kinds if each.name == "Event" and each.gvk.api_version == "v1"]
    assert kind.codec.encode(kind.codec.decode(stored.body, "application/json").fields) == stored.body
    shown = cluster.send("GET", f"/apis/events.k8s.io/v1/namespaces/a/events/{stored.name}")
    assert shown.body["note"] == "Cluster IP [IPv4]: 10.96.0.5 is not allocated; repairing"


def test_a_remaining_finding_is_one_event_with_a_series() -> None:
    cluster = RepairCluster()
    service = cluster.service(clusterIP="10.96.0.5")
    cluster.tamper(service, lambda fields: fields["spec"].update(clusterIP="10.99.0.1", clusterIPs=["10.99.0.1"]))
    first = cluster.repair_addresses()[0].outcome.value
    for _ in range(2):
        cluster.clock.step(180)
        cluster.repair_addresses()
    [event] = [each for each in cluster.events() if each["reason"] == "ClusterIPOutOfRange"]
    assert (first, event["eventTime"]) == ("reported", "2026-01-01T00:00:00.000000Z")
    assert event["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:03:00.000000Z"}


def test_events_about_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    cluster = RepairCluster()
    cluster.add(leak())
    rounds(cluster.repair_addresses, 3)
    [event] = cluster.events()
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]
    assert event["involvedObject"]["kind"] == "IPAddress"


def test_a_terminating_namespace_of_events_does_not_stop_a_repair() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    cluster.send("DELETE", "/api/v1/namespaces/a")
    assert summary(cluster.repair_addresses()) == [("ClusterIPNotAllocated", "10.96.0.5", "repaired")]
    assert cluster.events() == []


# Failing.


class FailingClient(EngineClient):
    """A client whose creations fail, except the creations of Events."""

    def __init__(self, cluster: RepairCluster, error: Exception) -> None:
        super().__init__(cluster.engine, cluster.run, Requester("repair"))
        self._error = error

    def create(self, obj: Object) -> Object:
        if obj.resource != EVENTS:
            raise self._error
        return super().create(obj)


def test_unknown_failure_is_logged_and_raised() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    before = counted("apiserver_clusterip_repair_ip_errors_total", type="unknown")
    with pytest.raises(InternalError):
        cluster.addresses.run(FailingClient(cluster, InternalError("out of luck")))
    [event] = cluster.events()
    assert event["reason"] == "UnknownError"
    assert event["message"] == "Unable to allocate ClusterIP [IPv4]: 10.96.0.5 due to an unknown error"
    assert counted("apiserver_clusterip_repair_ip_errors_total", type="unknown") == before + 1


def test_an_unavailable_log_raises_without_an_event() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    with pytest.raises(LogUnavailable):
        cluster.addresses.run(FailingClient(cluster, LogUnavailable("away")))
    assert cluster.events() == []


# The repairs as a controller.


def test_the_controller_runs_a_round() -> None:
    cluster = RepairCluster()
    unclaimed(cluster)
    controller = new_repair_controller(
        ADDRESSES_NAME, cluster.addresses, cluster.client, cluster.log, clock=cluster.clock, random=random.Random(1)
    )
    controller.queue.add(cluster.addresses.key)
    while controller.process_next(0):
        pass
    assert cluster.claims() == {"10.96.0.5": "a/web"}
    repaired = cluster.log.events_after(0, resource=IP_ADDRESSES)[-1]
    known = cluster.log.reconcile(repaired.reconcile)
    assert known is not None
    assert (known.cause.controller, known.cause.key) == ("ipallocator-repair-controller", "cluster-ips")


def test_metrics_have_kube_apiservers_names() -> None:
    names = {family.name for family in CLUSTER_IP_REPAIR.found.collect()}
    names |= {family.name for family in CLUSTER_IP_REPAIR.failed.collect()}
    assert names == {"apiserver_clusterip_repair_ip_errors", "apiserver_clusterip_repair_reconcile_errors"}
