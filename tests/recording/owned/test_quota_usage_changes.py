from __future__ import annotations

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.recording.owned.quota_usage_changes import Usage


def quota(revision: int, used: dict[str, str], hard: dict[str, str] | None = None) -> Object:
    status = {"hard": hard or {"pods": "5", "cpu": "1"}, "used": used}
    metadata = {"name": "q", "namespace": "a", "resourceVersion": str(revision)}
    return Object.from_dict({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": metadata, "status": status})


def created(revision: int, namespace: str = "a") -> Object:
    metadata = {"name": f"p{revision}", "namespace": namespace, "resourceVersion": str(revision)}
    return Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})


BEFORE = {"pods": "1", "cpu": "100m"}


@pytest.mark.parametrize(
    ("used", "hard", "is_theirs"),
    [
        ({"pods": "2", "cpu": "100m"}, None, True),
        ({"pods": "2", "cpu": "0.2"}, None, True),
        ({"pods": "1", "cpu": "0.1"}, None, False),
        ({"pods": "0", "cpu": "100m"}, None, False),
        ({"pods": "2", "cpu": "50m"}, None, False),
        ({"pods": "2"}, None, False),
        ({"pods": "2", "cpu": "100m"}, {"pods": "9", "cpu": "1"}, False),
    ],
)
def test_an_increase_is_caused_by_a_creation(
    used: dict[str, str], hard: dict[str, str] | None, is_theirs: bool
) -> None:
    usage = Usage()
    usage.created(created(9), is_theirs=True)
    assert usage.is_of_theirs(quota(8, BEFORE), quota(10, used, hard)) is is_theirs


@pytest.mark.parametrize(("revision", "is_theirs"), [(11, True), (14, True), (18, False), (19, False), (21, True)])
def test_the_increase_belongs_to_the_closest_creation(revision: int, is_theirs: bool) -> None:
    usage = Usage()
    usage.created(created(10), is_theirs=True)
    usage.created(created(12, "b"), is_theirs=False)
    usage.created(created(15), is_theirs=True)
    usage.created(created(17), is_theirs=False)
    usage.created(created(22), is_theirs=True)
    after = quota(revision, {"pods": "2", "cpu": "100m"})
    assert usage.is_of_theirs(quota(revision - 1, BEFORE), after) is is_theirs


@pytest.mark.parametrize(
    ("name", "kind", "is_theirs"),
    [
        ("requests.cpu", "Pod", True),
        ("limits.memory", "Pod", True),
        ("count/pods", "Pod", True),
        ("persistentvolumeclaims", "PersistentVolumeClaim", True),
        ("gold.storageclass.storage.k8s.io/requests.storage", "PersistentVolumeClaim", True),
        ("requests.storage", "Pod", False),
        ("replicationcontrollers", "ReplicationController", True),
        ("count/jobs.batch", "Pod", False),
    ],
)
def test_the_creation_has_a_counted_kind(name: str, kind: str, is_theirs: bool) -> None:
    usage = Usage()
    metadata = {"name": "x", "namespace": "a", "resourceVersion": "9"}
    usage.created(Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": metadata}), is_theirs=True)
    assert usage.is_of_theirs(quota(8, {name: "1"}), quota(10, {name: "2"})) is is_theirs


def test_an_increase_without_a_creation_is_an_input() -> None:
    assert not Usage().is_of_theirs(quota(1, BEFORE), quota(2, {"pods": "2", "cpu": "100m"}))
