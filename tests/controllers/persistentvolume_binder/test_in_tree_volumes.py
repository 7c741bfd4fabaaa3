"""Tests of volumes that in-tree plugins create and delete."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.persistentvolume_binder import Options
from ctrlmgr.controllers.persistentvolume_binder.controller import VOLUMES
from ctrlmgr.controllers.persistentvolume_binder.in_tree_volumes import with_deletion_finalizers
from tests.controllers.persistentvolume_binder.test_volume_binder import Scene

PLUGIN = "kubernetes.io/host-path"
FINALIZER = "kubernetes.io/pv-controller"


def enabled() -> Scene:
    return Scene(Options(enable_hostpath_provisioner=True))


def test_the_provisioner_creates_a_host_path_for_a_claim() -> None:
    scene = enabled()
    scene.storage_class("c", PLUGIN)
    scene.claim("one", "3Gi", accessModes=["ReadWriteMany"])
    claim = scene.asked("one")
    uid = claim["metadata"]["uid"]
    volume = scene.of(f"pvc-{uid}")
    assert claim["status"]["phase"] == "Bound"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == PLUGIN
    assert volume["spec"]["hostPath"]["path"] == f"/tmp/hostpath_pv/{uid}"
    assert (volume["spec"]["capacity"], volume["spec"]["accessModes"]) == ({"storage": "3Gi"}, ["ReadWriteMany"])
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert FINALIZER in volume["metadata"]["finalizers"]
    assert volume["metadata"]["annotations"] == {
        "kubernetes.io/createdby": "hostpath-dynamic-provisioner",
        "pv.kubernetes.io/bound-by-controller": "yes",
        "pv.kubernetes.io/provisioned-by": PLUGIN,
    }
    message = f"Successfully provisioned volume pvc-{uid} using {PLUGIN}"
    assert scene.told() == [("ProvisioningSucceeded", message)]


def test_the_volume_is_deleted_with_its_claim() -> None:
    scene = enabled()
    scene.storage_class("c", PLUGIN)
    scene.claim("one")
    [name] = scene.stage.names(VOLUMES)
    scene.drop_claim("one")
    left = scene.stage.stored(VOLUMES, name)
    assert left is None or (left.is_terminating and FINALIZER not in (left.metadata.finalizers or ()))


@pytest.mark.parametrize(
    ("fields", "claim", "problem"),
    [
        (
            {"mountOptions": ["ro", "soft"]},
            {},
            'Mount options are not supported by the provisioner but StorageClass "c" has mount options [ro soft]',
        ),
        (
            {},
            {"volumeMode": "Block"},
            'Failed to provision volume with StorageClass "c": '
            "kubernetes.io/host-path does not support block volume provisioning",
        ),
        (
            {},
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}},
            'plugin "kubernetes.io/host-path" is not a CSI plugin. Only CSI plugin can provision a claim with a '
            "datasource",
        ),
    ],
)
def test_the_provisioner_refuses_what_host_paths_cannot_do(
    fields: dict[str, Any], claim: dict[str, Any], problem: str
) -> None:
    scene = enabled()
    scene.storage_class("c", PLUGIN, **fields)
    scene.claim("one", **claim)
    assert {*scene.told()} == {("ProvisioningFailed", problem)}
    assert scene.stage.names(VOLUMES) == []


def test_a_selected_node_that_cannot_be_used_is_selected_again() -> None:
    scene = enabled()
    scene.storage_class("c", PLUGIN, volumeBindingMode="WaitForFirstConsumer")
    scene.claim("one", volumeMode="Block")
    selected = "volume.kubernetes.io/selected-node"
    path = "namespaces/a/persistentvolumeclaims/one"
    scene.patch(path, {"metadata": {"annotations": {selected: "n"}}})
    assert scene.told()[-1] == ("ProvisioningFailed", 'Failed to get target node: node "n" not found')
    scene.stage.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    scene.stage.pass_by(15)
    problem = "kubernetes.io/host-path does not support block volume provisioning"
    assert ("ProvisioningFailed", f'Failed to provision volume with StorageClass "c": {problem}') in scene.told()
    assert selected not in scene.asked("one")["metadata"]["annotations"]


def test_the_provisioner_is_off_by_default() -> None:
    scene = Scene()
    scene.storage_class("c", PLUGIN)
    scene.claim("one")
    problem = 'Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled'
    assert {*scene.told()} == {("ProvisioningFailed", problem)}
    assert scene.asked("one")["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("provisioner", "policy", "held", "desired"),
    [
        (PLUGIN, "Delete", ["x"], ["x", FINALIZER]),
        (PLUGIN, "Retain", ["x", FINALIZER], ["x"]),
        (PLUGIN, "Delete", ["external-provisioner.volume.kubernetes.io/finalizer"], [FINALIZER]),
        ("kubernetes.io/gce-pd", "Delete", [FINALIZER, "x"], ["x"]),
        ("d.example.com", "Delete", ["x"], ["x"]),
    ],
)
def test_finalizers_follow_the_plugin_and_the_policy(
    provisioner: str, policy: str, held: list[str], desired: list[str]
) -> None:
    annotations = {"pv.kubernetes.io/provisioned-by": provisioner}
    volume = {
        "metadata": {"name": "v", "annotations": annotations, "finalizers": held},
        "spec": {"persistentVolumeReclaimPolicy": policy},
    }
    assert with_deletion_finalizers(volume)["metadata"]["finalizers"] == desired
