"""Tests of claims that are created from a snapshot or from another claim."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import CLAIMS, VOLUMES
from ctrlmgr.controllers.simulated_csi_provisioner.data_sources import is_populated, source_problem
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CONTENTS, SNAPSHOTS
from tests.controllers.simulated_csi_provisioner.test_simulated_csi_provisioner import SELECTED, ProvisionerCluster

SNAPSHOT = {"apiGroup": SNAPSHOTS.group, "kind": "VolumeSnapshot", "name": "s"}
CLONE = {"kind": "PersistentVolumeClaim", "name": "old"}
META = {"namespace": "a", "name": "s", "uid": "1"}
READY = {"boundVolumeSnapshotContentName": "k", "readyToUse": True, "restoreSize": "2Gi"}


def claim(source: dict[str, Any], size: str = "2Gi", **spec: Any) -> dict[str, Any]:
    request = {"resources": {"requests": {"storage": size}}, "dataSource": source, **spec}
    return {"metadata": {"namespace": "a", "name": "c"}, "spec": request}


def snapshot(**status: Any) -> dict[str, Any]:
    return {"metadata": META, "status": {**READY, **status}}


def content(**fields: Any) -> dict[str, Any]:
    spec = {"driver": DRIVER, "volumeSnapshotRef": META, "sourceVolumeMode": "Filesystem", **fields.pop("spec", {})}
    return {"metadata": {"name": "k", **fields}, "spec": spec}


def old(phase: str = "Bound", size: str = "2Gi", **metadata: Any) -> dict[str, Any]:
    spec = {"volumeName": "v", "resources": {"requests": {"storage": size}}}
    return {"metadata": {"uid": "1", **metadata}, "spec": spec, "status": {"phase": phase}}


def volume(driver: str = DRIVER, mode: str = "Filesystem") -> dict[str, Any]:
    spec = {"csi": {"driver": driver}, "claimRef": {"uid": "1"}, "volumeMode": mode}
    return {"spec": spec, "status": {"phase": "Bound"}}


MODE = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
CHANGED = "requested volume a/c modifies the mode of the source volume but does not have permission to do so. "


@pytest.mark.parametrize(
    ("asked", "known", "problem"),
    [
        (claim(SNAPSHOT), {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content()}, None),
        (
            claim(SNAPSHOT),
            {},
            'error getting snapshot s from api server: volumesnapshots.snapshot.storage.k8s.io "s" not found',
        ),
        (claim(SNAPSHOT), {SNAPSHOTS: {"metadata": META}}, "snapshot s not bound"),
        (claim(SNAPSHOT), {SNAPSHOTS: snapshot()}, "error getting snapshotcontent k for snapshot s"),
        (
            claim(SNAPSHOT),
            {SNAPSHOTS: snapshot(readyToUse=False), SNAPSHOT_CONTENTS: content()},
            "snapshot s is not Ready",
        ),
        (
            claim(SNAPSHOT),
            {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content(spec={"driver": "x"})},
            "snapshotcontent k for snapshot s is not handled by CSI driver of StorageClass fast",
        ),
        (
            claim(SNAPSHOT),
            {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content(spec={"volumeSnapshotRef": {**META, "uid": "2"}})},
            "snapshotcontent k for snapshot s is bound to a different snapshot",
        ),
        (
            claim(SNAPSHOT, "1Gi"),
            {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content()},
            "requested volume size 1073741824 is less than the size 2147483648 for the source snapshot s",
        ),
        (
            claim(SNAPSHOT, volumeMode="Block"),
            {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content()},
            f"{CHANGED}{MODE} annotation is not present on snapshotcontent k",
        ),
        (
            claim(SNAPSHOT, volumeMode="Block"),
            {SNAPSHOTS: snapshot(), SNAPSHOT_CONTENTS: content(annotations={MODE: "true"})},
            None,
        ),
        (claim(CLONE), {CLAIMS: old(), VOLUMES: volume()}, None),
        (
            claim(CLONE),
            {},
            'error getting PVC old (namespace "a") from api server: persistentvolumeclaim "old" not found',
        ),
        (claim(CLONE), {CLAIMS: old("Pending")}, "the PVC DataSource old must have a status of Bound.  Got Pending"),
        (
            claim(CLONE),
            {CLAIMS: old(deletionTimestamp="2026-01-01T00:00:00Z")},
            "the PVC DataSource old is currently being deleted",
        ),
        (
            claim(CLONE, "1Gi"),
            {CLAIMS: old()},
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, "
            "requested 1073741824 but source is 2147483648",
        ),
        (claim(CLONE), {CLAIMS: old(), VOLUMES: volume("x")}, "claim in dataSource not bound or invalid"),
        (
            claim(CLONE),
            {CLAIMS: old(), VOLUMES: volume(mode="Block")},
            "the source PVC and destination PVCs must have the same volume mode for cloning.  Source is Block, but "
            "new PVC requested Filesystem",
        ),
    ],
)
def test_problems_of_sources(asked: dict[str, Any], known: dict[Resource, dict[str, Any]], problem: str | None) -> None:
    def find(resource: Resource, key: Key) -> dict[str, Any] | None:
        return known.get(resource)

    source = asked["spec"]["dataSource"]
    start = f"error getting handle for DataSource Type {source['kind']} by Name {source['name']}: "
    assert source_problem(asked, "fast", find) == (problem and start + problem)


@pytest.mark.parametrize(("kind", "populated"), [("VolumeSnapshot", False), ("Book", True), (None, False)])
def test_sources_of_other_kinds_are_left_to_populators(kind: str | None, populated: bool) -> None:
    assert is_populated(claim({"kind": kind, "name": "x"} if kind else {})) == populated


def test_a_claim_waits_for_its_source_and_is_then_provisioned() -> None:
    cluster = ProvisionerCluster()
    cluster.claim(SELECTED, dataSource={"kind": "PersistentVolumeClaim", "name": "old"})
    assert cluster.stage.names(VOLUMES) == []
    message = {reason: text for _, reason, text in cluster.context.recorded.events}["ProvisioningFailed"]
    assert message.startswith('failed to provision volume with StorageClass "simulated": error getting handle for')
    path = "/api/v1/namespaces/a/persistentvolumeclaims"
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    made = cluster.stage.create(
        path, {"metadata": {"name": "old"}, "spec": {**request, "storageClassName": "simulated"}}
    )
    reference = {"namespace": "a", "name": "old", "uid": made["metadata"]["uid"]}
    body = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": reference}
    source = {"csi": {"driver": DRIVER, "volumeHandle": "h"}}
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": {**body, **source}})
    for bound in (f"{path}/old/status", "/api/v1/persistentvolumes/v/status"):
        cluster.stage.patch(bound, {"status": {"phase": "Bound"}})
    cluster.stage.pass_by(60)
    assert len(cluster.stage.names(VOLUMES)) == 2
