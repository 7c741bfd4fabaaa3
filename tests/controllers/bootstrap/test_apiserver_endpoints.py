"""Tests of the desired Endpoints and EndpointSlices of the Service `kubernetes`, and of the addresses if the number of
servers is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS
from ctrlmgr.controllers.bootstrap.apiserver_endpoints import (
    ATTEMPTS,
    Publisher,
    desired_endpoints,
    desired_slices,
    desired_subsets,
)
from ctrlmgr.controllers.bootstrap.leases import Address
from ctrlmgr.controllers.bootstrap.reconcilers import counted
from ctrlmgr.errors import Conflict
from tests.controllers.bootstrap.process import ENDPOINTS_PATH, SERVICE, SLICE, Process

A, B = Address("192.0.2.2", 6443), Address("192.0.2.3", 6443)
ELSEWHERE = Address("192.0.2.3", 7443)
HTTPS = {"name": "https", "port": 6443, "protocol": "TCP"}
OTHER = {"name": "https", "port": 443, "protocol": "TCP"}


def subset(*ips: str, port: dict[str, Any] = HTTPS, **more: Any) -> dict[str, Any]:
    return {"addresses": [{"ip": ip} for ip in ips], **more, "ports": [port]}


@pytest.mark.parametrize(
    ("before", "servers", "reset", "after"),
    [
        pytest.param([], [B, A], False, [subset(A.ip, B.ip)], id="none"),
        pytest.param([subset(A.ip)], [A], False, [subset(A.ip)], id="right"),
        pytest.param([subset("203.0.113.1", B.ip)], [A, B], False, [subset(A.ip, B.ip)], id="somebody else's address"),
        pytest.param([subset(A.ip, port=OTHER)], [A, B], False, [subset(A.ip, B.ip, port=OTHER)], id="its ports stay"),
        pytest.param([subset(A.ip, port=OTHER)], [A], True, [subset(A.ip)], id="its ports are reset"),
        pytest.param(
            [subset(A.ip, notReadyAddresses=[{"ip": B.ip}])],
            [A],
            False,
            [subset(A.ip, notReadyAddresses=[{"ip": B.ip}])],
            id="what it says beside stays",
        ),
        pytest.param([subset(A.ip, port=OTHER), subset(B.ip)], [A, B], False, [subset(A.ip, B.ip)], id="two subsets"),
        pytest.param([subset(A.ip)], [A, ELSEWHERE], True, [subset(A.ip, B.ip)], id="two ports, of which one is told"),
        pytest.param(
            [subset(A.ip)],
            [A, B, B._replace(port=7443)],
            False,
            [subset(A.ip, B.ip), subset(B.ip, port={**HTTPS, "port": 7443})],
            id="two ports at one address",
        ),
        pytest.param([subset(A.ip)], [], False, [], id="nobody"),
    ],
)
def test_subsets(
    before: list[dict[str, Any]], servers: list[Address], reset: bool, after: list[dict[str, Any]]
) -> None:
    assert desired_subsets(before, servers, reset_ports=reset) == after


def endpoints(*subsets: dict[str, Any], **labels: str) -> Object:
    metadata = {"name": "kubernetes", "namespace": "default", "uid": "u", "resourceVersion": "7", "labels": labels}
    return Object.from_dict({"kind": "Endpoints", "apiVersion": "v1", "metadata": metadata, "subsets": list(subsets)})


def test_labels_of_clients_are_kept_and_the_mirroring_label_is_restored() -> None:
    marked = {"endpointslice.kubernetes.io/skip-mirror": "true", "mine": "1"}
    assert desired_endpoints(endpoints(subset(A.ip), **marked), [A], reset_ports=False) is None
    wanted = desired_endpoints(endpoints(subset(A.ip), mine="1"), [A], reset_ports=False)
    assert wanted is not None
    assert (wanted.labels, wanted.revision) == (marked, 7)


def test_slices_equal_the_endpoints() -> None:
    reference = {"kind": "Pod", "name": "p"}
    addresses = [{"ip": "192.0.2.2", "nodeName": "n", "targetRef": reference, "hostname": "h"}, {"ip": "2001:db8::1"}]
    [slice_] = desired_slices(
        endpoints({"addresses": addresses, "notReadyAddresses": [{"ip": "192.0.2.9"}], "ports": [HTTPS]})
    )
    assert slice_["addressType"] == "IPv4"
    assert slice_["endpoints"] == [
        {"addresses": ["192.0.2.2"], "conditions": {"ready": True}, "targetRef": reference, "nodeName": "n"},
        {"addresses": ["192.0.2.9"], "conditions": {"ready": False}},
    ]


def test_a_slice_has_ipv6_if_all_addresses_are_ipv6() -> None:
    [slice_] = desired_slices(endpoints(subset("2001:db8::1", "2001:db8::2")))
    assert slice_["addressType"] == "IPv6"
    assert len(slice_["endpoints"]) == 2


def test_without_addresses_the_slice_has_no_endpoints() -> None:
    [slice_] = desired_slices(endpoints())
    assert (slice_["endpoints"], slice_["ports"], slice_["addressType"]) == ([], [], "IPv4")


def test_a_slice_of_another_family_is_recreated() -> None:
    process = Process().start()
    old = process.fields(ENDPOINT_SLICES)
    process.delete(SLICE)
    ipv6 = {**old, "addressType": "IPv6", "endpoints": [], "metadata": {"name": "kubernetes", "namespace": "default"}}
    process.client.create(Object.from_dict(ipv6))
    process.do("kubernetes service")
    assert process.published() == [("192.0.2.2", 6443)]
    assert process.fields(ENDPOINT_SLICES)["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}


@pytest.mark.parametrize("times", [1, ATTEMPTS])
def test_a_conflict_with_another_process_causes_a_new_read(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process().start()
    other = Process("192.0.2.3", beside=process, endpoint_reconciler_type="none").start()
    update: Callable[[Object], Object] = process.client.update
    left = [times]

    def contended(obj: Object) -> Object:
        if obj.resource == ENDPOINTS and left[0]:
            left[0] -= 1
            other.patch(ENDPOINTS_PATH, {"metadata": {"annotations": {"turn": str(left[0])}}})
        return update(obj)

    process.patch(ENDPOINTS_PATH, {"subsets": [subset("203.0.113.1")]})
    monkeypatch.setattr(process.client, "update", contended)
    publisher = Publisher(process.log, process.informers.informer(ENDPOINT_SLICES).lister)
    if times == ATTEMPTS:
        with pytest.raises(Conflict):
            publisher.publish([A], process.client, reset_ports=False)
    publisher.publish([A], process.client, reset_ports=False)
    assert process.published() == [("192.0.2.2", 6443)]


def test_the_service_is_created_before_its_endpoints() -> None:
    process = Process().start()
    process.delete(SERVICE)
    events = len(process.log.events_after(0))
    process.do("kubernetes service")
    created = [each.resource.plural for each in process.log.events_after(0)][events:]
    assert created[0] == "services"
    assert "endpoints" in created


@pytest.mark.parametrize(
    ("there", "own", "count", "after"),
    [
        pytest.param([], "b", 2, ["b"], id="alone"),
        pytest.param(["a"], "b", 2, ["a", "b"], id="room for one more"),
        pytest.param(["a", "b", "c"], "b", 2, ["a", "b"], id="the one after us goes"),
        pytest.param(["a", "b", "c"], "c", 2, ["b", "c"], id="after the last comes the first"),
        pytest.param(["a", "b", "c", "d"], "a", 1, ["a"], id="all others"),
        pytest.param(["b", "b"], "b", 2, ["b"], id="twice"),
    ],
)
def test_the_number_of_addresses_is_fixed(there: list[str], own: str, count: int, after: list[str]) -> None:
    assert counted(there, own, count) == after
