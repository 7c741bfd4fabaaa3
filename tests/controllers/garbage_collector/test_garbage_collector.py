"""Tests of the garbage collector with the real engine: which objects are deleted, kept and not touched, and in which
order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.errors import LogClosed
from ctrlmgr.eventlog import EventType
from tests.controllers.garbage_collector.cluster import Cluster, absent, blocking

NODE = "/api/v1/nodes/n"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def removed_names(cluster: Cluster, since: int) -> list[str]:
    """Return the names of the removed objects, in order."""
    events = cluster.stage.log.events_after(since)
    return [event.key.name for event in events if event.type is EventType.DELETED]


def test_dependents_are_deleted_after_their_owner_generation_by_generation(cluster: Cluster) -> None:
    owner = cluster.create("owner")
    child = cluster.create("child", owner)
    cluster.create("grandchild", child)
    cluster.create("stranger")
    before = cluster.head()
    cluster.settle()
    assert cluster.head() == before  # without work, nothing is written
    cluster.delete("owner")
    cluster.settle()
    assert removed_names(cluster, before) == ["owner", "child", "grandchild"]
    assert cluster.names() == ["stranger"]


def test_dependents_of_all_kinds_and_of_cluster_scoped_owners_are_deleted(cluster: Cluster) -> None:
    node = cluster.create(NODE)
    cluster.create("/apis/coordination.k8s.io/v1/namespaces/b/leases/l", node)
    cluster.create("/api/v1/nodes/m", node)
    cluster.create("a/kept", cluster.create("/api/v1/nodes/other"))
    cluster.delete(NODE)
    cluster.settle()
    assert cluster.get("/apis/coordination.k8s.io/v1/namespaces/b/leases/l") is None
    assert cluster.get("/api/v1/nodes/m") is None
    assert cluster.get("a/kept") is not None


def test_an_owner_can_be_referenced_in_any_served_version(cluster: Cluster) -> None:
    spec = {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    owner = cluster.create("/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/h", spec=spec)
    cluster.create("child", {**owner, "apiVersion": "autoscaling/v1"})
    cluster.settle()
    assert cluster.names() == ["child"]
    cluster.delete("/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/h")
    cluster.settle()
    assert cluster.names() == []


@pytest.mark.parametrize(
    ("owners", "left"),
    [
        pytest.param(lambda here, there: [absent()], [], id="never was"),
        pytest.param(lambda here, there: [{**here, "uid": "another"}], [], id="name taken by another"),
        pytest.param(lambda here, there: [there], [], id="in another namespace"),
        pytest.param(lambda here, there: [{**here, "kind": "Secret"}], [], id="of another kind"),
        pytest.param(lambda here, there: [absent(), here], ["here"], id="one of two is there"),
        pytest.param(lambda here, there: [here, there], ["here"], id="one of two is elsewhere"),
        pytest.param(lambda here, there: [here], ["here"], id="there"),
        pytest.param(lambda here, there: [absent(kind="Widget")], ["gone"], id="of a kind nobody knows"),
        pytest.param(lambda here, there: [absent(), absent("x", kind="Widget")], ["gone", "x"], id="unknown besides"),
        pytest.param(lambda here, there: [absent(apiVersion="v2")], ["gone"], id="of a version nobody serves"),
    ],
)
def test_owners_are_found_by_namespace_and_uid(cluster: Cluster, owners: Callable[..., Any], left: list[str]) -> None:
    here, there = cluster.create("a/here"), cluster.create("b/there")
    cluster.create("a/child", *owners(here, there))
    cluster.settle()
    cluster.pass_by(60)
    assert cluster.names() == (["child", "here"] if left else ["here"])
    if left:
        assert cluster.owners("child") == left
    assert cluster.names("b") == ["there"]


def test_a_cluster_scoped_object_is_never_collected_for_a_namespaced_owner(cluster: Cluster) -> None:
    cluster.create(NODE, absent(), absent("pod", kind="Pod"))
    cluster.settle()
    assert cluster.owners(NODE) == ["gone", "pod"]


def test_recreated_owner_is_not_the_owner(cluster: Cluster) -> None:
    cluster.create("child", cluster.create("owner"))
    cluster.settle()
    cluster.delete("owner")
    cluster.create("owner")
    cluster.settle()
    assert cluster.names() == ["owner"]


def test_an_object_that_changed_after_its_check_is_checked_again(cluster: Cluster) -> None:
    cluster.create("child", cluster.create("owner"))
    cluster.settle()
    cluster.delete("owner")
    cluster.hear()
    cluster.patch("child", ownerReferences=None)  # the collector has not received this change when it deletes
    cluster.process_one()
    cluster.pass_by(1)
    assert cluster.names() == ["child"]


def test_an_object_checked_during_a_sync_is_checked_again(cluster: Cluster) -> None:
    secret = "/api/v1/namespaces/a/secrets/s"
    cluster.create(secret, cluster.create("owner"))
    cluster.delete("owner", "Orphan")
    head = cluster.head()
    cluster.on_change = cluster.process_one
    cluster.informers.sync()  # delivers the event of the owner, and only then that of the secret
    assert cluster.head() == head
    cluster.on_change = lambda: None
    cluster.pass_by(1)
    assert cluster.get("owner") is None
    assert cluster.owners(secret) == []


def test_owner_recreated_unseen_is_not_the_owner(cluster: Cluster) -> None:
    cluster.create("child", cluster.create("owner"))
    cluster.settle()
    cluster.delete("owner")
    cluster.create("owner")
    cluster.informers.sync()  # which receives both as one change
    cluster.settle()
    assert cluster.names() == ["owner"]


def test_owners_added_later_count(cluster: Cluster) -> None:
    cluster.create("child")
    cluster.settle()
    cluster.patch("child", ownerReferences=[absent()])
    cluster.settle()
    assert cluster.names() == []


def test_a_foreground_deletion_ends_with_the_last_blocking_dependent(cluster: Cluster) -> None:
    owner = cluster.create("owner")
    child = cluster.create("child", blocking(owner))
    cluster.create("grandchild", blocking(child))
    cluster.create("held", owner, metadata={"finalizers": ["example.com/hold"]})
    before = cluster.head()
    cluster.delete("owner", "Foreground")
    assert cluster.get("owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.settle()
    assert removed_names(cluster, before) == ["grandchild", "child", "owner"]
    # the deletion was requested, and the test does not wait for its end
    assert cluster.get("held")["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("unblocks", [True, False])
def test_a_dependent_created_during_a_foreground_deletion_is_checked_with_the_next_deletion(
    cluster: Cluster, unblocks: bool
) -> None:
    """This order of events occurs when a StatefulSet's controller creates a deleted ControllerRevision again while pods
    still terminate.
    """
    owner = cluster.create("owner")
    cluster.create("held", blocking(owner), metadata={"finalizers": ["example.com/hold"]})
    cluster.create("revision", blocking(owner))
    cluster.delete("owner", "Foreground")
    cluster.settle()
    cluster.create("revision", blocking(owner))
    cluster.settle()
    assert cluster.names() == ["held", "owner", "revision"]
    cluster.patch("held", **({"ownerReferences": [owner]} if unblocks else {"finalizers": None}))
    cluster.settle()
    assert cluster.names() == (["held"] if unblocks else [])
    assert cluster.get("owner") is None


def test_a_sole_dependent_created_during_a_foreground_deletion_is_deleted_at_once(cluster: Cluster) -> None:
    owner = cluster.create("owner")
    cluster.create("held", blocking(owner), metadata={"finalizers": ["example.com/hold"]})
    cluster.delete("owner", "Foreground")
    cluster.settle()
    cluster.create("late", blocking(owner))
    cluster.settle()
    cluster.patch("held", finalizers=None)
    cluster.create("later", blocking(owner))
    cluster.settle()
    assert cluster.names() == []


def test_a_dependent_that_no_longer_blocks_is_not_awaited(cluster: Cluster) -> None:
    owner = cluster.create("owner")
    cluster.create("held", blocking(owner), metadata={"finalizers": ["example.com/hold"]})
    cluster.delete("owner", "Foreground")
    cluster.settle()
    assert cluster.names() == ["held", "owner"]
    cluster.patch("held", ownerReferences=[owner])
    cluster.settle()
    assert cluster.names() == ["held"]


def test_a_dependent_with_another_owner_drops_the_reference_to_the_deleted_owner(cluster: Cluster) -> None:
    owner, other = cluster.create("owner"), cluster.create("other")
    cluster.create("child", blocking(owner), other)
    cluster.delete("owner", "Foreground")
    cluster.settle()
    assert cluster.names() == ["child", "other"]
    assert cluster.owners("child") == ["other"]


@pytest.mark.parametrize("start", ["x", "y", "z"])
def test_a_circle_is_deleted_in_the_foreground(cluster: Cluster, start: str) -> None:
    owners = {name: cluster.create(name) for name in "xyz"}
    for name, owner in zip("xyz", "zxy", strict=True):
        cluster.patch(name, ownerReferences=[blocking(owners[owner])])
    cluster.settle()
    assert cluster.names() == ["x", "y", "z"]
    cluster.delete(start, "Foreground")
    cluster.settle()
    assert cluster.names() == []


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
def test_an_object_that_owns_itself_is_deleted(cluster: Cluster, propagation: str) -> None:
    cluster.patch("x", ownerReferences=[blocking(cluster.create("x"))])
    cluster.delete("x", propagation)
    cluster.settle()
    cluster.pass_by(60)
    # With a foreground deletion, an object that owns itself blocks itself for ever, as in Kubernetes.
    assert cluster.names() == (["x"] if propagation == "Foreground" else [])


def test_orphans_lose_the_owner_reference(cluster: Cluster) -> None:
    owner, other = cluster.create("owner"), cluster.create("other")
    cluster.create("child", blocking(owner))
    cluster.create("shared", owner, other)
    cluster.delete("owner", "Orphan")
    cluster.settle()
    assert cluster.names() == ["child", "other", "shared"]
    assert cluster.owners("child") == []
    assert cluster.owners("shared") == ["other"]


def test_a_conflicting_orphaning_is_retried(cluster: Cluster) -> None:
    cluster.create("child", cluster.create("owner"))
    cluster.delete("owner", "Orphan")
    cluster.hear()
    cluster.patch("child", labels={"changed": "meanwhile"})
    cluster.process_one()
    assert cluster.names() == ["child", "owner"]
    cluster.pass_by(1)
    assert cluster.names() == ["child"]
    assert cluster.owners("child") == []


@pytest.mark.parametrize(
    ("finalizer", "grandchild"), [("orphan", True), ("foregroundDeletion", False), ("example.com/hold", True)]
)
def test_a_dependent_is_deleted_as_its_finalizers_request(cluster: Cluster, finalizer: str, grandchild: bool) -> None:
    owner = cluster.create("owner")
    child = cluster.create("child", owner, metadata={"finalizers": [finalizer]})
    cluster.create("grandchild", blocking(child))
    cluster.delete("owner")
    cluster.settle()
    assert ("grandchild" in cluster.names()) is grandchild
    assert ("child" in cluster.names()) is (finalizer == "example.com/hold")
    if finalizer == "orphan":
        assert cluster.owners("grandchild") == []


def test_other_finalizers_outlive_the_foreground(cluster: Cluster) -> None:
    cluster.create("held", metadata={"finalizers": ["example.com/hold"]})
    cluster.delete("held", "Foreground")
    cluster.settle()
    assert cluster.get("held")["metadata"]["finalizers"] == ["example.com/hold"]


def test_a_namespace_can_be_an_owner(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/b"
    cluster.delete(path, "Foreground")
    assert cluster.get(path)["metadata"]["finalizers"] == ["foregroundDeletion"]
    cluster.settle()
    left = cluster.get(path)
    assert left["metadata"].get("finalizers") is None
    assert left["spec"]["finalizers"] == ["kubernetes"]  # the namespace controller removes it


def test_a_pod_on_a_node_keeps_its_grace_period(cluster: Cluster) -> None:
    path = "/api/v1/namespaces/a/pods/p"
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    cluster.create(path, cluster.create("owner"), spec=spec)
    cluster.delete("owner")
    cluster.settle()
    assert cluster.get(path)["metadata"]["deletionGracePeriodSeconds"] == 30
    head = cluster.head()
    cluster.pass_by(60)
    assert cluster.head() == head  # a terminating object is not deleted again


def test_a_restarted_collector_finishes_earlier_deletions(cluster: Cluster) -> None:
    owner, waiting, orphaning = (cluster.create(name) for name in ("owner", "waiting", "orphaning"))
    cluster.create("child", owner)
    cluster.create("awaited", blocking(waiting))
    cluster.create("orphan", orphaning)
    cluster.settle()
    cluster.delete("owner")
    cluster.delete("waiting", "Foreground")
    cluster.delete("orphaning", "Orphan")
    cluster.start()
    cluster.settle()
    assert cluster.names() == ["orphan"]
    assert cluster.owners("orphan") == []


def all_at_once(cluster: Cluster) -> None:
    """Delete objects with two owners each, with every propagation policy."""
    for propagation in ("Background", "Foreground", "Orphan"):
        owner = cluster.create(f"owner-{propagation.lower()}")
        for number in (1, 2):
            child = cluster.create(f"{propagation.lower()}-{number}", blocking(owner))
            cluster.create(f"{propagation.lower()}-{number}-child", blocking(child))
    cluster.settle()
    for propagation in ("Background", "Foreground", "Orphan"):
        cluster.delete(f"owner-{propagation.lower()}", propagation)


def test_every_crash_leads_to_the_same_end_state() -> None:
    """If a process crashes before any write of the garbage collector, the next process finishes the work."""
    for writes in range(100):
        cluster = Cluster()
        all_at_once(cluster)
        cluster.lives = writes
        try:
            cluster.settle()
        except LogClosed:
            cluster.start()
            cluster.settle()
        else:
            break
        assert cluster.names() == ["orphan-1", "orphan-1-child", "orphan-2", "orphan-2-child"]
        assert cluster.owners("orphan-1") == cluster.owners("orphan-2") == []
        assert cluster.owners("orphan-1-child") == ["orphan-1"]
    assert writes > 12


def test_a_thousand_dependents_are_one_step_each(cluster: Cluster) -> None:
    owner = cluster.create("owner")
    for number in range(1000):
        cluster.create(f"c{number}", blocking(owner))
    before = cluster.head()
    cluster.delete("owner", "Foreground")
    cluster.settle()
    assert cluster.names() == []
    assert cluster.head() - before <= 1003  # the mark, each dependent, the finalizer, the owner
