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


class Scene:
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
def scene() -> Scene:
    return Scene()


def test_the_class_and_the_driver_exist_at_the_start_and_keep_changes(scene: Scene) -> None:
    assert (scene.stage.names(CLASSES), scene.stage.names(DRIVERS)) == (["simulated"], [DRIVER])
    path = "/apis/storage.k8s.io/v1/storageclasses/simulated"
    scene.stage.patch(path, {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "false"}}})
    scene.stage.start()
    scene.stage.work()
    assert "false" in scene.stage.send("GET", path).body["metadata"]["annotations"].values()


def test_a_claim_gets_a_volume_in_the_zone_of_the_selected_node(scene: Scene) -> None:
    claim = scene.claim(SELECTED)
    volume = scene.volume()
    assert volume["metadata"]["name"] == f"pvc-{claim['metadata']['uid']}"
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert volume["spec"]["csi"] == {"driver": DRIVER, "volumeHandle": volume["metadata"]["name"], "fsType": "ext4"}
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["a"]}]
    assert "external-provisioner.volume.kubernetes.io/finalizer" in volume["metadata"]["finalizers"]
    assert scene.context.told.reasons() == ["Provisioning", "ProvisioningSucceeded"]


def test_a_claim_without_a_selected_node_or_of_another_driver_gets_no_volume(scene: Scene) -> None:
    scene.claim(ASKS)
    assert scene.stage.names(VOLUMES) == []
    scene.stage.patch(f"{CLAIMS}/c", {"metadata": {"annotations": {**SELECTED, next(iter(ASKS)): "x.example.com"}}})
    scene.stage.work()
    assert scene.stage.names(VOLUMES) == []
    scene.stage.patch(f"{CLAIMS}/c", {"metadata": {"annotations": SELECTED}})
    scene.stage.work()
    assert len(scene.stage.names(VOLUMES)) == 1


def test_an_immediate_class_places_the_volume_in_a_zone_of_the_nodes(scene: Scene) -> None:
    now = {"metadata": {"name": "now"}, "provisioner": DRIVER, "reclaimPolicy": "Retain"}
    scene.stage.create("/apis/storage.k8s.io/v1/storageclasses", now)
    scene.claim(ASKS, storageClassName="now", volumeMode="Block")
    volume = scene.volume()
    assert volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["a"]
    assert "fsType" not in volume["spec"]["csi"]
    assert volume["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_a_selected_node_that_no_longer_exists_is_removed(scene: Scene) -> None:
    scene.claim({**ASKS, "volume.kubernetes.io/selected-node": "gone"})
    assert (
        "volume.kubernetes.io/selected-node"
        not in scene.stage.send("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
    )


def test_provisioning_fails_while_the_node_is_configured_to_fail(scene: Scene) -> None:
    node, phrase = "/api/v1/nodes/node-1", "simulate.ctrlmgr.io/node"
    scene.stage.patch(node, {"metadata": {"annotations": {phrase: "provisioning error"}}})
    scene.claim(SELECTED)
    assert scene.stage.names(VOLUMES) == []
    assert ("Warning", "ProvisioningFailed") in {each[:2] for each in scene.context.told.events}
    scene.stage.patch(node, {"metadata": {"annotations": {phrase: None}}})
    scene.stage.pass_by(300)
    assert len(scene.stage.names(VOLUMES)) == 1


def test_a_released_volume_is_deleted_after_its_detachment(scene: Scene) -> None:
    scene.claim(SELECTED)
    name = scene.volume()["metadata"]["name"]
    source = {"persistentVolumeName": name}
    attachment = {"metadata": {"name": "x"}, "spec": {"attacher": DRIVER, "nodeName": "node-1", "source": source}}
    scene.stage.create("/apis/storage.k8s.io/v1/volumeattachments", attachment)
    scene.stage.patch(VOLUME.format(name), {"metadata": {"finalizers": ["external-attacher/csi-simulate-ctrlmgr-io"]}})
    scene.release(name)
    assert "deletionTimestamp" not in scene.volume()["metadata"]
    scene.stage.delete("/apis/storage.k8s.io/v1/volumeattachments/x")
    scene.stage.work()
    assert scene.stage.names(VOLUMES) == []


def test_a_retained_volume_loses_the_finalizer_and_is_kept(scene: Scene) -> None:
    scene.claim(SELECTED)
    name = scene.volume()["metadata"]["name"]
    scene.stage.patch(VOLUME.format(name), {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})
    scene.release(name)
    assert scene.volume()["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
