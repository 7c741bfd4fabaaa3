"""Tests of the EndpointSlice controller on a log in memory with real caches and a real queue, which tests run step by
step.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, PODS, SERVICES, Key
from ctrlmgr.controllers.endpointslice import Options
from ctrlmgr.controllers.endpointslice.controller import MAX_RETRIES
from ctrlmgr.controllers.endpointslice.slice_objects import MANAGER
from ctrlmgr.testing.builders import a_namespace, a_node, a_pod, a_service, service_port
from tests.controllers.endpointslice.cluster import SliceCluster
from tests.controllers.log_cluster import WEB

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
DELETED = "2026-01-01T00:00:00Z"
CONTROL_PLANE = {"node-role.kubernetes.io/control-plane": ""}
AUTO = {"service.kubernetes.io/topology-mode": "Auto"}


def many_pods(count: int, **options: Any) -> list[Object]:
    return [a_pod(f"p{number:03}", ips=[f"10.0.{number // 250}.{number % 250}"], **options) for number in range(count)]


def test_a_new_service_gets_its_slice() -> None:
    cluster = SliceCluster()
    cluster.put(a_pod(), a_service())
    assert cluster.settle() == ["ADDED"]
    [found] = cluster.found()
    assert found.name.startswith("web-")
    assert len(found.name) == len("web-") + 5
    assert cluster.addresses() == ["10.0.0.1"]


def test_a_service_without_pods_gets_a_placeholder() -> None:
    cluster = SliceCluster(a_service())
    assert cluster.settle() == ["ADDED"]
    assert cluster.addresses() == []


def test_slices_follow_their_pods() -> None:
    cluster = SliceCluster(a_service())
    cluster.settle()
    cluster.put(a_pod("p", ips=["10.0.0.1"]), a_pod("q", ips=["10.0.0.2"]))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == ["10.0.0.1", "10.0.0.2"]
    cluster.put(a_pod("p", ips=["10.0.0.1"], ready=False))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == ["10.0.0.1", "10.0.0.2"]
    cluster.delete(PODS, Key("default", "q"))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == ["10.0.0.1"]


def test_many_pods_fill_slices_and_empty_slices_are_deleted() -> None:
    cluster = SliceCluster(a_service(), *many_pods(250))
    assert cluster.settle() == ["ADDED"] * 3
    assert len(cluster.addresses()) == 250
    for pod in many_pods(100):
        cluster.delete(PODS, pod.key)
    assert cluster.settle() == ["DELETED"]
    assert len(cluster.addresses()) == 150


@pytest.mark.parametrize(
    "service",
    [
        pytest.param(a_service(selects_nothing=True), id="a service without a selector"),
        pytest.param(a_service(type="ExternalName", cluster_ip=""), id="an ExternalName"),
    ],
)
def test_ignored_services_keep_their_slices(service: Object) -> None:
    assert SliceCluster(service, a_pod()).settle() == []
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(service)
    cluster.delete(PODS, Key("default", "pod"))
    assert cluster.settle() == []
    assert cluster.addresses() == ["10.0.0.1"]


def test_the_slices_of_a_deleted_service_are_deleted() -> None:
    cluster = SliceCluster(a_service(families=["IPv4", "IPv6"]), a_pod())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    assert cluster.settle() == ["DELETED", "DELETED"]
    assert cluster.found() == []


def test_orphaned_slices_outlive_their_service() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    [found] = cluster.found()
    cluster.put(found.with_metadata(owner_references=None))
    cluster.delete(SERVICES, WEB)
    assert cluster.settle() == []
    assert cluster.addresses() == ["10.0.0.1"]


def test_slices_of_an_earlier_service_are_replaced() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    cluster.put(a_service().with_metadata(uid="another"))
    assert cluster.settle() == ["ADDED", "DELETED"]
    [found] = cluster.found()
    assert [owner.uid for owner in found.metadata.owner_references or ()] == ["another"]


def test_leftovers_of_a_deleted_service_are_deleted_at_the_start() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    assert SliceCluster(log=cluster.log).settle() == ["DELETED"]


def test_a_new_process_writes_nothing() -> None:
    cluster = SliceCluster(a_service(), *many_pods(120))
    cluster.settle()
    assert SliceCluster(log=cluster.log).settle() == []


def test_nothing_is_created_for_a_service_that_is_being_deleted() -> None:
    service = a_service().with_metadata(deletion_timestamp=DELETED, finalizers=["example.com/hold"])
    cluster = SliceCluster(service, a_pod())
    assert cluster.settle() == []
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(service, a_pod(ready=False))
    assert cluster.settle() == ["MODIFIED"]


def test_a_creation_in_a_terminating_namespace_is_not_retried() -> None:
    cluster = SliceCluster(a_service(), a_pod("p"), a_pod("q", ips=["10.0.0.2"]))
    cluster.settle()
    cluster.put(a_namespace(phase="Terminating"), a_service(families=["IPv4", "IPv6"]), a_pod("p", ready=False))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.slices.queue.next_ready_in() is None


def edited(obj: Object, **fields: Any) -> Object:
    return Object.from_dict({**obj.to_dict(), **fields})


@pytest.mark.parametrize(
    ("edit", "written"),
    [
        pytest.param(lambda obj: edited(obj, endpoints=None), ["MODIFIED"], id="of its endpoints"),
        pytest.param(lambda obj: edited(obj, ports=None), ["MODIFIED"], id="of its ports"),
        pytest.param(lambda obj: obj.with_metadata(labels={**obj.labels, "x": "y"}), ["MODIFIED"], id="of its labels"),
        pytest.param(lambda obj: obj.with_metadata(annotations={"mine": "kept"}), [], id="of its annotations"),
        pytest.param(
            lambda obj: obj.with_metadata(labels={**obj.labels, MANAGED_BY: "me"}), ["ADDED"], id="of its manager"
        ),
        pytest.param(
            lambda obj: obj.with_metadata(labels={**obj.labels, SERVICE_NAME: "other"}), ["ADDED"], id="of its service"
        ),
        pytest.param(lambda obj: obj.with_metadata(labels=None), ["ADDED"], id="of all its labels"),
    ],
)
def test_an_edited_slice_is_restored(edit: Any, written: list[str]) -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    [found] = cluster.found()
    cluster.put(edit(found))
    assert cluster.settle() == written
    [kept] = cluster.found(manager=MANAGER)
    assert (kept.name == found.name) is (written != ["ADDED"])
    assert len(kept.to_dict()["endpoints"]) == 1


def test_a_deleted_slice_is_recreated() -> None:
    cluster = SliceCluster(a_service(), *many_pods(150))
    cluster.settle()
    cluster.delete(ENDPOINT_SLICES, cluster.found()[0].key)
    assert cluster.settle() == ["ADDED"]
    assert len(cluster.addresses()) == 150


def test_a_slice_that_is_being_deleted_is_ignored() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    [found] = cluster.found()
    held = found.with_metadata(deletion_timestamp=DELETED, finalizers=["example.com/hold"])
    cluster.put(held)
    assert cluster.settle() == ["ADDED"]
    assert [obj.name == held.name for obj in cluster.found()].count(True) == 1


def test_slices_of_other_controllers_are_unchanged() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    [found] = cluster.found()
    theirs = found.with_metadata(name="web-theirs", uid="theirs", labels={SERVICE_NAME: "web", MANAGED_BY: "me"})
    cluster.put(edited(theirs, endpoints=None))
    assert cluster.settle() == []
    cluster.delete(SERVICES, WEB)
    assert cluster.settle() == ["DELETED"]
    assert [obj.name for obj in cluster.found()] == ["web-theirs"]


def test_a_pod_on_a_missing_node_is_added_with_the_node() -> None:
    cluster = SliceCluster(a_service(), a_pod(node="late"))
    cluster.settle()
    assert cluster.addresses() == []
    cluster.put(a_node("late", "zone-9"))
    assert cluster.settle() == ["MODIFIED"]
    assert zones(cluster) == ["zone-9"]
    cluster.put(a_node("late", "zone-8"))
    assert cluster.settle() == ["MODIFIED"]
    assert zones(cluster) == ["zone-8"]
    cluster.delete(NODES, Key("", "late"))
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.addresses() == []


def zones(cluster: SliceCluster) -> list[str]:
    return [each.get("zone") for obj in cluster.found() for each in obj.to_dict()["endpoints"] or ()]


def hinted(cluster: SliceCluster) -> list[str]:
    endpoints = [each for obj in cluster.found() for each in obj.to_dict()["endpoints"] or ()]
    return sorted(zone["name"] for each in endpoints for zone in each.get("hints", {}).get("forZones", ()))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(a_node("node-b", "zone-2", ready=False), [], id="only one zone is left"),
        pytest.param(a_node("node-b", "zone-2", cpu=""), [], id="a node does not say how much CPU it has"),
        pytest.param(a_node("node-b", ""), [], id="a node is in no zone"),
        pytest.param(
            a_node("node-b", "zone-2", labels={"node-role.kubernetes.io/control-plane": ""}),
            [],
            id="a node is no worker",
        ),
        pytest.param(
            a_node("node-b", "zone-2", cpu="12"), ["zone-1", "zone-2", "zone-2", "zone-2"], id="a node has more CPU"
        ),
        pytest.param(a_node("node-c", "zone-2", ready=False), ["zone-1"] * 2 + ["zone-2"] * 2, id="a node not ready"),
        pytest.param(a_node("node-b", "zone-2", labels={"x": "y"}), ["zone-1"] * 2 + ["zone-2"] * 2, id="any label"),
    ],
)
def test_hints_by_cpu_follow_the_nodes(change: Object, expected: list[str]) -> None:
    cluster = SliceCluster(a_service(annotations=AUTO), *many_pods(4))
    cluster.settle()
    assert hinted(cluster) == ["zone-1"] * 2 + ["zone-2"] * 2
    cluster.put(change)
    cluster.settle()
    assert hinted(cluster) == expected


def test_changes_of_nodes_enqueue_only_services_with_pods_there() -> None:
    cluster = SliceCluster(a_service(), a_pod(), a_service("db", selector={"app": "db"}))
    cluster.settle()
    cluster.put(a_node("node-b", "zone-7"))
    cluster.follow()
    assert not cluster.slices.process_next(timeout=0)
    cluster.put(a_node("node-a", "zone-7"))
    assert cluster.settle() == ["MODIFIED"]


def test_own_writes_do_not_enqueue_the_service() -> None:
    cluster = SliceCluster(a_service(), *many_pods(250))
    cluster.follow()
    assert cluster.slices.process_next(timeout=0)
    cluster.follow()
    assert not cluster.slices.process_next(timeout=0)
    for pod in many_pods(101):
        cluster.delete(PODS, pod.key)
    cluster.follow()
    assert cluster.slices.process_next(timeout=0)
    cluster.follow()
    assert not cluster.slices.process_next(timeout=0)


def test_a_stale_cache_causes_no_wrong_decision() -> None:
    cluster = SliceCluster(a_service(), a_pod("p"))
    cluster.follow()
    cluster.put(a_pod("q", ips=["10.0.0.2"]))
    assert cluster.slices.process_next(timeout=0)  # creates the slice, without q
    cluster.informers.step(limit=1)  # the cache gets q, but not the slice
    assert cluster.slices.process_next(timeout=0)
    assert len(cluster.found()) == 1
    assert cluster.addresses() == ["10.0.0.1", "10.0.0.2"]
    assert cluster.settle() == []


def test_an_unseen_slice_of_a_deleted_service_is_deleted() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.follow()
    cluster.delete(SERVICES, WEB)
    assert cluster.slices.process_next(timeout=0)  # the cache does not contain the deletion of the Service yet
    # now the cache contains the deletion of the Service, but not the creation of its slice
    cluster.informers.step(limit=1)
    assert cluster.slices.process_next(timeout=0)
    assert cluster.found() == []


def test_a_write_from_a_stale_cache_conflicts_and_is_retried() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(a_pod(ready=False))
    cluster.follow()
    [found] = cluster.found()
    cluster.put(found.with_metadata(annotations={"mine": "kept"}))  # the cache does not contain it
    assert cluster.slices.process_next(timeout=0)
    assert cluster.slices.queue.num_requeues(WEB) == 1
    cluster.clock.step(1)
    assert cluster.settle() == ["MODIFIED"]
    assert cluster.found()[0].annotations == {"mine": "kept"}


def test_a_slice_deleted_unseen_is_retried_without_an_error() -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(a_pod(ready=False))
    cluster.follow()
    cluster.delete(ENDPOINT_SLICES, cluster.found()[0].key)
    assert cluster.slices.process_next(timeout=0)
    assert cluster.slices.queue.num_requeues(WEB) == 1
    cluster.clock.step(1)
    assert cluster.settle() == ["ADDED"]


def test_a_failing_service_is_dropped_after_fifteen_retries() -> None:
    cluster = SliceCluster(a_service(namespace="nowhere"))  # its namespace does not exist
    attempts = 0
    with capture_logs():  # sixteen lines
        while (wait := cluster.slices.queue.next_ready_in()) is not None:
            cluster.clock.step(wait)
            attempts += cluster.slices.process_next(timeout=0)
    assert attempts == 1 + MAX_RETRIES


def test_the_trigger_time_is_the_creation_then_the_change_then_none() -> None:
    def trigger_time() -> str | None:
        [found] = cluster.found()
        return found.annotations.get(TRIGGER_TIME)

    cluster = SliceCluster(a_service(created_at="2026-01-01T00:00:00Z"), a_pod(ready_since="2026-01-01T00:00:05Z"))
    cluster.settle()
    assert trigger_time() == "2026-01-01T00:00:00Z"
    cluster.put(a_pod(ready=False, ready_since="2026-01-01T00:01:00Z"))
    cluster.settle()
    assert trigger_time() == "2026-01-01T00:01:00Z"
    cluster.delete(PODS, Key("default", "pod"))
    cluster.settle()
    assert trigger_time() is None


def test_changes_of_pods_are_batched_for_the_batch_period() -> None:
    cluster = SliceCluster(a_service(), options=Options(endpointslice_updates_batch_period=0.5))
    cluster.settle()
    cluster.put(a_pod("p", ips=["10.0.0.1"]))
    assert cluster.settle() == []
    cluster.clock.step(0.3)
    cluster.put(a_pod("q", ips=["10.0.0.2"]))
    assert cluster.settle() == []
    cluster.clock.step(0.2)
    assert cluster.settle() == ["MODIFIED"]
    cluster.clock.step(0.5)
    assert cluster.settle() == []


def test_a_slice_has_at_most_the_maximum_of_endpoints() -> None:
    pods = [a_pod(f"p{number}", ips=[f"10.0.0.{number}"]) for number in range(1, 6)]
    cluster = SliceCluster(a_service(), *pods, options=Options(max_endpoints_per_slice=2))
    cluster.settle()
    assert sorted(len(each.view(EndpointSlice).endpoints or ()) for each in cluster.found()) == [1, 2, 2]
    assert len(cluster.addresses()) == 5


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(a_pod(labels={"app": "web", "x": "y"}), id="labels that no selector names"),
        pytest.param(a_service(annotations={"note": "x"}), id="an annotation of the service"),
        pytest.param(a_node("node-a", "zone-1", ready=False), id="a node that is no longer ready"),
    ],
)
def test_nothing_is_written_for(change: Object) -> None:
    cluster = SliceCluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(change)
    assert cluster.settle() == []


_changes = st.one_of(
    st.builds(
        a_pod,
        st.sampled_from(["p", "q", "r"]),
        labels=st.sampled_from([{"app": "web"}, {"app": "db"}]),
        ready=st.booleans(),
        ips=st.sampled_from([[], ["10.0.0.1"], ["10.0.0.2", "fd00::2"]]),
        node=st.sampled_from(["node-a", "node-b", "late"]),
    ),
    st.builds(
        a_service,
        families=st.sampled_from([["IPv4"], ["IPv4", "IPv6"]]),
        ports=st.sampled_from([[service_port()], [service_port(target=9090)]]),
        traffic_distribution=st.sampled_from(["", "PreferClose"]),
    ),
    st.builds(a_node, st.just("late"), st.sampled_from(["zone-1", "zone-2"])),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(_changes, st.integers(0, 3)), max_size=12))
def test_slow_caches_reach_the_same_end_state(history: list[tuple[Object, int]]) -> None:
    cluster = SliceCluster(a_service())
    for change, steps in history:
        cluster.put(change)
        cluster.informers.step(limit=steps)
        cluster.slices.process_next(timeout=0)
    cluster.settle()
    while (wait := cluster.slices.queue.next_ready_in()) is not None:
        cluster.clock.step(wait)
        cluster.settle()
    final = {(change.resource, change.name): change for change, _ in [(a_service(), 0), *history]}
    afresh = SliceCluster(*final.values())
    afresh.settle()
    assert slice_summaries(cluster) == slice_summaries(afresh)
    assert SliceCluster(log=cluster.log).settle() == []


def slice_summaries(cluster: SliceCluster) -> list[tuple[str, str, str]]:
    slices = [obj.to_dict() for obj in cluster.found()]
    return sorted(
        (each["addressType"], str(each["ports"]), str(endpoint))
        for each in slices
        for endpoint in each["endpoints"] or [None]
    )
