from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Resource
from ctrlmgr.controllers.repair.address_findings import address_claim, find_address_findings
from ctrlmgr.controllers.repair.repair_findings import Action, Finding, ServiceValue
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.errors import AlreadyExists, Forbidden
from ctrlmgr.eventlog import EventType
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, Ranges
from ctrlmgr.testing.builders import a_service
from tests.controllers.repair.cluster import RepairCluster, rounds, summary

RANGES = Ranges.parse("10.96.0.0/28,fd00:10:96::/112", "30000-32767")
"""A range with fourteen usable IPv4 addresses."""


def claim(address: str, holder: str = "default/web", **labels: str) -> Object:
    """Return an IPAddress as the allocator creates it; `labels` replaces the default labels."""
    namespace, _, name = holder.partition("/")
    fields = address_claim(ServiceValue(address, a_service(name, namespace=namespace))).to_dict()
    fields["metadata"] |= {"uid": f"uid-of-{address}"} | ({"labels": labels} if labels else {})
    return Object.from_dict(fields)


def with_addresses(name: str, *addresses: str, kind: str = "ClusterIP") -> Object:
    fields = a_service(name).to_dict()
    fields["spec"] |= {"type": kind, "clusterIP": addresses[0], "clusterIPs": list(addresses)}
    return Object.from_dict(fields)


def find(services: list[Object], claims: list[Object], ranges: Ranges = RANGES) -> list[Finding]:
    return find_address_findings(services, claims, ranges)


def test_a_correct_service_with_its_claims_has_no_findings() -> None:
    services = [with_addresses("web", "10.96.0.5", "fd00:10:96::5"), with_addresses("db", "None")]
    services.append(with_addresses("away", "10.96.0.5", kind="ExternalName"))
    assert find(services, [claim("10.96.0.5"), claim("fd00:10:96::5")]) == []


@pytest.mark.parametrize(
    ("addresses", "claims", "expected"),
    [
        pytest.param(
            ["10.96.0.300"],
            [],
            ("invalid", "ClusterIPNotValid", "Cluster IP 10.96.0.300 is not a valid IP; please recreate Service"),
            id="no address",
        ),
        pytest.param(
            ["10.97.0.1"],
            [claim("10.97.0.1")],
            (
                "outOfRange",
                "ClusterIPOutOfRange",
                "Cluster IP [IPv4]: 10.97.0.1 is not within any configured Service CIDR; please recreate service",
            ),
            id="out of range, and its claim is not a leak",
        ),
        pytest.param(
            ["10.96.0.5", "fd00:10:96::5"],
            [claim("10.96.0.5")],
            (
                "repair",
                "ClusterIPNotAllocated",
                "Cluster IP [IPv6]: fd00:10:96::5 is not allocated; repairing",
            ),
            id="no claim on the second",
        ),
        pytest.param(
            ["10.96.0.5"],
            [claim("10.96.0.5", "default/gone")],
            (
                "repair",
                "ClusterIPNotAllocated",
                "the ClusterIP [IPv4]: 10.96.0.5 for Service default/web has a wrong reference; repairing",
            ),
            id="somebody else's claim",
        ),
        pytest.param(
            ["010.096.000.005"],
            [claim("10.96.0.5", other="label")],
            ("repair", "IPAddressWrongLabels", "the labels of IPAddress 10.96.0.5 are not the allocator's; repairing"),
            id="labels, by an address written in another way",
        ),
    ],
)
def test_findings_of_one_service(addresses: list[str], claims: list[Object], expected: tuple[str, str, str]) -> None:
    found = find([with_addresses("web", *addresses)], claims)
    assert [(each.problem, each.reason, each.message) for each in found] == [expected]


def test_an_address_of_a_terminating_service_cidr_is_in_range() -> None:
    cluster = RepairCluster()
    path = "/apis/networking.k8s.io/v1/servicecidrs"
    metadata = {"name": "more", "finalizers": ["example.com/stay"]}
    assert cluster.send("POST", path, {"metadata": metadata, "spec": {"cidrs": ["10.97.0.0/30"]}}).code == 201
    service = cluster.service(clusterIP="10.97.0.1")
    assert cluster.send("DELETE", f"{path}/more").code == 200
    assert rounds(cluster.repair_addresses, 1) == [[]]
    cluster.remove(cluster.get(IP_ADDRESSES, "10.97.0.1"))
    assert rounds(cluster.repair_addresses, 1) == [[("ClusterIPNotAllocated", "10.97.0.1", "repaired")]]
    cluster.tamper(service, lambda fields: fields["spec"].update(clusterIP="10.97.0.3", clusterIPs=["10.97.0.3"]))
    [found, *_] = rounds(cluster.repair_addresses, 1)[0]
    assert found == ("ClusterIPOutOfRange", "10.97.0.3", "reported")


def test_a_range_is_full_only_if_all_ranges_of_its_family_are() -> None:
    small = Ranges.parse("10.96.0.0/29", "30000-32767")
    names = [f"10.96.0.{last}" for last in range(1, 7)]
    services = [with_addresses(f"s{number}", address) for number, address in enumerate(names)]
    claims = [claim(address, f"default/s{number}") for number, address in enumerate(names)]
    services.append(with_addresses("twice", names[0]))
    more = Object.from_dict(
        {
            "kind": "ServiceCIDR",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": "more"},
            "spec": {"cidrs": ["10.97.0.0/30"]},
        }
    )
    reasons = [each.reason for each in find_address_findings(services, claims, small)]
    assert reasons == ["ClusterIPAlreadyAllocated", "ServiceCIDRFull"]
    assert [each.reason for each in find_address_findings(services, claims, small, [more])] == reasons[:1]


def test_a_missing_claim_is_created_like_the_allocators() -> None:
    cluster = RepairCluster()
    service = cluster.service(clusterIP="10.96.0.5")
    before = cluster.get(IP_ADDRESSES, "10.96.0.5")
    cluster.remove(before)
    assert rounds(cluster.repair_addresses, 2) == [[("ClusterIPNotAllocated", "10.96.0.5", "repaired")], []]
    after = cluster.get(IP_ADDRESSES, "10.96.0.5").to_dict()
    assert after["metadata"].pop("managedFields"), "which the allocator leaves out"
    expected = before.to_dict()
    for fields in (after, expected):
        assert list(fields["metadata"]) == ["name", "uid", "resourceVersion", "creationTimestamp", "labels"]
        del fields["metadata"]["uid"], fields["metadata"]["resourceVersion"]
    assert after == expected
    assert cluster.send("DELETE", f"/api/v1/namespaces/a/services/{service.name}").code == 200
    assert cluster.claims() == {}


def test_of_two_services_the_owner_of_the_claim_keeps_the_address() -> None:
    services = [with_addresses("first", "10.96.0.5"), with_addresses("second", "10.96.0.5")]
    [found] = find(services, [claim("10.96.0.5", "default/second")])
    assert (found.problem, found.reason, found.subject.name) == ("duplicate", "ClusterIPAlreadyAllocated", "first")
    assert found.message == "Cluster IP [IPv4]:10.96.0.5 was assigned to multiple services; please recreate service"
    assert found.action is Action.REPORT


def test_of_two_services_without_a_claim_the_first_gets_the_address() -> None:
    services = [with_addresses("first", "10.96.0.5"), with_addresses("second", "10.96.0.5")]
    found = [(each.reason, each.subject.name) for each in find(services, [])]
    assert found == [("ClusterIPNotAllocated", "first"), ("ClusterIPAlreadyAllocated", "second")]


def test_a_service_without_a_free_address_is_reported() -> None:
    taken = [f"10.96.0.{number}" for number in range(1, 15)]
    services = [with_addresses(f"s{number}", address) for number, address in enumerate(taken)]
    claims = [claim(address, f"default/s{number}") for number, address in enumerate(taken)]
    services += [with_addresses("twin", "10.96.0.3"), with_addresses("far", "10.97.0.3")]
    found = [(each.reason, each.subject.name) for each in find(services, claims)]
    assert found == [
        ("ClusterIPOutOfRange", "far"),
        ("ClusterIPAlreadyAllocated", "twin"),
        ("ServiceCIDRFull", "far"),
        ("ServiceCIDRFull", "twin"),
    ]
    message = find(services, claims)[-1].message
    assert message == (
        "Service CIDR 10.96.0.0/28 is full; you must widen the CIDR in order to create new services "
        "for Cluster IP [IPv4]:10.96.0.3"
    )
    without_the_last = [each for each in services if each.name != "s13"]
    assert {each.problem for each in find(without_the_last, claims[:-1])} == {"outOfRange", "duplicate"}


@pytest.mark.parametrize(
    ("leaked", "reason", "message"),
    [
        pytest.param(
            claim("10.96.0.5", "default/gone"),
            "IPAddressNotAllocated",
            "IPAddress: 10.96.0.5 for Service default/gone appears to have leaked: cleaning up",
            id="of a Service that is gone",
        ),
        pytest.param(
            claim("10.96.0.5", "default/web"),
            "IPAddressWrongReference",
            "IPAddress: 10.96.0.5 for Service default/web has a wrong reference; cleaning up",
            id="of a Service that has another one",
        ),
    ],
)
def test_unused_claims(leaked: Object, reason: str, message: str) -> None:
    services = [with_addresses("web", "10.96.0.6")]
    [found] = find(services, [leaked, claim("10.96.0.6")])
    assert (found.problem, found.reason, found.message, found.claim) == ("leak", reason, message, leaked)
    assert found.action is Action.RELEASE


def test_claim_changed_to_another_owner_is_a_leak() -> None:
    fields = claim("10.96.0.5").to_dict()
    fields["spec"]["parentRef"] = {"group": "example.com", "resource": "gateways", "name": "g"}
    [found] = find([], [Object.from_dict(fields)])
    assert found.message == (
        "IPAddress 10.96.0.5 appears to have been modified, not referencing a Service "
        "&{example.com gateways  g}: cleaning up"
    )


def test_addresses_outside_the_allocator_are_ignored() -> None:
    assert find([], [claim("10.96.0.5", "default/gone", mine="yes")]) == []


class RefusingChain:
    """An admission chain that refuses all creates."""

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return True

    def wants_object(self, attributes: Attributes) -> bool:
        return False

    def admit(self, attributes: Attributes) -> Operation[None]:
        yield from ()

    def validate(self, attributes: Attributes) -> Operation[None]:
        if attributes.operation is Verb.CREATE and attributes.resource == IP_ADDRESSES:
            raise attributes.forbidden("no IPAddress is made here")
        yield from ()


def blame(fields: dict[str, Any]) -> None:
    """Write a wrong owner into a claim."""
    fields["spec"]["parentRef"]["name"] = "gone"
    fields["metadata"]["labels"] = {"mine": "yes"}


def test_address_claim_of_a_wrong_owner_is_replaced_in_one_append() -> None:
    cluster = RepairCluster()
    cluster.service(clusterIP="10.96.0.5")
    tampered = cluster.tamper(cluster.get(IP_ADDRESSES, "10.96.0.5"), blame)
    assert rounds(cluster.repair_addresses, 2) == [[("ClusterIPNotAllocated", "10.96.0.5", "repaired")], []]
    after = cluster.get(IP_ADDRESSES, "10.96.0.5")
    assert cluster.claim(IP_ADDRESSES, "10.96.0.5") == "a/web"
    assert after.uid not in ("", tampered.uid)
    assert after.labels == {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    [gone, made] = cluster.log.events_after(tampered.revision, resource=IP_ADDRESSES)
    assert (gone.type, made.type, gone.append_id) == (EventType.DELETED, EventType.ADDED, made.append_id)
    assert "managedFields" in after.to_dict()["metadata"], "it is written as the API writes it"


def test_address_claim_with_a_finalizer_is_recreated_after_deletion() -> None:
    cluster = RepairCluster()
    cluster.service(clusterIP="10.96.0.5")

    def hold(fields: dict[str, Any]) -> None:
        blame(fields)
        fields["metadata"]["finalizers"] = ["example.com/held"]

    cluster.tamper(cluster.get(IP_ADDRESSES, "10.96.0.5"), hold)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        cluster.repair_addresses()
    held = cluster.get(IP_ADDRESSES, "10.96.0.5")
    assert held.is_terminating
    cluster.remove(held)
    assert summary(cluster.repair_addresses()) == [("ClusterIPNotAllocated", "10.96.0.5", "repaired")]
    assert cluster.claim(IP_ADDRESSES, "10.96.0.5") == "a/web"


def test_address_claim_is_recreated_only_if_admission_allows() -> None:
    cluster = RepairCluster()
    cluster.service(clusterIP="10.96.0.5")
    tampered = cluster.tamper(cluster.get(IP_ADDRESSES, "10.96.0.5"), blame)
    cluster.engine.admission = RefusingChain()
    with pytest.raises(Forbidden, match="no IPAddress is made here"):
        cluster.repair_addresses()
    assert cluster.get(IP_ADDRESSES, "10.96.0.5") == tampered


def test_labels_are_restored_without_an_event() -> None:
    cluster = RepairCluster()
    cluster.service(clusterIP="10.96.0.5")
    cluster.tamper(cluster.get(IP_ADDRESSES, "10.96.0.5"), lambda fields: fields["metadata"].pop("labels"))
    assert summary(cluster.repair_addresses()) == [("IPAddressWrongLabels", "10.96.0.5", "repaired")]
    assert cluster.addresses.findings() == []
    assert cluster.events() == []


def test_a_duplicate_is_released_with_its_service() -> None:
    cluster = RepairCluster()
    cluster.service("one", clusterIP="10.96.0.5")
    other = cluster.service("two", "b", clusterIP="10.96.0.6")
    cluster.tamper(other, lambda fields: fields["spec"].update(clusterIP="10.96.0.5", clusterIPs=["10.96.0.5"]))
    assert summary(cluster.repair_addresses()) == [
        ("ClusterIPAlreadyAllocated", "10.96.0.5", "reported"),
        ("IPAddressWrongReference", "10.96.0.6", "flagged"),
    ]
    cluster.send("DELETE", "/api/v1/namespaces/b/services/two")
    assert cluster.claims() == {"10.96.0.5": "a/one", "10.96.0.6": "b/two"}
    assert cluster.find(SERVICES, "two", "b") is None
    assert rounds(cluster.repair_addresses, 3) == [
        [("IPAddressNotAllocated", "10.96.0.6", "flagged")],
        [("IPAddressNotAllocated", "10.96.0.6", "released")],
        [],
    ]
