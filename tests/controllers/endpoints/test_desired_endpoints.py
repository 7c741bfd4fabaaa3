"""Tests of the desired Endpoints, computed from a service, pods and the current Endpoints, and of Endpoints that need
no write.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.endpoints.controller import desired_endpoints, desired_labels, labels_are_right
from ctrlmgr.testing.builders import a_pod, a_service, endpoints, service_port

TRIGGERED = parse_time("2026-11-21T00:12:52Z")
MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"

POD = a_pod("p", uid="u1")
ADDRESS: dict[str, Any] = {
    "ip": "10.0.0.1",
    "nodeName": "node-a",
    "targetRef": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u1"},
}
SUBSET: dict[str, Any] = {"addresses": [ADDRESS], "ports": [{"port": 8080, "protocol": "TCP"}]}


def desired(
    service: Object, pods: list[Object], current: Object | None = None, trigger_time: int | None = None
) -> Object | None:
    return desired_endpoints(service, [pod.view(Pod) for pod in pods], current, trigger_time)


def written(
    service: Object, pods: list[Object], current: Object | None = None, trigger_time: int | None = None
) -> dict[str, Any]:
    """Return the written object as a dict; the test fails if the controller writes nothing."""
    found = desired(service, pods, current, trigger_time)
    assert found is not None
    assert found.metadata == Object.from_wire(found.wire()).metadata
    return found.to_dict()


def test_new_endpoints_have_the_bytes_of_go() -> None:
    service = a_service(labels={"team": "a", "app": "web"}, ports=[service_port("http")])
    found = desired(service, [POD, a_pod("q", uid="u2", ips=["10.0.0.2"], ready=False)], None, TRIGGERED)
    assert found is not None
    assert found.revision == 0
    assert found.body == (
        b'{"kind":"Endpoints","apiVersion":"v1","metadata":{"name":"web","namespace":"default",'
        b'"labels":{"app":"web","endpoints.kubernetes.io/managed-by":"endpoint-controller","team":"a"},'
        b'"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-11-21T00:12:52Z"}},'
        b'"subsets":[{"addresses":[{"ip":"10.0.0.1","nodeName":"node-a",'
        b'"targetRef":{"kind":"Pod","namespace":"default","name":"p","uid":"u1"}}],'
        b'"notReadyAddresses":[{"ip":"10.0.0.2","nodeName":"node-a",'
        b'"targetRef":{"kind":"Pod","namespace":"default","name":"q","uid":"u2"}}],'
        b'"ports":[{"name":"http","port":8080,"protocol":"TCP"}]}]}'
    )


def test_new_endpoints_without_addresses_have_no_subsets() -> None:
    body = written(a_service(), [])
    assert "subsets" not in body
    assert "annotations" not in body["metadata"]


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(a_service(selects_nothing=True), id="a service without a selector"),
        pytest.param(a_service(type="ExternalName", cluster_ip=""), id="an ExternalName"),
    ],
)
@pytest.mark.parametrize("current", [None, endpoints(subsets=[SUBSET], revision=7)], ids=["without", "with endpoints"])
def test_services_without_a_selector_are_ignored(service: Object, current: Object | None) -> None:
    assert desired(service, [POD], current, TRIGGERED) is None


def test_an_empty_selector_selects_all_given_pods() -> None:
    assert written(a_service(selector={}), [POD])["subsets"] == [SUBSET]


@pytest.mark.parametrize(
    ("service", "labels"),
    [
        pytest.param(a_service(), MANAGED, id="the manager's label alone"),
        pytest.param(a_service(labels={"team": "a"}), MANAGED | {"team": "a"}, id="and the service's labels"),
        pytest.param(
            a_service(cluster_ip="None"),
            MANAGED | {"service.kubernetes.io/headless": ""},
            id="and headless without an IP",
        ),
        pytest.param(
            a_service(cluster_ip="None", labels={"service.kubernetes.io/headless": "mine"}),
            MANAGED | {"service.kubernetes.io/headless": ""},
            id="whatever the service says there",
        ),
        pytest.param(
            a_service(labels={"service.kubernetes.io/headless": "mine"}), MANAGED, id="and never headless with an IP"
        ),
        pytest.param(
            a_service(labels={"endpoints.kubernetes.io/managed-by": "me"}), MANAGED, id="the manager's label wins"
        ),
    ],
)
def test_labels(service: Object, labels: dict[str, str]) -> None:
    assert written(service, [])["metadata"]["labels"] == labels


def test_labels_are_sorted_by_key() -> None:
    assert list(desired_labels({"z": "1", "a": "2"}, is_headless=True)) == [
        "a",
        "endpoints.kubernetes.io/managed-by",
        "service.kubernetes.io/headless",
        "z",
    ]


@pytest.mark.parametrize(
    ("labels", "right"),
    [
        pytest.param(MANAGED | {"team": "a"}, True, id="the service's and the manager's"),
        pytest.param(
            MANAGED | {"team": "a", "service.kubernetes.io/headless": ""}, True, id="headless is not looked at"
        ),
        pytest.param({"team": "a"}, False, id="without a manager"),
        pytest.param({"team": "a", "endpoints.kubernetes.io/managed-by": "me"}, False, id="with another manager"),
        pytest.param(MANAGED, False, id="one is missing"),
        pytest.param(MANAGED | {"team": "b"}, False, id="one has another value"),
        pytest.param(MANAGED | {"team": "a", "more": "1"}, False, id="one too many"),
    ],
)
def test_labels_are_compared_with_the_desired_ones(labels: dict[str, str], right: bool) -> None:
    assert labels_are_right(labels, {"team": "a"}) is right


def with_version(version: str) -> dict[str, Any]:
    target = ADDRESS["targetRef"] | {"resourceVersion": version}
    return SUBSET | {"addresses": [ADDRESS | {"targetRef": target}]}


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(endpoints(subsets=[SUBSET]), id="it is what would be written"),
        pytest.param(endpoints(subsets=[SUBSET], annotations={"mine": "kept"}), id="a client's annotation stands"),
        pytest.param(
            endpoints(subsets=[SUBSET], annotations={TRIGGER_TIME: "2020-01-01T00:00:00Z"}),
            id="the trigger time changes only with something else",
        ),
        pytest.param(endpoints(subsets=[with_version("5")]), id="the pod's version in a reference does not matter"),
        pytest.param(endpoints(subsets=[SUBSET | {"notReadyAddresses": []}]), id="an empty list is as good as none"),
        pytest.param(endpoints(subsets=[dict(reversed(SUBSET.items()))]), id="nor does the order of fields"),
        pytest.param(
            endpoints(subsets=[SUBSET], labels=MANAGED | {"service.kubernetes.io/headless": ""}),
            id="the headless label is not compared",
        ),
    ],
)
def test_unchanged_endpoints_are_not_written(current: Object) -> None:
    assert desired(a_service(), [POD], current.at(7), TRIGGERED) is None


@pytest.mark.parametrize("subsets", ["null", "[]"])
def test_empty_subsets_equal_null_subsets(subsets: str) -> None:
    current = Object.from_wire(endpoints().body[:-1] + f',"subsets":{subsets}}}'.encode())
    assert desired(a_service(), [], current) is None


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(endpoints(), id="an address is missing"),
        pytest.param(
            endpoints(subsets=[{"notReadyAddresses": [ADDRESS]} | {"ports": SUBSET["ports"]}]), id="not ready"
        ),
        pytest.param(endpoints(subsets=[SUBSET | {"addresses": [ADDRESS | {"nodeName": "b"}]}]), id="another node"),
        pytest.param(endpoints(subsets=[SUBSET | {"addresses": [{"ip": "10.0.0.1"}]}]), id="no reference to the pod"),
        pytest.param(endpoints(subsets=[SUBSET, SUBSET]), id="a subset too many"),
        pytest.param(endpoints(subsets=[SUBSET], labels={}), id="the manager's label is missing"),
        pytest.param(endpoints(subsets=[SUBSET], labels=MANAGED | {"more": "1"}), id="a label too many"),
        pytest.param(endpoints(subsets=[SUBSET], annotations={OVER_CAPACITY: "truncated"}), id="marked as truncated"),
    ],
)
def test_a_change_is_written_at_the_revision_that_was_read(current: Object) -> None:
    found = desired(a_service(), [POD], current.at(7))
    assert found is not None
    assert (found.revision, found.uid) == (7, current.uid)
    body = found.to_dict()
    assert body["subsets"] == [SUBSET]
    assert body["metadata"]["labels"] == MANAGED
    assert "annotations" not in body["metadata"]


def test_a_write_keeps_annotations_finalizers_and_managed_fields() -> None:
    managed = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:subsets": {}}}]
    fields = endpoints(annotations={"mine": "kept"}).to_dict()  # this name is sorted after the trigger time
    fields["metadata"] |= {"finalizers": ["example.com/hold"], "managedFields": managed}
    metadata = written(a_service(labels={"team": "a"}), [POD], Object.from_dict(fields), TRIGGERED)["metadata"]
    assert list(metadata["annotations"].items()) == [(TRIGGER_TIME, "2026-11-21T00:12:52Z"), ("mine", "kept")]
    assert metadata["finalizers"] == ["example.com/hold"]
    assert metadata["managedFields"] == managed


def test_a_write_without_a_trigger_time_removes_the_old_one() -> None:
    current = endpoints(annotations={TRIGGER_TIME: "2020-01-01T00:00:00Z", "mine": "kept"})
    assert written(a_service(), [POD], current)["metadata"]["annotations"] == {"mine": "kept"}


def test_a_pod_without_a_node_has_an_empty_node_name() -> None:
    assert written(a_service(), [a_pod(node="")])["subsets"][0]["addresses"][0]["nodeName"] == ""


def many_pods(count: int, *, not_ready: int = 0) -> list[Object]:
    return [
        a_pod(f"p{number}", ips=[f"10.{number // 250}.0.{number % 250}"], ready=number >= not_ready)
        for number in range(count)
    ]


def test_over_capacity_is_marked_and_truncated() -> None:
    body = written(a_service(), many_pods(1001, not_ready=20))
    assert body["metadata"]["annotations"] == {OVER_CAPACITY: "truncated"}
    [subset] = body["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (981, 19)


def test_truncated_endpoints_are_not_written_again() -> None:
    service, pods = a_service(), many_pods(1001)
    first = desired(service, pods, None, TRIGGERED)
    assert first is not None
    # Kubernetes compares with the subsets before truncation: it writes again, and so removes the trigger time.
    second = desired(service, pods, first.at(1))
    assert second is not None
    assert TRIGGER_TIME not in second.annotations
    assert desired(service, pods, second.at(2)) is None


def test_a_capacity_annotation_removed_by_a_client_is_restored() -> None:
    service, pods = a_service(), many_pods(1001)
    over = desired(service, pods)
    assert over is not None
    unmarked = over.with_metadata(annotations={"mine": "kept"}).at(1)
    assert written(service, pods, unmarked)["metadata"]["annotations"] == {OVER_CAPACITY: "truncated", "mine": "kept"}


def test_the_capacity_annotation_is_removed_within_the_capacity() -> None:
    service = a_service()
    over = desired(service, many_pods(1001))
    assert over is not None
    body = written(service, many_pods(1000), over.at(1))
    assert "annotations" not in body["metadata"]
    assert len(body["subsets"][0]["addresses"]) == 1000
