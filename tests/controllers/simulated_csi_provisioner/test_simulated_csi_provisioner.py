from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import DRIVERS, VOLUMES
from ctrlmgr.controllers.simulated_csi_provisioner.controller import CLASSES, build
from ctrlmgr.simulation.csi_objects import DRIVER, ZONE
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

CLAIMS = "/api/v1/namespaces/a/persistentvolumeclaims"
VOLUME = "/api/v1/persistentvolumes/{}"
ASKS = {"volume.kubernetes.io/storage-provisioner": DRIVER}
SELECTED = {**ASKS, "volume.kubernetes.io/selected-node": "node-1"}
RWO = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


class ProvisionerCluster:
    """The provisioner, and a simulated node in the zone `a`."""

    def __init__(self) -> None:
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        labels = {"simulate.ctrlmgr.io/node": "true", ZONE: "a"}
        self.stage.create("/api/v1/nodes", {"metadata": {"name": "node-1", "labels": labels}})
        self.stage.work()

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, NoOptions())

    def claim(self, annotations: dict[str, str], **more: Any) -> dict[str, Any]:
        spec = {"storageClassName": "simulated", **RWO, **more}
        created = self.stage.create(CLAIMS, {"metadata": {"name": "c", "annotations": annotations}, "spec": spec})
        self.stage.work()
        return created

    def volume(self) -> dict[str, Any]:
        (found,) = self.stage.log.snapshot(VOLUMES).objects
        return found.to_dict()

    def release(self, name: str) -> None:
        """Put a volume into the phase Released, as after the deletion of its claim."""
        self.stage.patch(VOLUME.format(name) + "/status", {"status": {"phase": "Released"}})
        self.stage.work()


@pytest.fixture
def cluster() -> ProvisionerCluster:
    return ProvisionerCluster()


def test_the_class_and_the_driver_exist_at_the_start_and_keep_changes(cluster: ProvisionerCluster) -> None:
    assert (cluster.stage.names(CLASSES), cluster.stage.names(DRIVERS)) == (["simulated"], [DRIVER])
    path = "/apis/storage.k8s.io/v1/storageclasses/simulated"
    cluster.stage.patch(path, {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "false"}}})
    cluster.stage.start()
    cluster.stage.work()
    assert "false" in cluster.stage.send("GET", path).body["metadata"]["annotations"].values()


def test_a_claim_gets_a_volume_in_the_zone_of_the_selected_node(cluster: ProvisionerCluster) -> None:
    claim = cluster.claim(SELECTED)
    volume = cluster.volume()
    assert volume["metadata"]["name"] == f"pvc-{claim['metadata']['uid']}"
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert volume["spec"]["csi"] == {"driver": DRIVER, "volumeHandle": volume["metadata"]["name"], "fsType": "ext4"}
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["a"]}]
    assert "external-provisioner.volume.kubernetes.io/finalizer" in volume["metadata"]["finalizers"]
    assert cluster.context.recorded.reasons() == ["Provisioning", "ProvisioningSucceeded"]


def test_a_claim_without_a_selected_node_or_of_another_driver_gets_no_volume(cluster: ProvisionerCluster) -> None:
    cluster.claim(ASKS)
    assert cluster.stage.names(VOLUMES) == []
    cluster.stage.patch(f"{CLAIMS}/c", {"metadata": {"annotations": {**SELECTED, next(iter(ASKS)): "x.example.com"}}})
    cluster.stage.work()
    assert cluster.stage.names(VOLUMES) == []
    cluster.stage.patch(f"{CLAIMS}/c", {"metadata": {"annotations": SELECTED}})
    cluster.stage.work()
    assert len(cluster.stage.names(VOLUMES)) == 1


def test_an_immediate_class_places_the_volume_in_a_zone_of_the_nodes(cluster: ProvisionerCluster) -> None:
    now = {"metadata": {"name": "now"}, "provisioner": DRIVER, "reclaimPolicy": "Retain"}
    cluster.stage.create("/apis/storage.k8s.io/v1/storageclasses", now)
    cluster.claim(ASKS, storageClassName="now", volumeMode="Block")
    volume = cluster.volume()
    assert volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["a"]
    assert "fsType" not in volume["spec"]["csi"]
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_a_selected_node_that_no_longer_exists_is_removed(cluster: ProvisionerCluster) -> None:
    cluster.claim({**ASKS, "volume.kubernetes.io/selected-node": "gone"})
    assert (
        "volume.kubernetes.io/selected-node"
        not in cluster.stage.send("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
    )


def test_provisioning_fails_while_the_node_is_configured_to_fail(cluster: ProvisionerCluster) -> None:
    node, phrase = "/api/v1/nodes/node-1", "simulate.ctrlmgr.io/node"
    cluster.stage.patch(node, {"metadata": {"annotations": {phrase: "provisioning error"}}})
    cluster.claim(SELECTED)
    assert cluster.stage.names(VOLUMES) == []
    assert ("Warning", "ProvisioningFailed") in {each[:2] for each in cluster.context.recorded.events}
    cluster.stage.patch(node, {"metadata": {"annotations": {phrase: None}}})
    cluster.stage.pass_by(300)
    assert len(cluster.stage.names(VOLUMES)) == 1


def test_a_released_volume_is_deleted_after_its_detachment(cluster: ProvisionerCluster) -> None:
    cluster.claim(SELECTED)
    name = cluster.volume()["metadata"]["name"]
    source = {"persistentVolumeName": name}
    attachment = {"metadata": {"name": "x"}, "spec": {"attacher": DRIVER, "nodeName": "node-1", "source": source}}
    cluster.stage.create("/apis/storage.k8s.io/v1/volumeattachments", attachment)
    cluster.stage.patch(
        VOLUME.format(name), {"metadata": {"finalizers": ["external-attacher/csi-simulate-ctrlmgr-io"]}}
    )
    cluster.release(name)
    assert "deletionTimestamp" not in cluster.volume()["metadata"]
    cluster.stage.delete("/apis/storage.k8s.io/v1/volumeattachments/x")
    cluster.stage.work()
    assert cluster.stage.names(VOLUMES) == []


def test_a_retained_volume_loses_the_finalizer_and_is_kept(cluster: ProvisionerCluster) -> None:
    cluster.claim(SELECTED)
    name = cluster.volume()["metadata"]["name"]
    cluster.stage.patch(VOLUME.format(name), {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    cluster.release(name)
    assert cluster.volume()["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
