from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.simulated_csi_resizer.controller import build
from ctrlmgr.controllers.simulated_csi_resizer.decide import with_expanded_file_system
from ctrlmgr.simulation.csi_objects import DRIVER, storage_class
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CLAIMS = "/api/v1/namespaces/a/persistentvolumeclaims"
CLAIM, VOLUME = f"{CLAIMS}/c", "/api/v1/persistentvolumes/v"
RWO = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture
def stage() -> WorkedStage:
    """A claim that is bound to a volume of the simulated driver."""
    found = WorkedStage(lambda stage: build(StageContext(stage), NoOptions()))
    found.namespace("a")
    found.create("/apis/storage.k8s.io/v1/storageclasses", storage_class())
    spec = {"storageClassName": "simulated", "volumeName": "v", **RWO}
    uid = found.create(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})["metadata"]["uid"]
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": "v"},
        "claimRef": {"namespace": "a", "name": "c", "uid": uid},
    }
    found.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": volume})
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    found.patch(f"{CLAIM}/status", {"status": status})
    found.work()
    return found


def body(stage: WorkedStage, path: str = CLAIM) -> dict[str, Any]:
    found: dict[str, Any] = stage.send("GET", path).body
    return found


def test_a_claim_of_the_right_size_is_not_written(stage: WorkedStage) -> None:
    assert stage.written() == []


def test_an_expansion_grows_the_volume_and_waits_for_the_node(stage: WorkedStage) -> None:
    stage.patch(CLAIM, {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    stage.work()
    assert body(stage, VOLUME)["spec"]["capacity"] == {"storage": "2Gi"}
    status = body(stage)["status"]
    assert (status["capacity"], status["allocatedResources"]) == ({"storage": "1Gi"}, {"storage": "2Gi"})
    assert status["allocatedResourceStatuses"] == {"storage": "NodeResizePending"}
    assert [each["type"] for each in status["conditions"]] == ["FileSystemResizePending"]
    writes = len(stage.written())
    stage.pass_by(100)
    assert len(stage.written()) == writes
    found = with_expanded_file_system(body(stage), body(stage, VOLUME))["status"]
    assert (found["capacity"], found["conditions"]) == ({"storage": "2Gi"}, [])
    assert "allocatedResourceStatuses" not in found


def test_an_expansion_while_the_node_expands_continues_to_the_larger_size(stage: WorkedStage) -> None:
    for size in ("2Gi", "3Gi"):
        stage.patch(CLAIM, {"spec": {"resources": {"requests": {"storage": size}}}})
        stage.work()
    assert body(stage, VOLUME)["spec"]["capacity"] == {"storage": "3Gi"}
    assert body(stage)["status"]["allocatedResources"] == {"storage": "3Gi"}


def test_a_class_is_applied_as_soon_as_it_exists(stage: WorkedStage) -> None:
    stage.patch(CLAIM, {"spec": {"volumeAttributesClassName": "fast"}})
    stage.work()
    pending = {"targetVolumeAttributesClassName": "fast", "status": "Pending"}
    assert body(stage)["status"]["modifyVolumeStatus"] == pending
    fast = {"metadata": {"name": "fast"}, "driverName": DRIVER, "parameters": {"iops": "1"}}
    stage.create("/apis/storage.k8s.io/v1/volumeattributesclasses", fast)
    stage.work()
    status = body(stage)["status"]
    assert status["currentVolumeAttributesClassName"] == "fast"
    assert "modifyVolumeStatus" not in status
    assert body(stage, VOLUME)["spec"]["volumeAttributesClassName"] == "fast"
