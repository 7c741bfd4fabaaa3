"""Tests of the computation of subsets from a Service and pods.

Tests write subsets in a short form: `("p1 p2", "p3", "http:8080")` has the ready pods p1 and p2, the unready pod p3,
and one port.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.core import EndpointAddress, EndpointPort, EndpointSubset, Pod, Service
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpoints.subsets import CAPACITY, desired_subsets, truncate
from ctrlmgr.testing.builders import a_pod, a_service, container_port, service_port

Short: TypeAlias = tuple[str, str, str]

DELETED = "2026-01-01T00:00:01Z"
NAMED = service_port("http", 80, target="web")
HEADLESS = a_service(cluster_ip="None", ports=[])


def subsets_of(service: Object, pods: Iterable[Object]) -> list[EndpointSubset]:
    return desired_subsets(service.view(Service), [pod.view(Pod) for pod in pods])


def names(addresses: list[EndpointAddress] | None) -> str:
    return " ".join(each.target_ref.name for each in addresses or () if each.target_ref)


def short(subset: EndpointSubset) -> Short:
    ports = " ".join(f"{port.name}:{port.port}" for port in subset.ports or ())
    return (names(subset.addresses), names(subset.not_ready_addresses), ports)


def web(name: str, number: int, protocol: str = "TCP", *, ip: str, ready: bool = True) -> Object:
    """Return a pod with a port named web."""
    return a_pod(name, ips=[ip], ports=[container_port("web", number, protocol)], ready=ready)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod("p"), ("p", "", ":8080"), id="a ready pod is ready"),
        pytest.param(a_pod("p", ready=False), ("", "p", ":8080"), id="a pod that is not ready is not"),
        pytest.param(a_pod("p", ready=None), ("", "p", ":8080"), id="without the condition it is not"),
        pytest.param(a_pod("p", phase="Pending"), ("p", "", ":8080"), id="a pending pod counts by its condition"),
        pytest.param(a_pod("p", phase="Unknown", ready=False), ("", "p", ":8080"), id="so does one of unknown phase"),
        pytest.param(a_pod("p", phase="Failed"), None, id="a failed pod is out"),
        pytest.param(a_pod("p", phase="Succeeded"), None, id="a succeeded pod is out"),
        pytest.param(a_pod("p", phase="Failed", restart_policy="Never"), None, id="whatever its restart policy"),
        pytest.param(
            a_pod("p", phase="Running", ready=False, restart_policy="Never"),
            ("", "p", ":8080"),
            id="a pod that will not restart is listed until it has ended",
        ),
        pytest.param(a_pod("p", deleted_at=DELETED), None, id="a terminating pod is out"),
        pytest.param(a_pod("p", ips=[]), None, id="a pod without an address is out"),
    ],
)
def test_selected_pods_are_endpoints(pod: Object, expected: Short | None) -> None:
    assert [short(each) for each in subsets_of(a_service(), [pod])] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod("p", ready=False), ("p", "", ":8080"), id="a pod that is not ready counts as ready"),
        pytest.param(a_pod("p", deleted_at=DELETED), ("p", "", ":8080"), id="so does a terminating one"),
        pytest.param(a_pod("p", deleted_at=DELETED, ready=False), ("p", "", ":8080"), id="even when it is both"),
        pytest.param(a_pod("p", phase="Failed"), None, id="a failed pod is out all the same"),
        pytest.param(a_pod("p", ips=[]), None, id="as is one without an address"),
    ],
)
def test_unready_pods_are_endpoints_if_published(pod: Object, expected: Short | None) -> None:
    found = subsets_of(a_service(publish_not_ready=True), [pod])
    assert [short(each) for each in found] == ([expected] if expected else [])


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_deprecated_unready_annotation_has_no_effect(value: str) -> None:
    service = a_service(annotations={"service.alpha.kubernetes.io/tolerate-unready-endpoints": value})
    pods = [a_pod("p", ready=False), a_pod("q", deleted_at=DELETED)]
    assert [short(each) for each in subsets_of(service, pods)] == [("", "p", ":8080")]


A = web("a", 8080, ip="10.0.0.1")
B = web("b", 8080, ip="10.0.0.2", ready=False)
C = web("c", 9090, ip="10.0.0.3")
D = web("d", 8080, "UDP", ip="10.0.0.4")


@pytest.mark.parametrize(
    ("service", "pods", "expected"),
    [
        pytest.param(a_service(), [A, B], [("a", "b", ":8080")], id="a number stands for itself"),
        pytest.param(
            a_service(ports=[service_port("x", 80, target=1234)]), [A], [("a", "", "x:1234")], id="declared or not"
        ),
        pytest.param(a_service(ports=[service_port("x", 81, target=None)]), [A], [("a", "", "x:81")], id="or left out"),
        pytest.param(a_service(ports=[NAMED]), [A, B], [("a", "b", "http:8080")], id="a name is looked up in the pod"),
        pytest.param(
            a_service(ports=[NAMED]),
            [A, B, C],
            [("a", "b", "http:8080"), ("c", "", "http:9090")],
            id="pods with other numbers get a subset of their own",
        ),
        pytest.param(a_service(ports=[NAMED]), [D], [], id="a name with another protocol is not found"),
        pytest.param(a_service(ports=[service_port("x", target="nowhere")]), [A], [], id="nor one nobody declares"),
        pytest.param(
            a_service(ports=[NAMED, service_port("n", 90, target=90)]),
            [A, D],
            [("a", "", "http:8080"), ("a d", "", "n:90")],
            id="a pod without the named port still offers the others",
        ),
        pytest.param(
            a_service(ports=[NAMED, service_port("n", 90, target=90)]),
            [A, C],
            [("a", "", "http:8080"), ("c", "", "http:9090"), ("a c", "", "n:90")],
            id="a port that all offer has a subset across the groups",
        ),
        pytest.param(
            a_service(ports=[service_port("n", 90, target=90), service_port("m", 91, target=91)]),
            [A, B],
            [("a", "b", "m:91 n:90")],
            id="ports with the same addresses share a subset",
        ),
        pytest.param(
            a_service(ports=[NAMED, service_port("again", 81, target=8080)]),
            [A],
            [("a", "", "again:8080 http:8080")],
            id="two names for one number are two ports",
        ),
        pytest.param(
            a_service(ports=[service_port("https", 443, target=8443, app_protocol="https")]),
            [A],
            [("a", "", "https:8443")],
            id="with an application protocol",
        ),
        pytest.param(HEADLESS, [A, B], [("a", "b", "")], id="headless without ports has its addresses all the same"),
        pytest.param(
            a_service(cluster_ip="None"), [A, B], [("a", "b", ":8080")], id="headless with ports is like any other"
        ),
        pytest.param(a_service(ports=[]), [A, B], [], id="without ports, a service with a cluster IP has none"),
        pytest.param(a_service(ports=[], cluster_ip=""), [A], [], id="nor has one whose cluster IP is not set"),
        pytest.param(a_service(), [], [], id="no pods, no subsets"),
        pytest.param(HEADLESS, [], [], id="no pods, no subsets, headless"),
    ],
)
def test_ports_of_a_subset(service: Object, pods: list[Object], expected: list[Short]) -> None:
    found = [short(each) for each in subsets_of(service, pods)]
    assert sorted(_ports_sorted(each) for each in found) == sorted(expected)


def _ports_sorted(subset: Short) -> Short:
    """Return the subset with its ports sorted by name; the tests of `go_hash` check the order in which Kubernetes
    writes ports.
    """
    ready, not_ready, ports = subset
    return ready, not_ready, " ".join(sorted(ports.split()))


def test_ports_carry_name_number_protocol_and_application_protocol() -> None:
    port = service_port("dns", 53, target=5353, protocol="UDP", app_protocol="kubernetes.io/dns")
    [subset] = subsets_of(a_service(ports=[port]), [a_pod()])
    assert subset.ports == [EndpointPort("dns", 5353, "UDP", "kubernetes.io/dns")]


def test_sidecar_ports_are_found_by_name() -> None:
    pod = a_pod("p", sidecar_ports=[container_port("web", 15001)])
    assert [short(each) for each in subsets_of(a_service(ports=[NAMED]), [pod])] == [("p", "", "http:15001")]


DUAL = a_pod("dual", ips=["10.0.0.1", "fd00::1"])
DUAL_SIX_FIRST = a_pod("six-first", ips=["fd00::2", "10.0.0.2"])
ONLY_FOUR = a_pod("four", ips=["10.0.0.3"])


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        pytest.param(a_service(families=["IPv4"]), ["10.0.0.1", "10.0.0.2", "10.0.0.3"], id="IPv4"),
        pytest.param(a_service(families=["IPv6"]), ["fd00::1", "fd00::2"], id="IPv6, without pods that have none"),
        pytest.param(a_service(families=["IPv6", "IPv4"]), ["fd00::1", "fd00::2"], id="the first family counts"),
        pytest.param(
            a_service(families=[], cluster_ip="fd00::10"), ["fd00::1", "fd00::2"], id="else the cluster IP's family"
        ),
        pytest.param(
            a_service(families=[], cluster_ip="None"),
            ["10.0.0.1", "10.0.0.3", "fd00::2"],
            id="else, headless, each pod's primary family",
        ),
    ],
)
def test_the_address_of_a_dual_stack_pod_has_the_services_family(service: Object, expected: list[str]) -> None:
    [subset] = subsets_of(service, [DUAL, DUAL_SIX_FIRST, ONLY_FOUR])
    assert [address.ip for address in subset.addresses or ()] == expected


@pytest.mark.parametrize(
    ("hostname", "subdomain", "expected"),
    [
        pytest.param("db-0", "web", "db-0", id="published when the subdomain is the service's name"),
        pytest.param("db-0", "other", "", id="not for another subdomain"),
        pytest.param("db-0", "", "", id="not without a subdomain"),
        pytest.param("", "web", "", id="not without a hostname"),
    ],
)
def test_hostname(hostname: str, subdomain: str, expected: str) -> None:
    [subset] = subsets_of(a_service("web"), [a_pod(hostname=hostname, subdomain=subdomain)])
    assert [address.hostname for address in subset.addresses or ()] == [expected]


def test_addresses_are_sorted_by_ip_text_then_uid() -> None:
    pods = [
        a_pod("a", ips=["10.0.0.9"]),
        a_pod("b", ips=["10.0.0.10"]),
        a_pod("host-2", ips=["10.0.0.5"], uid="2"),
        a_pod("host-1", ips=["10.0.0.5"], uid="1"),
    ]
    assert [short(each) for each in subsets_of(a_service(), pods)] == [("b host-1 host-2 a", "", ":8080")]


P0 = a_pod(
    "p0",
    namespace="ee7-a",
    uid="90153fd1-fa20-4829-adb7-aa464f9309d0",
    ips=["192.0.2.10"],
    node="node-a",
    ports=[container_port("a", 8000)],
)
P1 = a_pod(
    "p1",
    namespace="ee7-a",
    uid="47c06dbb-1ee8-452b-8bfe-1038815b0534",
    ips=["192.0.2.11"],
    node="node-b",
    ports=[container_port("a", 8001)],
)


def test_subsets_have_the_order_that_kubernetes_recorded() -> None:
    service = a_service(
        "multi",
        namespace="ee7-a",
        ports=[service_port("a", 80, target="a"), service_port("b", 81, target=9999)],
    )
    expected = [("p0 p1", "", "b:9999"), ("p1", "", "a:8001"), ("p0", "", "a:8000")]
    assert [short(each) for each in subsets_of(service, [P0, P1])] == expected


_pods = st.lists(
    st.builds(
        web,
        name=st.uuids().map(str),
        number=st.sampled_from([8080, 9090]),
        protocol=st.sampled_from(["TCP", "UDP"]),
        ip=st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.10", "10.0.0.20"]),
        ready=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda pod: pod.name,
)


@given(pods=_pods, data=st.data())
def test_the_order_of_the_pods_does_not_matter(pods: list[Object], data: st.DataObject) -> None:
    service = a_service(ports=[NAMED, service_port("n", 90, target=90)])
    assert subsets_of(service, data.draw(st.permutations(pods))) == subsets_of(service, pods)


@given(pods=_pods)
def test_packing_keeps_each_pair_of_address_and_port_one_time(pods: list[Object]) -> None:
    service = a_service(ports=[NAMED, service_port("n", 90, target=90), service_port("m", 91, target=91)])
    pairs = [
        (address.target_ref.name, port.name, port.port, ready)
        for subset in subsets_of(service, pods)
        for ready, addresses in ((True, subset.addresses), (False, subset.not_ready_addresses))
        for address in addresses or ()
        for port in subset.ports or ()
        if address.target_ref
    ]
    expected = set()
    for pod in pods:
        view = pod.view(Pod)
        found = {"http": view.named_ports.get(("web", "TCP")), "n": 90, "m": 91}
        expected |= {(pod.name, port, number, view.is_ready) for port, number in found.items() if number}
    assert len(pairs) == len(expected)
    assert set(pairs) == expected


def subset(ready: int, not_ready: int, port: int) -> EndpointSubset:
    def addresses(count: int, kind: str) -> list[EndpointAddress] | None:
        return [EndpointAddress(f"{kind}{port}-{number}") for number in range(count)] or None

    return EndpointSubset(addresses(ready, "r"), addresses(not_ready, "n"), [EndpointPort("", port, "TCP")])


def sizes(subsets: list[EndpointSubset]) -> list[tuple[int, int]]:
    return [(len(each.addresses or ()), len(each.not_ready_addresses or ())) for each in subsets]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([(CAPACITY, 0)], [(1000, 0)], id="up to the capacity everything stays"),
        pytest.param([(600, 400)], [(600, 400)], id="ready and not ready together"),
        pytest.param([(1001, 0)], [(1000, 0)], id="one too many"),
        pytest.param([(900, 200)], [(900, 100)], id="addresses that are not ready go first"),
        pytest.param([(1000, 5)], [(1000, 0)], id="down to none"),
        pytest.param([(1001, 500)], [(1000, 0)], id="when ready ones are too many, no other is kept"),
        pytest.param([(800, 0), (800, 0)], [(500, 0), (500, 0)], id="subsets keep their share"),
        pytest.param([(300, 0), (1200, 0)], [(200, 0), (800, 0)], id="in proportion"),
        pytest.param([(100, 300), (100, 900)], [(100, 200), (100, 600)], id="in proportion, not ready ones"),
        pytest.param(
            [(334, 0), (334, 0), (334, 0)], [(334, 0), (334, 0), (332, 0)], id="rounded up, so the last has less"
        ),
        pytest.param(
            [(0, 1500), (500, 0)], [(0, 500), (500, 0)], id="a subset that has none of the kind keeps the rest"
        ),
    ],
)
def test_over_capacity_addresses_are_dropped_by_kubernetes_rule(
    before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    subsets = [subset(*size, port) for port, size in enumerate(before)]
    assert sizes(truncate(subsets)) == after


def test_the_first_addresses_of_a_subset_are_kept() -> None:
    full = subset(1200, 0, 80)
    [kept] = truncate([full])
    assert kept.addresses == (full.addresses or [])[:1000]


def test_a_list_within_the_capacity_is_returned_unchanged() -> None:
    subsets = [subset(1000, 0, 80)]
    assert truncate(subsets) is subsets
