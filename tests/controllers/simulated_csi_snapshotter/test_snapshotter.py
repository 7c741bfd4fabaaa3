"""Tests of the snapshotter of the simulated CSI driver."""

from __future__ import annotations

import pytest

from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CLASSES, SNAPSHOT_CONTENTS
from tests.controllers.simulated_csi_snapshotter.snapshot_stage import (
    CLAIMS,
    CLASSES,
    CONTENTS,
    PATHS,
    SnapshotStage,
    content,
)

BOUND = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"


@pytest.fixture
def stage() -> SnapshotStage:
    stage = SnapshotStage()
    stage.define_snapshots()
    stage.volume()
    return stage


def test_without_the_definitions_nothing_is_written() -> None:
    stage = SnapshotStage()
    stage.volume()
    assert stage.names(SNAPSHOT_CLASSES) == []
    assert stage.recorded() == []


def test_the_class_exists_after_its_definition_and_stays_deleted(stage: SnapshotStage) -> None:
    found = stage.read(f"{CLASSES}/simulated")
    assert (found["driver"], found["deletionPolicy"]) == (DRIVER, "Delete")
    stage.delete(f"{CLASSES}/simulated")
    stage.work()
    assert stage.names(SNAPSHOT_CLASSES) == []


def test_a_snapshot_of_a_claim_is_ready(stage: SnapshotStage) -> None:
    snapshot = stage.snapshot()
    name = f"snapcontent-{snapshot['metadata']['uid']}"
    assert snapshot["spec"]["volumeSnapshotClassName"] == "simulated"
    status = snapshot["status"]
    assert (status["boundVolumeSnapshotContentName"], status["readyToUse"]) == (name, True)
    assert status["restoreSize"] == "2Gi"
    found = stage.read(f"{CONTENTS}/{name}")
    assert found["spec"]["source"] == {"volumeHandle": "handle-data"}
    assert found["spec"]["volumeSnapshotRef"]["uid"] == snapshot["metadata"]["uid"]
    assert (found["status"]["restoreSize"], found["status"]["readyToUse"]) == (2 << 30, True)
    assert [(reason, message) for _, reason, message in stage.recorded()] == [
        ("CreatingSnapshot", "Waiting for a snapshot shop/snap to be created by the CSI driver."),
        ("SnapshotCreated", "Snapshot shop/snap was successfully created by the CSI driver."),
        ("SnapshotReady", "Snapshot shop/snap is ready to use."),
    ]


def test_a_snapshot_is_deleted_with_its_content(stage: SnapshotStage) -> None:
    snapshot = stage.snapshot()
    assert BOUND in snapshot["metadata"]["finalizers"]
    stage.delete(f"{PATHS}/snap")
    stage.work()
    assert stage.send("GET", f"{PATHS}/snap").code == 404
    assert stage.names(SNAPSHOT_CONTENTS) == []


def test_a_retained_content_outlives_its_snapshot(stage: SnapshotStage) -> None:
    stage.patch(f"{CLASSES}/simulated", {"deletionPolicy": "Retain"})
    stage.work()
    snapshot = stage.snapshot()
    assert BOUND not in snapshot["metadata"]["finalizers"]
    stage.delete(f"{PATHS}/snap")
    stage.work()
    assert stage.send("GET", f"{PATHS}/snap").code == 404
    [name] = stage.names(SNAPSHOT_CONTENTS)
    stage.delete(f"{CONTENTS}/{name}")
    stage.work()
    assert stage.names(SNAPSHOT_CONTENTS) == []


def test_a_content_of_a_user_is_bound_to_its_snapshot(stage: SnapshotStage) -> None:
    assert "status" not in stage.snapshot(volumeSnapshotContentName="mine")  # another driver may own the content
    stage.create(CONTENTS, content("mine"))
    stage.work()
    snapshot = stage.read(f"{PATHS}/snap")
    assert snapshot["status"]["readyToUse"]
    found = stage.read(f"{CONTENTS}/mine")
    assert found["spec"]["volumeSnapshotRef"]["uid"] == snapshot["metadata"]["uid"]
    assert found["status"]["snapshotHandle"] == "old"


def test_a_content_of_another_snapshot_is_refused(stage: SnapshotStage) -> None:
    reference = {"namespace": "shop", "name": "other", "uid": "x"}
    stage.create(CONTENTS, content("mine", volumeSnapshotRef=reference))
    snapshot = stage.snapshot(volumeSnapshotContentName="mine")
    message = "VolumeSnapshotContent [mine] is bound to a different snapshot"
    assert snapshot["status"]["error"]["message"] == message
    assert ("Warning", "SnapshotContentMisbound", message) in stage.recorded()


def test_a_snapshot_of_another_driver_is_ignored(stage: SnapshotStage) -> None:
    stage.create(CONTENTS, content("mine", driver="d.example.com"))
    snapshot = stage.snapshot(volumeSnapshotContentName="mine")
    assert "status" not in snapshot
    assert "status" not in stage.read(f"{CONTENTS}/mine")


def test_a_snapshot_waits_for_its_claim(stage: SnapshotStage) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    stage.create(CLAIMS, {"metadata": {"name": "later"}, "spec": {**spec, "storageClassName": "simulated"}})
    body = {"source": {"persistentVolumeClaimName": "later"}, "volumeSnapshotClassName": "simulated"}
    kind = {"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot"}
    stage.create(PATHS, {**kind, "metadata": {"name": "snap"}, "spec": body})
    stage.work()
    problem = "the PVC later is not yet bound to a PV, will not attempt to take a snapshot"
    message = stage.read(f"{PATHS}/snap")["status"]["error"]["message"]
    assert message.endswith(f'failed to get input parameters to create snapshot snap: "{problem}"')
    assert ("Warning", "SnapshotContentCreationFailed", message) in stage.recorded()


def test_a_snapshot_from_which_a_claim_is_created_is_not_deleted(stage: SnapshotStage) -> None:
    stage.snapshot()
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "dataSource": source}
    stage.create(CLAIMS, {"metadata": {"name": "new"}, "spec": {**spec, "storageClassName": "simulated"}})
    stage.delete(f"{PATHS}/snap")
    stage.work()
    assert ("Warning", "SnapshotDeletePending", "Snapshot is being used to restore a PVC") in stage.recorded()
    stage.patch(f"{CLAIMS}/new", {"metadata": {"finalizers": None}})
    stage.delete(f"{CLAIMS}/new")
    stage.pass_by(60)
    assert stage.send("GET", f"{PATHS}/snap").code == 404
