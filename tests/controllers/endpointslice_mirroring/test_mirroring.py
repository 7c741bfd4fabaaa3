"""Tests of the mirroring controller: a client writes Endpoints, and the controller creates slices with the same
content.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Key
from ctrlmgr.controllers.endpoints.controller import LEADER
from ctrlmgr.controllers.endpointslice_mirroring import Options
from ctrlmgr.controllers.endpointslice_mirroring.controller import MANAGER, desired_mirrors
from ctrlmgr.testing.builders import a_namespace, a_pod, a_service, endpoints
from tests.controllers.endpointslice.cluster import SliceCluster
from tests.controllers.log_cluster import WEB

PORT = {"name": "http", "port": 80, "protocol": "TCP"}
SUBSET: dict[str, Any] = {"addresses": [{"ip": "203.0.113.1"}], "ports": [PORT]}
SERVICE = a_service(selects_nothing=True)
DELETED = "2026-01-01T00:00:00Z"
SKIP = {"endpointslice.kubernetes.io/skip-mirror": "true"}


def by_hand(*addresses: str, labels: dict[str, str] | None = None, **options: Any) -> Object:
    """Return Endpoints in the form that a client writes, with these addresses, or with one address by default."""
    ips = addresses or ("203.0.113.1",)
    subset = {"addresses": [{"ip": ip} for ip in ips], "ports": [PORT]}
    return endpoints(labels=labels or {}, **{"subsets": [subset], **options})


def test_a_mirror_has_the_bytes_of_go() -> None:
    cluster = SliceCluster(SERVICE)
    annotations = {"note": "x", "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}
    annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
    cluster.put(by_hand(labels={"ep": "label"}, annotations=annotations))
    assert cluster.settle() == ["ADDED"]
    [found] = cluster.found()
    body = found.body.replace(found.name.encode(), b"web-x7k2p").replace(found.uid.encode(), b"u1")
    created = (found.metadata.creation_timestamp or "").encode()
    body = re.sub(rb',"managedFields":\[.*?}}]', b"", body)
    assert body.replace(created, b"now") == (
        b'{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":"web-x7k2p",'
        b'"generateName":"web-","namespace":"default","uid":"u1","generation":1,"creationTimestamp":"now",'
        b'"labels":{"endpointslice.kubernetes.io/managed-by":"endpointslicemirroring-controller.k8s.io",'
        b'"ep":"label","kubernetes.io/service-name":"web"},"annotations":{"note":"x"},'
        b'"ownerReferences":[{"apiVersion":"v1","kind":"Endpoints","name":"web","uid":"uid-of-web",'
        b'"controller":true,"blockOwnerDeletion":true}]},"addressType":"IPv4","endpoints":['
        b'{"addresses":["203.0.113.1"],"conditions":{"ready":true}}],'
        b'"ports":[{"name":"http","protocol":"TCP","port":80}]}'
    )


def test_at_most_the_maximum_of_addresses_is_mirrored() -> None:
    endpoints_of_two = by_hand("203.0.113.1", "203.0.113.2")
    cluster = SliceCluster(SERVICE, endpoints_of_two, mirroring=Options(mirroring_max_endpoints_per_subset=1))
    cluster.settle()
    assert cluster.addresses() == ["203.0.113.1"]


def test_an_edited_mirror_is_corrected_after_the_batch_period() -> None:
    options = Options(mirroring_endpointslice_updates_batch_period=0.5)
    cluster = SliceCluster(SERVICE, by_hand(), mirroring=options)
    assert cluster.settle() == ["ADDED"]
    cluster.clock.step(0.5)
    assert cluster.settle() == []
    [mirror] = cluster.found()
    cluster.put(Object.from_dict({**mirror.to_dict(), "endpoints": []}))
    assert cluster.settle() == []
    cluster.clock.step(0.5)
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == ["203.0.113.1"]


def test_mirrors_follow_their_endpoints() -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    cluster.put(by_hand("203.0.113.1", "203.0.113.2"))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == ["203.0.113.1", "203.0.113.2"]
    cluster.put(by_hand("203.0.113.2", labels={"ep": "changed"}))
    assert cluster.settle() == ["MODIFIED"]
    cluster.put(endpoints(labels={}))
    assert cluster.settle() == ["DELETED"]


def test_each_family_and_set_of_ports_has_a_mirror() -> None:
    other = {"addresses": [{"ip": "203.0.113.9"}], "ports": [PORT | {"port": 81}]}
    both = {"addresses": [{"ip": "203.0.113.1"}, {"ip": "2001:db8::1"}], "ports": [PORT]}
    cluster = SliceCluster(SERVICE, by_hand(subsets=[both, other]))
    assert cluster.settle() == ["ADDED"] * 3
    cluster.put(by_hand(subsets=[SUBSET, other]))
    assert cluster.settle() == ["DELETED"]


def test_changed_ports_overwrite_the_mirror() -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    cluster.put(by_hand(subsets=[SUBSET | {"ports": [PORT | {"port": 81}]}]))
    assert cluster.settle() == ["MODIFIED"]
    [found] = cluster.found()
    assert found.to_dict()["ports"] == [{"name": "http", "protocol": "TCP", "port": 81}]
    assert found.metadata.generation == 2


@pytest.mark.parametrize(
    ("service", "manual"),
    [
        pytest.param(None, by_hand(), id="there is no service"),
        pytest.param(a_service(), by_hand(), id="the service has a selector"),
        pytest.param(a_service(selector={}), by_hand(), id="even one that selects everything"),
        pytest.param(SERVICE, by_hand(labels=SKIP), id="the label says not to"),
        pytest.param(SERVICE, by_hand(annotations={LEADER: "{}"}), id="they are a lock"),
        pytest.param(SERVICE, endpoints(labels={}), id="they are empty"),
    ],
)
def test_endpoints_excluded_from_mirroring_lose_their_mirror(service: Object | None, manual: Object) -> None:
    there = [manual, *([service] if service else [])]
    cluster = SliceCluster(*there)
    cluster.settle()
    assert cluster.found(manager=MANAGER) == []
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    cluster.put(*there)
    if service is None:
        cluster.delete(SERVICES, WEB)
    cluster.settle()
    assert cluster.found(manager=MANAGER) == []


@pytest.mark.parametrize(
    "labels", [pytest.param({}, id="no label"), pytest.param({next(iter(SKIP)): "false"}, id="one that is not true")]
)
def test_endpoints_are_mirrored_when_their_exclusion_ends(labels: dict[str, str]) -> None:
    cluster = SliceCluster(a_service(), by_hand(labels=SKIP))
    cluster.settle()
    cluster.put(SERVICE)
    assert cluster.settle() == []
    cluster.put(by_hand(labels=labels))
    assert cluster.settle() == ["ADDED"]


def test_a_late_service_or_a_removed_selector_creates_the_mirror() -> None:
    cluster = SliceCluster(by_hand())
    assert cluster.settle() == []
    cluster.put(SERVICE)
    assert cluster.settle() == ["ADDED"]
    cluster.put(a_service())
    cluster.settle()
    assert cluster.found(manager=MANAGER) == []
    cluster.put(SERVICE)
    cluster.settle()
    assert len(cluster.found(manager=MANAGER)) == 1


def test_mirrors_of_deleted_endpoints_are_deleted() -> None:
    cluster = SliceCluster(SERVICE, by_hand("203.0.113.1", "2001:db8::1"))
    cluster.settle()
    cluster.delete(ENDPOINTS, WEB)
    assert cluster.settle() == ["DELETED", "DELETED"]


def test_leftovers_are_deleted_at_the_start() -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    cluster.delete(ENDPOINTS, WEB)
    assert SliceCluster(log=cluster.log).settle() == ["DELETED"]


def test_a_new_process_writes_nothing() -> None:
    cluster = SliceCluster(SERVICE, by_hand("203.0.113.1", "2001:db8::1"))
    cluster.settle()
    assert SliceCluster(log=cluster.log).settle() == []


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"endpoints": None}, id="of its endpoints"),
        pytest.param({"ports": None}, id="of its ports"),
        pytest.param({"labels": {SERVICE_NAME: "web", MANAGED_BY: MANAGER, "x": "y"}}, id="of its labels"),
        pytest.param({"annotations": {"x": "y"}}, id="of its annotations"),
        pytest.param({"owner_references": None}, id="of its owner"),
    ],
)
def test_an_edited_mirror_is_restored(edit: dict[str, Any]) -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    [found] = cluster.found()
    if edit.keys() <= {"endpoints", "ports"}:
        cluster.put(Object.from_dict({**found.to_dict(), **edit}))
    else:
        cluster.put(found.with_metadata(**edit))
    assert cluster.settle() == ["MODIFIED"]
    [again] = cluster.found()
    assert again.with_metadata(generation=1).body == found.body


def test_a_deleted_mirror_is_recreated() -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    cluster.delete(ENDPOINT_SLICES, cluster.found()[0].key)
    assert cluster.settle() == ["ADDED"]


def test_mirrors_of_earlier_endpoints_are_reused_and_duplicates_deleted() -> None:
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    [found] = cluster.found()
    cluster.put(found.with_metadata(name="web-zzzzz", uid="double"))
    cluster.put(by_hand().with_metadata(uid="another"))
    assert sorted(cluster.settle()) == ["DELETED", "MODIFIED"]
    [kept] = cluster.found()
    assert (kept.name, [owner.uid for owner in kept.metadata.owner_references or ()]) == (found.name, ["another"])


def test_slices_of_an_unknown_address_family_are_deleted() -> None:
    [draft] = desired_mirrors(by_hand(), [], 1000).create
    assert draft.address_type == "IPv4"
    cluster = SliceCluster(SERVICE, by_hand())
    cluster.settle()
    [found] = cluster.found()
    domains = Object.from_dict({**found.to_dict(), "addressType": "FQDN"}).with_metadata(name="web-fqdn", uid="fqdn")
    cluster.put(domains)
    assert cluster.settle() == ["DELETED"]
    assert cluster.found() == [found]


def test_nothing_is_created_for_endpoints_that_are_being_deleted() -> None:
    deleted = by_hand().with_metadata(deletion_timestamp=DELETED, finalizers=["example.com/hold"])
    assert SliceCluster(SERVICE, deleted).settle() == []


def test_a_creation_in_a_terminating_namespace_is_not_retried() -> None:
    cluster = SliceCluster(a_namespace(phase="Terminating"), SERVICE, by_hand())
    assert cluster.settle() == []
    assert cluster.mirroring.queue.next_ready_in() is None


def test_endpoints_of_services_with_selectors_are_not_enqueued() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(by_hand())
    cluster.follow()
    assert not cluster.mirroring.process_next(timeout=0)


def test_own_writes_do_not_enqueue_the_endpoints() -> None:
    cluster = SliceCluster(SERVICE, by_hand("203.0.113.1", "2001:db8::1"))
    while not cluster.found():
        cluster.follow()
        assert cluster.mirroring.process_next(timeout=0)
    cluster.follow()
    assert not cluster.mirroring.process_next(timeout=0)


_histories = st.lists(
    st.one_of(
        st.builds(
            by_hand,
            st.sampled_from(["203.0.113.1", "2001:db8::1"]),
            st.sampled_from(["203.0.113.2", "2001:db8::2"]),
            labels=st.sampled_from([{}, {"a": "b"}, SKIP]),
        ),
        st.sampled_from([SERVICE, a_service(), by_hand(), endpoints(labels={})]),
    ),
    max_size=10,
)


@settings(max_examples=40, deadline=None)
@given(_histories, st.lists(st.integers(0, 3), min_size=10, max_size=10))
def test_slow_caches_reach_the_same_end_state(history: list[Object], steps: list[int]) -> None:
    cluster = SliceCluster()
    for change, count in zip(history, steps, strict=False):
        cluster.put(change)
        cluster.informers.step(limit=count)
        cluster.mirroring.process_next(timeout=0)
    cluster.settle()
    while (wait := cluster.mirroring.queue.next_ready_in()) is not None:
        cluster.clock.step(wait)
        cluster.settle()
    afresh = SliceCluster(*{change.resource: change for change in history}.values())
    afresh.settle()
    assert slice_summaries(cluster) == slice_summaries(afresh)
    assert SliceCluster(log=cluster.log).settle() == []


def slice_summaries(cluster: SliceCluster) -> list[tuple[str, str, Any]]:
    slices = [obj.to_dict() for obj in cluster.found(manager=MANAGER)]
    return sorted((each["addressType"], str(each["endpoints"]), str(each["metadata"]["labels"])) for each in slices)


def test_names_of_services_and_namespaces_are_not_confused() -> None:
    cluster = SliceCluster(SERVICE, a_namespace("other"), by_hand(namespace="other"))
    assert cluster.settle() == []
    cluster.put(a_service(selects_nothing=True, namespace="other"))
    assert cluster.settle() == ["ADDED"]
    assert cluster.log.get(ENDPOINT_SLICES, Key("other", cluster.found()[0].name)) is not None
