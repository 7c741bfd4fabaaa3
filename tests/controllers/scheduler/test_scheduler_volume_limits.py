"""Tests of the limits of CSINodes for attached volumes, and of the features that nodes declare."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.features import gates
from ctrlmgr.scheduling.declared_features import RESTARTS_ALL, UNSATISFIED
from ctrlmgr.scheduling.volume_limits import EXCEEDED
from tests.controllers.scheduler.test_scheduler import SchedulerCluster

STORAGE = "/apis/storage.k8s.io/v1"
DRIVER = "csi.example.com"
CLAIMS = "/api/v1/namespaces/a/persistentvolumeclaims"
ATTACHMENT = {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": "left"}}


@pytest.fixture
def cluster() -> SchedulerCluster:
    cluster = SchedulerCluster()
    cluster.node("n", cpu="8")
    limited(cluster, 1)
    return cluster


def limited(cluster: SchedulerCluster, count: int) -> None:
    driver = {"name": DRIVER, "nodeID": "n", "topologyKeys": [], "allocatable": {"count": count}}
    cluster.stage.create(f"{STORAGE}/csinodes", {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}})


def volume(cluster: SchedulerCluster, name: str) -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})


def claim(cluster: SchedulerCluster, name: str) -> dict[str, Any]:
    volume(cluster, name)
    metadata = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {
        "volumeName": name,
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    cluster.stage.create(CLAIMS, {"metadata": metadata, "spec": spec})
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def test_the_limit_of_the_driver_limits_the_volumes_of_a_node(cluster: SchedulerCluster) -> None:
    one, two = claim(cluster, "one"), claim(cluster, "two")
    cluster.pod("p", volumes=[one])
    cluster.pod("q", volumes=[one])
    cluster.pod("r", volumes=[two])
    assert cluster.places() == {"p": "n", "q": "n", "r": ""}
    assert cluster.recorded("FailedScheduling")[0].startswith(f"0/1 nodes are available: 1 {EXCEEDED}. ")
    cluster.stage.delete(f"{STORAGE}/csinodes/n")
    limited(cluster, 2)
    cluster.stage.pass_by(1)
    assert cluster.places()["r"] == "n"


def test_a_volume_that_is_still_attached_counts_until_it_is_detached(cluster: SchedulerCluster) -> None:
    volume(cluster, "left")
    cluster.stage.create(f"{STORAGE}/volumeattachments", {"metadata": {"name": "x"}, "spec": ATTACHMENT})
    cluster.pod("p", volumes=[claim(cluster, "one")])
    assert cluster.places() == {"p": ""}
    cluster.stage.delete(f"{STORAGE}/volumeattachments/x")
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "n"}


def test_a_claim_without_a_volume_counts_for_the_driver_of_its_class(cluster: SchedulerCluster) -> None:
    cluster.stage.create(
        f"{STORAGE}/storageclasses",
        {"metadata": {"name": "c"}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"},
    )
    cluster.pod("p", volumes=[claim(cluster, "one")])
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "c",
    }
    cluster.stage.create(CLAIMS, {"metadata": {"name": "new"}, "spec": spec})
    cluster.pod("q", volumes=[{"name": "new", "persistentVolumeClaim": {"claimName": "new"}}])
    assert cluster.places() == {"p": "n", "q": ""}
    assert EXCEEDED in cluster.recorded("FailedScheduling")[0]


def test_a_pod_is_placed_only_where_its_feature_is_declared() -> None:
    cluster = SchedulerCluster()
    cluster.node("old", cpu="8")
    cluster.node("new")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    first = {"name": "i", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    cluster.pod("p", initContainers=[first])
    assert cluster.places() == {"p": ""}
    assert f"2 {UNSATISFIED}" in cluster.recorded("FailedScheduling")[0]
    status = {"status": {"declaredFeatures": [RESTARTS_ALL]}}
    cluster.stage.patch("/api/v1/nodes/new/status", status)
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "new"}


def test_without_the_gate_features_are_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "NodeDeclaredFeatures", False)
    cluster = SchedulerCluster()
    cluster.node("old")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    first = {"name": "i", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    cluster.pod("p", initContainers=[first])
    assert cluster.places() == {"p": "old"}
