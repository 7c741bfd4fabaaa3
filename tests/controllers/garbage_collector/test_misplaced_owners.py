from __future__ import annotations

import pytest

from ctrlmgr.api.object import Object, OwnerReference
from ctrlmgr.controllers.garbage_collector.controller import misplacement
from tests.controllers.garbage_collector.cluster import Cluster, absent

NODE = "/api/v1/nodes/n"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_the_event_names_the_missing_namespace_of_the_owner() -> None:
    head = {"kind": "ConfigMap", "apiVersion": "v1"}
    child = Object.from_dict({**head, "metadata": {"name": "child", "namespace": "a", "uid": "1"}}).at(7)
    reference, *recorded = misplacement(child, OwnerReference("v1", "Secret", "there", "2"))
    assert (reference.kind, reference.namespace, reference.name, reference.uid) == ("ConfigMap", "a", "child", "1")
    assert reference.resource_version == ""
    assert recorded == [
        "Warning",
        "OwnerRefInvalidNamespace",
        'ownerRef [v1/Secret, namespace: a, name: there, uid: 2] does not exist in namespace "a"',
    ]


def test_an_owner_in_another_namespace_is_reported(cluster: Cluster) -> None:
    there = cluster.create("b/there")
    cluster.create("a/child", there)
    cluster.settle()
    assert cluster.recorded.reasons() == ["OwnerRefInvalidNamespace"]
    assert cluster.recorded.events[0][2].endswith(f'name: there, uid: {there["uid"]}] does not exist in namespace "a"')


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param(lambda here, there, node: [here], id="here"),
        pytest.param(lambda here, there, node: [node], id="without a namespace"),
        pytest.param(lambda here, there, node: [absent()], id="nowhere"),
        pytest.param(lambda here, there, node: [absent(kind="Widget")], id="of an unknown kind"),
    ],
)
def test_correct_references_are_not_reported(cluster: Cluster, owners: object) -> None:
    assert callable(owners)
    cluster.create("a/child", *owners(cluster.create("a/here"), cluster.create("b/there"), cluster.create(NODE)))
    cluster.settle()
    assert cluster.recorded.events == []


@pytest.mark.parametrize("wrong", [{"name": "other"}, {"kind": "Secret"}, {"apiVersion": "v2"}])
def test_the_uid_locates_an_owner(cluster: Cluster, wrong: dict[str, str]) -> None:
    cluster.create("a/child", {**cluster.create("b/there"), **wrong})
    cluster.settle()
    assert cluster.recorded.reasons() == ["OwnerRefInvalidNamespace"]


def test_one_reference_per_object_is_reported(cluster: Cluster) -> None:
    cluster.create("a/child", cluster.create("a/here"), cluster.create("b/one"), cluster.create("b/two"))
    cluster.settle()
    [(_, _, message)] = cluster.recorded.events
    assert "name: one" in message


def test_a_reference_added_later_is_reported_once(cluster: Cluster) -> None:
    there = cluster.create("b/there")
    here = cluster.create("a/here")
    cluster.create("a/child", here)
    cluster.settle()
    assert cluster.recorded.events == []
    cluster.patch("a/child", ownerReferences=[here, there])
    cluster.hear()
    cluster.patch("a/child", labels={"x": "y"})
    cluster.hear()
    assert cluster.recorded.reasons() == ["OwnerRefInvalidNamespace"]


def test_a_cluster_scoped_object_cannot_have_a_namespaced_owner(cluster: Cluster) -> None:
    cluster.create(NODE, cluster.create("b/there"))
    cluster.settle()
    [(_, _, message)] = cluster.recorded.events
    assert message.endswith('does not exist in namespace ""')


def test_a_new_process_reports_a_reference_once_in_either_read_order(cluster: Cluster) -> None:
    cluster.create("a/child", cluster.create("b/there"))
    cluster.create("b/child", cluster.create("a/there"))
    cluster.start()
    assert sorted(cluster.recorded.reasons()) == ["OwnerRefInvalidNamespace"] * 2


def test_a_deleted_owner_is_in_no_namespace(cluster: Cluster) -> None:
    there = cluster.create("b/there")
    cluster.settle()
    cluster.delete("b/there")
    cluster.settle()
    cluster.create("a/child", there)
    cluster.settle()
    assert cluster.recorded.events == []
    assert cluster.names() == []
