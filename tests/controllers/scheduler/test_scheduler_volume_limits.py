"""Tests of the limits of CSINodes for attached volumes, and of the features that nodes declare."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.engine.features import gates
from ctrlmgr.scheduling.declared_features import RESTARTS_ALL, UNSATISFIED
from ctrlmgr.scheduling.volume_limits import EXCEEDED
from tests.controllers.scheduler.test_scheduler import Scene

STORAGE = "/apis/storage.k8s.io/v1"
DRIVER = "csi.example.com"
CLAIMS = "/api/v1/namespaces/a/persistentvolumeclaims"
ATTACHMENT = {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": "left"}}


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.node("n", cpu="8")
    limited(scene, 1)
    return scene


def limited(scene: Scene, count: int) -> None:
    driver = {"name": DRIVER, "nodeID": "n", "topologyKeys": [], "allocatable": {"count": count}}
    scene.stage.create(f"{STORAGE}/csinodes", {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}})


def volume(scene: Scene, name: str) -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "csi": {"driver": DRIVER, "volumeHandle": name},
    }
    scene.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})


def claim(scene: Scene, name: str) -> dict[str, Any]:
    volume(scene, name)
    metadata = {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec = {
        "volumeName": name,
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    scene.stage.create(CLAIMS, {"metadata": metadata, "spec": spec})
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def test_the_limit_of_the_driver_limits_the_volumes_of_a_node(scene: Scene) -> None:
    one, two = claim(scene, "one"), claim(scene, "two")
    scene.pod("p", volumes=[one])
    scene.pod("q", volumes=[one])
    scene.pod("r", volumes=[two])
    assert scene.places() == {"p": "n", "q": "n", "r": ""}
    assert scene.told("FailedScheduling")[0].startswith(f"0/1 nodes are available: 1 {EXCEEDED}. ")
    scene.stage.delete(f"{STORAGE}/csinodes/n")
    limited(scene, 2)
    scene.stage.pass_by(1)
    assert scene.places()["r"] == "n"


def test_a_volume_that_is_still_attached_counts_until_it_is_detached(scene: Scene) -> None:
    volume(scene, "left")
    scene.stage.create(f"{STORAGE}/volumeattachments", {"metadata": {"name": "x"}, "spec": ATTACHMENT})
    scene.pod("p", volumes=[claim(scene, "one")])
    assert scene.places() == {"p": ""}
    scene.stage.delete(f"{STORAGE}/volumeattachments/x")
    scene.stage.pass_by(1)
    assert scene.places() == {"p": "n"}


def test_a_claim_without_a_volume_counts_for_the_driver_of_its_class(scene: Scene) -> None:
    scene.stage.create(
        f"{STORAGE}/storageclasses",
        {"metadata": {"name": "c"}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"},
    )
    scene.pod("p", volumes=[claim(scene, "one")])
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "c",
    }
    scene.stage.create(CLAIMS, {"metadata": {"name": "new"}, "spec": spec})
    scene.pod("q", volumes=[{"name": "new", "persistentVolumeClaim": {"claimName": "new"}}])
    assert scene.places() == {"p": "n", "q": ""}
    assert EXCEEDED in scene.told("FailedScheduling")[0]


def test_a_pod_is_placed_only_where_its_feature_is_declared() -> None:
    scene = Scene()
    scene.node("old", cpu="8")
    scene.node("new")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    first = {"name": "i", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    scene.pod("p", initContainers=[first])
    assert scene.places() == {"p": ""}
    assert f"2 {UNSATISFIED}" in scene.told("FailedScheduling")[0]
    status = {"status": {"declaredFeatures": [RESTARTS_ALL]}}
    scene.stage.patch("/api/v1/nodes/new/status", status)
    scene.stage.pass_by(1)
    assert scene.places() == {"p": "new"}


def test_without_the_gate_features_are_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gates.ENABLED, "NodeDeclaredFeatures", False)
    scene = Scene()
    scene.node("old")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    first = {"name": "i", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    scene.pod("p", initContainers=[first])
    assert scene.places() == {"p": "old"}
