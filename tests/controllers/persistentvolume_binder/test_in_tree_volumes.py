"""Tests of volumes that in-tree plugins create and delete."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.persistentvolume_binder import Options
from ctrlmgr.controllers.persistentvolume_binder.controller import VOLUMES
from ctrlmgr.controllers.persistentvolume_binder.in_tree_volumes import with_deletion_finalizers
from tests.controllers.persistentvolume_binder.test_volume_binder import BinderCluster

PLUGIN = "kubernetes.io/host-path"
FINALIZER = "kubernetes.io/pv-controller"


def enabled() -> BinderCluster:
    return BinderCluster(Options(enable_hostpath_provisioner=True))


def test_the_provisioner_creates_a_host_path_for_a_claim() -> None:
    cluster = enabled()
    cluster.storage_class("c", PLUGIN)
    cluster.claim("one", "3Gi", accessModes=["ReadWriteMany"])
    claim = cluster.asked("one")
    uid = claim["metadata"]["uid"]
    volume = cluster.of(f"pvc-{uid}")
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
    assert cluster.events() == [("ProvisioningSucceeded", message)]


def test_the_volume_is_deleted_with_its_claim() -> None:
    cluster = enabled()
    cluster.storage_class("c", PLUGIN)
    cluster.claim("one")
    [name] = cluster.stage.names(VOLUMES)
    cluster.drop_claim("one")
    left = cluster.stage.stored(VOLUMES, name)
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
    cluster = enabled()
    cluster.storage_class("c", PLUGIN, **fields)
    cluster.claim("one", **claim)
    assert {*cluster.events()} == {("ProvisioningFailed", problem)}
    assert cluster.stage.names(VOLUMES) == []


def test_a_selected_node_that_cannot_be_used_is_selected_again() -> None:
    cluster = enabled()
    cluster.storage_class("c", PLUGIN, volumeBindingMode="WaitForFirstConsumer")
    cluster.claim("one", volumeMode="Block")
    selected = "volume.kubernetes.io/selected-node"
    path = "namespaces/a/persistentvolumeclaims/one"
    cluster.patch(path, {"metadata": {"annotations": {selected: "n"}}})
    assert cluster.events()[-1] == ("ProvisioningFailed", 'Failed to get target node: node "n" not found')
    cluster.stage.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    cluster.stage.pass_by(15)
    problem = "kubernetes.io/host-path does not support block volume provisioning"
    assert ("ProvisioningFailed", f'Failed to provision volume with StorageClass "c": {problem}') in cluster.events()
    assert selected not in cluster.asked("one")["metadata"]["annotations"]


def test_the_provisioner_is_off_by_default() -> None:
    cluster = BinderCluster()
    cluster.storage_class("c", PLUGIN)
    cluster.claim("one")
    problem = 'Failed to create provisioner: provisioning in volume plugin "kubernetes.io/host-path" is disabled'
    assert {*cluster.events()} == {("ProvisioningFailed", problem)}
    assert cluster.asked("one")["status"]["phase"] == "Pending"


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
