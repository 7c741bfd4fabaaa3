"""Tests of the endpoints controller when its cache lacks its own writes, or writes of other clients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from ctrlmgr.api.resource import ENDPOINTS, NAMESPACES, SERVICES, Key
from ctrlmgr.controllers.endpoints.controller import EndpointsReconciler
from ctrlmgr.testing.builders import a_pod, a_service, endpoints
from tests.controllers.endpoints.cluster import Cluster, types
from tests.controllers.log_cluster import WEB


def test_unseen_endpoints_of_a_deleted_service_are_deleted() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.follow()
    cluster.delete(SERVICES, WEB)
    assert cluster.controller.process_next(timeout=0)  # the cache does not contain the deletion of the Service yet
    assert cluster.endpoints() is not None
    # now the cache contains the deletion of the Service, but not the creation of its Endpoints
    cluster.informers.step(limit=1)
    assert cluster.controller.process_next(timeout=0)
    assert cluster.endpoints() is None


def test_endpoints_deleted_with_their_service_are_no_error() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    cluster.delete(SERVICES, WEB)
    cluster.informers.step(limit=1)
    cluster.delete(ENDPOINTS, WEB)
    assert cluster.controller.process_next(timeout=0)
    assert cluster.controller.queue.num_requeues(WEB) == 0


def test_a_stale_cache_causes_no_wrong_decision() -> None:
    cluster = Cluster(a_service(), a_pod("p"))
    cluster.follow()
    cluster.put(a_pod("q", ips=["10.0.0.2"]), a_pod("r", ips=["10.0.0.3"]))
    assert cluster.controller.process_next(timeout=0)  # creates the Endpoints; the cache contains only p
    for _ in range(2):  # the cache gets q, then r, but never the Endpoints
        cluster.informers.step(limit=1)
        assert cluster.controller.process_next(timeout=0)
    assert cluster.ready() == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert cluster.controller.queue.num_requeues(WEB) == 0
    assert cluster.settle() == []


def test_a_service_recreated_before_the_deletion_was_observed_gets_new_endpoints() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    before = cluster.endpoints()
    cluster.delete(SERVICES, WEB)
    cluster.put(a_service())
    cluster.informers.step(limit=1)
    assert cluster.controller.process_next(timeout=0)  # deletes the Endpoints
    cluster.informers.step(limit=1)  # the Service exists again, and the cache still contains the Endpoints
    assert cluster.controller.process_next(timeout=0)
    after = cluster.endpoints()
    assert before is not None
    assert after is not None
    assert before.uid != after.uid
    assert cluster.settle() == []


def test_endpoints_held_by_finalizers_follow_the_recreated_service() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.settle()
    found = cluster.endpoints()
    assert found is not None
    cluster.put(found.with_metadata(finalizers=["example.com/hold"]))
    cluster.delete(SERVICES, WEB)
    assert types(cluster.settle()) == ["MODIFIED"]
    cluster.put(a_service(), a_pod(ips=["10.0.0.9"]))
    assert types(cluster.settle()) == ["MODIFIED"]
    assert cluster.ready() == ["10.0.0.9"]


def _they_edit(cluster: Cluster) -> None:
    cluster.put(endpoints(annotations={"mine": "kept"}))


def _they_delete(cluster: Cluster) -> None:
    cluster.delete(ENDPOINTS, WEB)


@pytest.mark.parametrize(
    ("made", "theirs", "written"),
    [
        pytest.param(True, _they_edit, ["MODIFIED"], id="an edit, met with a Conflict"),
        pytest.param(True, _they_delete, ["ADDED"], id="a deletion, met with NotFound"),
        pytest.param(False, _they_edit, ["MODIFIED"], id="a creation, met with AlreadyExists"),
    ],
)
def test_an_unseen_write_of_another_client_is_a_conflict_and_is_retried(
    made: bool, theirs: Callable[[Cluster], None], written: list[str]
) -> None:
    cluster = Cluster(a_service(), a_pod())
    if made:
        cluster.settle()
        cluster.put(a_pod(ready=False))
    cluster.follow()
    theirs(cluster)  # the cache does not contain it
    with capture_logs() as logs:
        assert cluster.controller.process_next(timeout=0)
    assert cluster.controller.queue.num_requeues(WEB) == 1
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("retrying reconcile", "debug")]
    assert "exc_info" not in logs[0]
    cluster.clock.step(1)
    assert types(cluster.settle()) == written
    found = cluster.endpoints()
    assert found is not None
    assert found.annotations.get("mine") == ("kept" if theirs is _they_edit else None)


def test_a_deleted_namespace_causes_no_error_log() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.follow()
    cluster.delete(NAMESPACES, Key("", "default"))
    cluster.delete(SERVICES, WEB)
    cluster.informers.step(limit=1)  # the cache contains the namespace's deletion, but not the Service's
    with capture_logs() as logs:
        assert cluster.controller.process_next(timeout=0)
    assert [(entry["log_level"], "exc_info" in entry) for entry in logs] == [("debug", False)]
    cluster.clock.step(1)
    assert cluster.settle() == []
    assert cluster.controller.queue.next_ready_in() is None


def test_endpoints_created_and_deleted_unseen_are_recreated() -> None:
    cluster = Cluster(a_service(), a_pod())
    cluster.follow()
    assert cluster.controller.process_next(timeout=0)
    cluster.delete(ENDPOINTS, WEB)
    cluster.informers.sync()  # the cache fell behind: it has received neither the creation nor the deletion
    assert types(cluster.settle()) == ["ADDED"]


def test_own_writes_are_remembered_until_the_cache_has_them() -> None:
    cluster = Cluster(*[a_service(f"s-{number}") for number in range(5)], a_pod())
    reconciler = cluster.controller._reconciler
    assert isinstance(reconciler, EndpointsReconciler)
    cluster.follow()
    while cluster.controller.process_next(timeout=0):
        pass
    assert len(reconciler._writes) == 5
    cluster.follow()
    assert len(reconciler._writes) == 0
    for number in range(5):
        cluster.delete(SERVICES, Key("default", f"s-{number}"))
    assert types(cluster.settle()) == ["DELETED"] * 5
    assert len(reconciler._writes) == 0
