from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.persistentvolume_protection import controller as volumes_controller
from ctrlmgr.controllers.persistentvolumeclaim_protection import controller as claims_controller
from ctrlmgr.controllers.volumeattributesclass_protection import controller as classes_controller
from ctrlmgr.manager import Controller
from tests.controllers.workloads.stage import MERGE, WorkloadStage

CLAIMS = "persistentvolumeclaims"
VOLUME = "/api/v1/persistentvolumes/disk"


def claim_protection(stage: WorkloadStage) -> Controller:
    return claims_controller.build(stage.context, NoOptions())


def volume_protection(stage: WorkloadStage) -> Controller:
    return volumes_controller.build(stage.context, NoOptions())


def class_protection(stage: WorkloadStage) -> Controller:
    return classes_controller.build(stage.context, NoOptions())


@pytest.fixture
def stage() -> WorkloadStage:
    return WorkloadStage(claim_protection, volume_protection, class_protection)


def claim(name: str = "data", **metadata: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    head = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    return {**head, "metadata": {"name": name, **metadata}, "spec": spec}


def pod(volume: dict[str, Any], name: str = "db") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "registry.example/app:1"}], "volumes": [{"name": "v", **volume}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec}


DATA = {"persistentVolumeClaim": {"claimName": "data"}}
SCRATCH: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}


def is_there(stage: WorkloadStage, name: str = "data") -> bool:
    return stage.send("GET", stage.path(CLAIMS, name)).code == 200


def test_an_unused_claim_is_deleted_at_once(stage: WorkloadStage) -> None:
    stage.create(CLAIMS, claim())
    stage.create("pods", pod({"persistentVolumeClaim": {"claimName": "other"}}))
    stage.work()
    stage.delete(CLAIMS, "data")
    assert is_there(stage)
    stage.work()
    assert not is_there(stage)


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_claim_is_kept_while_a_scheduled_pod_uses_it(stage: WorkloadStage, phase: str) -> None:
    stage.create(CLAIMS, claim())
    stage.report(stage.create("pods", pod(DATA)), phase)
    stage.delete(CLAIMS, "data")
    stage.work()
    assert is_there(stage)
    stage.delete("pods", "db", gracePeriodSeconds=0)
    stage.work()
    assert not is_there(stage)


def test_a_pod_without_a_node_does_not_keep_a_claim(stage: WorkloadStage) -> None:
    stage.create(CLAIMS, claim())
    stage.create("pods", pod(DATA))
    stage.delete(CLAIMS, "data")
    stage.work()
    assert not is_there(stage)


@pytest.mark.parametrize("owned", [True, False])
def test_the_claim_of_an_ephemeral_volume_belongs_to_its_pod(stage: WorkloadStage, owned: bool) -> None:
    created = stage.create("pods", pod(SCRATCH))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "db", "uid": created["metadata"]["uid"], "controller": owned}
    stage.create(CLAIMS, claim("db-v", ownerReferences=[owner]))
    stage.report(created)
    stage.delete(CLAIMS, "db-v")
    stage.work()
    assert is_there(stage, "db-v") == owned
    stage.patch("pods", "db", {"metadata": {"finalizers": ["example.com/slow"]}})
    stage.delete("pods", "db", gracePeriodSeconds=0)
    stage.work()
    assert not is_there(stage, "db-v")


def test_a_removed_finalizer_is_added_again(stage: WorkloadStage) -> None:
    stage.create(CLAIMS, claim())
    stage.patch(CLAIMS, "data", {"metadata": {"finalizers": None}})
    stage.work()
    assert stage.get(CLAIMS, "data")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


@pytest.mark.parametrize(("phase", "stays"), [("Bound", True), ("Available", False), ("Released", False)])
def test_a_volume_is_kept_while_it_is_bound(stage: WorkloadStage, phase: str, stays: bool) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    body = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "disk"}, "spec": spec}
    assert stage.send("POST", "/api/v1/persistentvolumes", body).code == 201
    stage.send("PATCH", f"{VOLUME}/status", {"status": {"phase": phase}}, media_type=MERGE)
    stage.send("DELETE", VOLUME)
    stage.work()
    assert (stage.send("GET", VOLUME).code == 200) == stays
    stage.send("PATCH", f"{VOLUME}/status", {"status": {"phase": "Released"}}, media_type=MERGE)
    stage.work()
    assert stage.send("GET", VOLUME).code == 404


CLASS = "/apis/storage.k8s.io/v1/volumeattributesclasses/gold"


def attributes_class(stage: WorkloadStage) -> None:
    body = {"metadata": {"name": "gold"}, "driverName": "disks.example.com", "parameters": {"iops": "100"}}
    head = {"kind": "VolumeAttributesClass", "apiVersion": "storage.k8s.io/v1"}
    assert stage.send("POST", CLASS.removesuffix("/gold"), {**head, **body}).code == 201
    stage.work()
    assert stage.send("GET", CLASS).body["metadata"]["finalizers"] == ["kubernetes.io/vac-protection"]


def test_an_unused_attributes_class_is_deleted_at_once(stage: WorkloadStage) -> None:
    attributes_class(stage)
    stage.send("DELETE", CLASS)
    assert stage.send("GET", CLASS).code == 200
    stage.work()
    assert stage.send("GET", CLASS).code == 404


@pytest.mark.parametrize(
    "status",
    [
        {"currentVolumeAttributesClassName": "gold"},
        {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold", "status": "Pending"}},
    ],
)
def test_an_attributes_class_is_kept_while_a_claim_has_or_requests_it(
    stage: WorkloadStage, status: dict[str, Any]
) -> None:
    attributes_class(stage)
    stage.create(CLAIMS, claim())
    where = f"{stage.path(CLAIMS, 'data')}/status"
    assert stage.send("PATCH", where, {"status": status}, media_type=MERGE).code == 200
    stage.send("DELETE", CLASS)
    stage.work()
    assert stage.send("GET", CLASS).code == 200
    stage.send("PATCH", where, {"status": dict.fromkeys(status)}, media_type=MERGE)
    stage.work()
    assert stage.send("GET", CLASS).code == 404


def test_an_attributes_class_is_kept_while_a_volume_names_it(stage: WorkloadStage) -> None:
    attributes_class(stage)
    source = {"csi": {"driver": "disks.example.com", "volumeHandle": "1"}, "volumeAttributesClassName": "gold"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **source}
    body = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "disk"}, "spec": spec}
    assert stage.send("POST", "/api/v1/persistentvolumes", body).code == 201
    stage.send("DELETE", CLASS)
    stage.work()
    assert stage.send("GET", CLASS).code == 200
    stage.send("DELETE", VOLUME)
    stage.work()
    assert stage.send("GET", CLASS).code == 404
