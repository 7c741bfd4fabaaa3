"""Tests of the changes that the controller makes to a service's slices, computed from the service, pods and existing
slices, and of the stored bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.core import Pod
from ctrlmgr.api.discovery import EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.endpointslice.slice_changes import desired_changes
from ctrlmgr.controllers.endpointslice.slice_objects import (
    appearance_of,
    changed_slice,
    desired_labels,
    name_prefix,
    new_slice,
)
from ctrlmgr.controllers.endpointslice.slice_packing import Changes
from ctrlmgr.testing.builders import a_pod, a_service, container_port, service_port

ZONES = {"node-a": "zone-1", "node-b": "zone-2"}
SHARES = {"zone-1": 0.5, "zone-2": 0.5}
TRIGGERED = parse_time("2026-11-21T00:12:52Z")
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"
LABELS = {
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    "kubernetes.io/service-name": "web",
}


def changes_of(service: Object, pods: Iterable[Object], existing: Iterable[Object] = ()) -> Changes:
    views = [pod.view(Pod) for pod in pods]
    return desired_changes(service, views, existing, zone_of=ZONES.get, shares=lambda: SHARES, capacity=100)


def carried_out(
    service: Object, changes: Changes, existing: Sequence[Object] = (), *, trigger_time: int | None = None
) -> list[Object]:
    """Return the stored form of the slices after the changes."""
    appearance = appearance_of(service, trigger_time)
    slices = {obj.name: obj for obj in existing}
    free = (name for number in itertools.count(1) if (name := f"web-{number}") not in slices)
    for draft in changes.delete:
        assert draft.current is not None
        del slices[draft.current.name]
    for draft in changes.update:
        obj = changed_slice(draft, appearance)
        slices[obj.name] = obj.at(obj.revision + 1)
    for draft, name in zip(changes.create, free, strict=False):
        obj = new_slice(draft, appearance, name)
        slices[name] = obj.with_metadata(uid=f"uid-of-{name}", creation_timestamp="2026-01-01T00:00:00Z").at(1)
    return [slices[name] for name in sorted(slices)]


def slices_of(service: Object, *pods: Object) -> list[Object]:
    """Return the slices that the controller writes for a Service without slices."""
    return carried_out(service, changes_of(service, pods))


def content(obj: Object) -> tuple[str, list[str], list[int | None]]:
    view = obj.view(EndpointSlice)
    addresses = [each.addresses[0] for each in view.endpoints or ()]
    return view.address_type, addresses, [port.port for port in view.ports or ()]


def summary(changes: Changes) -> dict[str, list[str]]:
    """Return the names of the written slices; a created slice has the name `new`."""
    found = {"create": changes.create, "update": changes.update, "delete": changes.delete}
    return {
        action: [draft.current.name if draft.current else "new" for draft in drafts]
        for action, drafts in found.items()
        if drafts
    }


def test_a_new_slice_has_the_bytes_of_go() -> None:
    service = a_service(labels={"team": "a", "app": "web"}, ports=[service_port("http")])
    pods = [a_pod("p", uid="u1"), a_pod("q", uid="u2", ips=["10.0.0.2"], ready=False, node="node-b")]
    [draft] = changes_of(service, pods).create
    obj = new_slice(draft, appearance_of(service, TRIGGERED), "web-x7k2p")
    assert obj.revision == 0
    assert obj.body == (
        b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"web-x7k2p",'
        b'"generateName":"web-","namespace":"default","generation":1,"labels":{"app":"web",'
        b'"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io",'
        b'"kubernetes.io/service-name":"web","team":"a"},'
        b'"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-11-21T00:12:52Z"},'
        b'"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"web","uid":"uid-of-web",'
        b'"controller":true,"blockOwnerDeletion":true}]},"addressType":"IPv4","endpoints":['
        b'{"addresses":["10.0.0.1"],"conditions":{"ready":true,"serving":true,"terminating":false},'
        b'"targetRef":{"kind":"Pod","namespace":"default","name":"p","uid":"u1"},"nodeName":"node-a","zone":"zone-1"},'
        b'{"addresses":["10.0.0.2"],"conditions":{"ready":false,"serving":false,"terminating":false},'
        b'"targetRef":{"kind":"Pod","namespace":"default","name":"q","uid":"u2"},"nodeName":"node-b","zone":"zone-2"}],'
        b'"ports":[{"name":"http","protocol":"TCP","port":8080}]}'
    )


def test_the_placeholder_has_neither_endpoints_nor_ports() -> None:
    [obj] = slices_of(a_service())
    assert obj.body.endswith(b'"addressType":"IPv4","endpoints":null,"ports":null}')
    assert dict(obj.labels) == LABELS


@pytest.mark.parametrize(
    ("service", "labels"),
    [
        pytest.param(a_service(), LABELS, id="those that say whose it is"),
        pytest.param(a_service(labels={"team": "a"}), LABELS | {"team": "a"}, id="and the service's"),
        pytest.param(
            a_service(cluster_ip="None"),
            LABELS | {"service.kubernetes.io/headless": ""},
            id="and headless without an IP",
        ),
        pytest.param(
            a_service(
                labels={
                    "kubernetes.io/service-name": "mine",
                    "endpointslice.kubernetes.io/managed-by": "me",
                    HEADLESS: "mine",
                }
            ),
            LABELS,
            id="whatever the service says of these",
        ),
    ],
)
def test_labels(service: Object, labels: dict[str, str]) -> None:
    assert desired_labels(service) == labels
    assert list(desired_labels(service)) == sorted(labels)


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("web", "web-"), ("a.b", "a.b-"), ("x" * 252, "x" * 252 + "-"), ("x" * 253, "x" * 253)],
)
def test_generated_names_begin_with_the_name_of_the_owner(name: str, prefix: str) -> None:
    assert name_prefix(name) == prefix


def test_each_family_has_separate_slices() -> None:
    service = a_service(families=["IPv6", "IPv4"])
    found = slices_of(service, a_pod("p", ips=["10.0.0.1", "fd00::1"]), a_pod("q", ips=["10.0.0.2"]))
    assert sorted(map(content, found)) == [
        ("IPv4", ["10.0.0.1", "10.0.0.2"], [8080]),
        ("IPv6", ["fd00::1"], [8080]),
    ]


def test_a_family_without_addresses_has_a_placeholder() -> None:
    found = slices_of(a_service(families=["IPv4", "IPv6"]), a_pod())
    assert sorted(map(content, found)) == [("IPv4", ["10.0.0.1"], [8080]), ("IPv6", [], [])]


def test_slices_of_a_removed_family_are_deleted() -> None:
    both = slices_of(a_service(families=["IPv4", "IPv6"]), a_pod())
    changes = changes_of(a_service(families=["IPv4"]), [a_pod()], both)
    assert [draft.address_type for draft in changes.delete] == ["IPv6"]
    assert not changes.create + changes.update


def test_each_set_of_ports_has_separate_slices() -> None:
    service = a_service(ports=[service_port("http", target="web")])
    pods = [a_pod(f"p{number}", ips=[f"10.0.0.{number}"], ports=[container_port("web", number)]) for number in (1, 2)]
    assert [content(obj) for obj in slices_of(service, *pods)] == [
        ("IPv4", ["10.0.0.1"], [1]),
        ("IPv4", ["10.0.0.2"], [2]),
    ]


REPLACED = {"create": ["new"], "delete": ["web-1"]}
OTHER = {"uid": "another"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(([],), ([],), {}, id="the placeholder stays"),
        pytest.param(([],), (["p"],), {"update": ["web-1"]}, id="the placeholder becomes the first slice"),
        pytest.param((["p"],), ([],), {"update": ["web-1"]}, id="the last slice becomes the placeholder"),
        pytest.param((["p", "q"],), (["q"],), {"update": ["web-1"]}, id="a pod less"),
        pytest.param((["p"],), (["p"], {"port": 9090}), {"update": ["web-1"]}, id="another port writes over the slice"),
        pytest.param((["p"],), (["p"], {"labels": {"a": "b"}}), {"update": ["web-1"]}, id="a label"),
        pytest.param(([],), ([], {"labels": {"a": "b"}}), {"update": ["web-1"]}, id="a label of the placeholder"),
        pytest.param((["p"],), (["p"], OTHER), REPLACED, id="a new service"),
        pytest.param(([],), ([], OTHER), REPLACED, id="and its placeholder"),
        pytest.param((["p"],), (["p"], {"annotations": {"a": "b"}}), {}, id="an annotation of the service is its own"),
        pytest.param((["p"],), (["p"], {"traffic": "PreferClose"}), {"update": ["web-1"]}, id="hints are asked for"),
        pytest.param((["p"], {"traffic": "PreferClose"}), (["p"],), {"update": ["web-1"]}, id="and no longer"),
    ],
)
def test_slice_changes(before: tuple[Any, ...], after: tuple[Any, ...], expected: dict[str, list[str]]) -> None:
    def stage(pods: list[str], varied: dict[str, Any] | None = None) -> tuple[Object, list[Object]]:
        of = {"port": 8080, "labels": {}, "annotations": {}, "uid": "uid-of-web", "traffic": "", **(varied or {})}
        service = a_service(
            ports=[service_port(target=of["port"])],
            labels=of["labels"],
            annotations=of["annotations"],
            traffic_distribution=of["traffic"],
        ).with_metadata(uid=of["uid"])
        return service, [a_pod(name, ips=[f"10.0.0.{ord(name)}"]) for name in pods]

    service, pods = stage(*before)
    existing = slices_of(service, *pods)
    service, pods = stage(*after)
    changes = changes_of(service, pods, existing)
    assert summary(changes) == expected
    settled = carried_out(service, changes, existing)
    assert summary(changes_of(service, pods, settled)) == {}


def test_one_of_several_empty_slices_is_kept() -> None:
    [placeholder] = slices_of(a_service())
    other = placeholder.with_metadata(name="web-2")
    assert summary(changes_of(a_service(), [], [placeholder, other])) == {"delete": ["web-2"]}


def test_hints_by_cpu_take_precedence_over_traffic_distribution() -> None:
    service = a_service(
        traffic_distribution="PreferSameNode", annotations={"service.kubernetes.io/topology-mode": "Auto"}
    )
    pods = [a_pod(f"p{number}", ips=[f"10.0.0.{number}"]) for number in range(2)]
    [obj] = slices_of(service, *pods)
    hints = [each["hints"] for each in obj.to_dict()["endpoints"]]
    assert hints == [{"forZones": [{"name": "zone-2"}]}, {"forZones": [{"name": "zone-1"}]}]


def updated(service: Object, existing: Object, *pods: Object, trigger_time: int | None = None) -> Object:
    [draft] = changes_of(service, pods, [existing]).update
    return changed_slice(draft, appearance_of(service, trigger_time))


def test_an_update_keeps_unrelated_fields() -> None:
    [existing] = slices_of(a_service(), a_pod())
    managed = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {}}}]
    fields = existing.to_dict()
    fields["metadata"] |= {"annotations": {"mine": "kept", TRIGGER_TIME: "2020-01-01T00:00:00Z"}}
    fields["metadata"] |= {"finalizers": ["example.com/hold"], "managedFields": managed, "generation": 7}
    obj = updated(a_service(labels={"a": "b"}), Object.from_dict(fields).at(5), a_pod(), trigger_time=TRIGGERED)
    metadata = obj.to_dict()["metadata"]
    assert (obj.revision, obj.uid, metadata["generation"]) == (5, existing.uid, 8)
    assert metadata["annotations"] == {TRIGGER_TIME: "2026-11-21T00:12:52Z", "mine": "kept"}
    assert metadata["labels"] == LABELS | {"a": "b"}
    assert (metadata["finalizers"], metadata["managedFields"]) == (["example.com/hold"], managed)
    assert metadata["ownerReferences"] == existing.to_dict()["metadata"]["ownerReferences"]
    assert obj.metadata == Object.from_wire(obj.wire()).metadata


def test_an_update_without_a_trigger_time_removes_the_old_one() -> None:
    service = a_service()
    [existing] = carried_out(service, changes_of(service, [a_pod()]), trigger_time=TRIGGERED)
    assert "annotations" not in updated(service, existing, a_pod(ready=False)).to_dict()["metadata"]


def test_an_overwritten_slice_keeps_only_its_identity() -> None:
    [existing] = slices_of(a_service(), a_pod())
    existing = existing.with_metadata(annotations={"theirs": "gone"}).at(3)
    obj = updated(a_service(ports=[service_port(target=9090)]), existing, a_pod())
    assert (obj.name, obj.uid, obj.revision) == (existing.name, existing.uid, 3)
    assert obj.metadata.generation == 2
    assert not obj.annotations
    assert content(obj) == ("IPv4", ["10.0.0.1"], [9090])


def test_edited_endpoints_are_restored() -> None:
    [existing] = slices_of(a_service(), a_pod())
    fields = existing.to_dict()
    fields["endpoints"] = [{"addresses": ["203.0.113.7"], "conditions": {}}, *fields["endpoints"]]
    assert content(updated(a_service(), Object.from_dict(fields), a_pod())) == ("IPv4", ["10.0.0.1"], [8080])


PODS = [
    a_pod(f"p{number}", ips=ips, ready=ready, node=node, ports=[container_port("web", port)])
    for number, (ips, ready, node, port) in enumerate(
        itertools.product(
            [[], ["10.0.0.1"], ["10.0.0.1", "fd00::1"]], [True, False], ["node-a", "node-b", "missing"], [80, 81]
        )
    )
]
pods_of_services = st.lists(st.sampled_from(PODS), unique=True, max_size=12)
services = st.builds(
    lambda families, labels, target, publish, traffic, mode: a_service(
        families=families,
        labels=labels,
        ports=[service_port("http", target=target)],
        publish_not_ready=publish,
        traffic_distribution=traffic,
        annotations={"service.kubernetes.io/topology-mode": mode},
    ),
    st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"]]),
    st.sampled_from([{}, {"a": "b"}]),
    st.sampled_from(["web", 8080]),
    st.booleans(),
    st.sampled_from(["", "PreferClose", "PreferSameNode"]),
    st.sampled_from(["", "Auto"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(services, pods_of_services), min_size=1, max_size=4))
def test_any_previous_slices_lead_to_the_same_slices_in_one_step(
    history: list[tuple[Object, list[Object]]],
) -> None:
    slices: list[Object] = []
    for service, pods in history:
        slices = carried_out(service, changes_of(service, pods, slices), slices)
        assert summary(changes_of(service, pods, slices)) == {}
    afresh = slices_of(service, *pods)
    assert endpoints(slices) == endpoints(afresh)


def endpoints(slices: Iterable[Object]) -> list[tuple[Any, ...]]:
    """Return the content of slices, regardless of its division into slices; for hints by CPU, the result contains only
    whether hints exist.
    """
    return sorted(
        (view.address_type, str(view.ports), str(each).partition("hints=")[0], each.hints is None)
        for view in (obj.view(EndpointSlice) for obj in slices)
        for each in view.endpoints or ()
    )
