"""Tests of the endpoints controller on a log in memory with real caches and a real queue, which
tests run step by step.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES, Key
from ctrlmgr.controllers.endpoints.controller import LEADER, MAX_RETRIES
from ctrlmgr.testing.builders import a_namespace, a_pod, a_service, endpoints
from tests.controllers.endpoints.cluster import Cluster, types
from tests.controllers.log_cluster import WEB


def test_a_new_service_gets_its_endpoints() -> None:
    cluster = Cluster()
    cluster.put(a_pod(), a_service())
    assert types(cluster.settle()) == ["ADDED"]
    assert cluster.ready() == ["10.0.0.1"]


def test_a_pod_that_stops_being_ready_overtakes_waiting_services() -> None:
    others = [a_service(f"other-{number}", selector={"app": "other"}) for number in range(3)]
    cluster = Cluster(a_pod("p"), *others, a_service("web", selector={"app": "web"}))
    cluster.settle()
    cluster.put(*(other.with_metadata(labels={"changed": "yes"}) for other in others))
    cluster.put(a_pod("p", ready=False))
    assert cluster.settle()[0].object.name == "web"


def test_existing_services_are_reconciled_at_the_start() -> None:
    cluster = Cluster(a_pod(), a_service())
    assert types(cluster.settle()) == ["ADDED"]


def test_endpoints_follow_their_pods() -> None:
    cluster = Cluster(a_service())
    cluster.settle()
    cluster.put(a_pod("p", ips=["10.0.0.1"]), a_pod("q", ips=["10.0.0.2"]))
    cluster.settle()
    assert cluster.ready() == ["10.0.0.1", "10.0.0.2"]
    cluster.put(a_pod("p", ips=["10.0.0.1"], ready=False))
    cluster.settle()
    assert cluster.ready() == ["10.0.0.2"]
    cluster.delete(PODS, Key("default", "q"))
    cluster.settle()
    assert cluster.ready() == []


def test_a_pod_with_changed_labels_moves_to_another_service() -> None:
    cluster = Cluster(a_service("web"), a_service("db", selector={"app": "db"}), a_pod("p"))
    cluster.settle()
    cluster.put(a_pod("p", labels={"app": "db"}))
    assert types(cluster.settle()) == ["MODIFIED", "MODIFIED"]
    assert (cluster.ready(WEB), cluster.ready(Key("default", "db"))) == ([], ["10.0.0.1"])


def test_pods_of_other_namespaces_are_ignored() -> None:
    cluster = Cluster(a_service(), a_namespace("other"), a_pod("p", namespace="other"))
    cluster.settle()
    assert cluster.ready() == []


def test_a_service_that_changes_its_selector_gets_other_pods() -> None:
    cluster = Cluster(a_service(), a_pod("p"), a_pod("q", labels={"app": "db"}, ips=["10.0.0.2"]))
    cluster.settle()
    cluster.put(a_service(selector={"app": "db"}))
    cluster.settle()
    assert cluster.ready() == ["10.0.0.2"]


def test_an_empty_selector_selects_every_pod_of_the_namespace() -> None:
    cluster = Cluster(a_service(selector={}), a_pod("p", labels={}))
    cluster.settle()
    cluster.put(a_pod("q", labels={"any": "thing"}, ips=["10.0.0.2"]))
    cluster.settle()
    assert cluster.ready() == ["10.0.0.1", "10.0.0.2"]


def test_a_service_that_loses_its_selector_keeps_its_endpoints() -> None:
    cluster = Cluster(a_service(), a_pod("p"))
    cluster.settle()
    cluster.put(a_service(selects_nothing=True))
    cluster.delete(PODS, Key("default", "p"))
    assert cluster.settle() == []
    assert cluster.ready() == ["10.0.0.1"]


def test_a_service_that_becomes_an_external_name_keeps_its_endpoints() -> None:
    cluster = Cluster(a_service(), a_pod("p"))
    cluster.settle()
    cluster.put(a_service(type="ExternalName", cluster_ip=""))
    assert cluster.settle() == []
    assert cluster.ready() == ["10.0.0.1"]


def test_the_endpoints_of_a_deleted_service_are_deleted() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    assert types(cluster.settle()) == ["DELETED"]
    assert cluster.endpoints() is None


def test_deleted_endpoints_are_recreated_at_once() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.delete(ENDPOINTS, WEB)
    assert types(cluster.settle()) == ["ADDED"]
    assert cluster.ready() == ["10.0.0.1"]


def test_a_clients_edit_is_kept_until_a_pod_changes() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(endpoints(subsets=[{"addresses": [{"ip": "203.0.113.7"}], "ports": [{"port": 1}]}]))
    assert cluster.settle() == []
    cluster.put(a_pod(ips=["10.0.0.9"]))
    assert types(cluster.settle()) == ["MODIFIED"]
    assert cluster.ready() == ["10.0.0.9"]


def test_a_clients_edit_is_kept_until_the_service_changes() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(endpoints())
    cluster.put(a_service(labels={"team": "a"}))
    cluster.settle()
    assert cluster.ready() == ["10.0.0.1"]


def test_a_clients_endpoints_without_a_service_are_kept() -> None:
    cluster = Cluster()
    cluster.put(endpoints("manual"))
    assert cluster.settle() == []


def test_leftovers_are_deleted_at_the_start_except_election_locks() -> None:
    cluster = Cluster(endpoints("orphan"), endpoints("lock", annotations={LEADER: "{}"}))
    assert types(cluster.settle()) == ["DELETED"]
    assert cluster.endpoints(Key("default", "orphan")) is None
    assert cluster.endpoints(Key("default", "lock")) is not None


def test_leftovers_of_existing_services_are_adopted() -> None:
    cluster = Cluster(a_service(), a_pod(), endpoints(labels={}))
    assert types(cluster.settle()) == ["MODIFIED"]
    assert cluster.ready() == ["10.0.0.1"]


def test_a_creation_in_a_terminating_namespace_is_not_retried() -> None:
    cluster = Cluster(a_namespace(phase="Terminating"), a_service(), a_pod())
    assert cluster.settle() == []
    assert cluster.controller.queue.next_ready_in() is None


def test_existing_endpoints_are_updated_in_a_terminating_namespace() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(a_namespace(phase="Terminating"), a_pod(ready=False))
    assert types(cluster.settle()) == ["MODIFIED"]


def test_a_failing_service_is_dropped_after_fifteen_retries() -> None:
    cluster = Cluster(a_service(namespace="nowhere"))  # its namespace does not exist
    attempts = 0
    while (wait := cluster.controller.queue.next_ready_in()) is not None:
        cluster.clock.step(wait)
        attempts += cluster.controller.process_next(timeout=0)
    assert attempts == 1 + MAX_RETRIES


def test_the_trigger_time_is_the_creation_then_the_change_then_none() -> None:
    def trigger_time() -> str | None:
        found = cluster.endpoints()
        assert found is not None
        return found.annotations.get("endpoints.kubernetes.io/last-change-trigger-time")

    cluster = Cluster(a_service(created_at="2026-01-01T00:00:00Z"), a_pod(ready_since="2026-01-01T00:00:05Z"))
    cluster.settle()
    assert trigger_time() == "2026-01-01T00:00:00Z"
    cluster.put(a_pod(ready=False, ready_since="2026-01-01T00:01:00Z"))
    cluster.settle()
    assert trigger_time() == "2026-01-01T00:01:00Z"
    cluster.delete(PODS, Key("default", "pod"))
    cluster.settle()
    assert trigger_time() is None


def test_the_trigger_time_of_a_recreated_service_is_its_creation() -> None:
    cluster = Cluster(a_service())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    cluster.settle()
    cluster.put(a_service())
    cluster.settle()
    found = cluster.endpoints()
    assert found is not None
    assert found.annotations == {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}


def test_changes_of_pods_are_batched_for_the_batch_period() -> None:
    cluster = Cluster(a_service(), batch_period=0.5)
    cluster.settle()
    cluster.put(a_pod("p", ips=["10.0.0.1"]))
    assert cluster.settle() == []
    cluster.clock.step(0.3)
    cluster.put(a_pod("q", ips=["10.0.0.2"]))
    assert cluster.settle() == []
    cluster.clock.step(0.2)
    [event] = cluster.settle()
    assert cluster.ready() == ["10.0.0.1", "10.0.0.2"]
    cause = cluster.log.reconcile(event.reconcile)
    assert cause is not None
    assert len(cause.cause.triggers) == 2
    cluster.clock.step(0.5)
    assert cluster.settle() == []


def test_changes_of_services_do_not_wait_for_the_batch_period() -> None:
    cluster = Cluster(batch_period=0.5)
    cluster.put(a_service())
    assert types(cluster.settle()) == ["ADDED"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(a_pod(phase="Pending"), id="a phase that changes alone"),
        pytest.param(a_pod(labels={"app": "web", "x": "y"}), id="labels that no selector names"),
        pytest.param(a_service(annotations={"note": "x"}), id="an annotation of the service"),
    ],
)
def test_nothing_is_written_for(change: Object) -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.put(change)
    assert cluster.settle() == []


_pod_states = st.builds(
    a_pod,
    st.sampled_from(["p", "q", "r"]),
    labels=st.sampled_from([{"app": "web"}, {"app": "db"}]),
    ready=st.booleans(),
    ips=st.sampled_from([[], ["10.0.0.1"], ["10.0.0.2"]]),
)


@settings(max_examples=30, deadline=None)
@given(st.lists(_pod_states, max_size=12))
def test_reconciling_again_writes_nothing(states: list[Object]) -> None:
    cluster = Cluster(a_service())
    cluster.settle()
    for state in states:
        cluster.put(state)
        cluster.settle()
    followed = cluster.ready()
    cluster.controller.queue.add(WEB)
    assert cluster.settle() == []
    final = {pod.name: pod for pod in states}
    afresh = Cluster(a_service(), *final.values())
    afresh.settle()
    assert afresh.ready() == followed
