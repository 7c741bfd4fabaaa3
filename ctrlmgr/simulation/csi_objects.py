"""The objects of the simulated CSI driver: its storage class, its CSIDriver, and a CSINode for each simulated node.

The objects have the same form as in the registration of drivers by a kubelet (`pkg/volume/csi/nodeinfomanager`) and
`external-provisioner`. A simulated volume belongs to the zone of its node. If the node has no zone, the volume can be
attached to any node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.resource import Resource

DRIVER: Final = "csi.simulate.ctrlmgr.io"
CLASS: Final = "simulated"
ZONE: Final = "topology.kubernetes.io/zone"
SNAPSHOTS: Final = Resource("snapshot.storage.k8s.io", "volumesnapshots")
SNAPSHOT_CONTENTS: Final = Resource("snapshot.storage.k8s.io", "volumesnapshotcontents")
SNAPSHOT_CLASSES: Final = Resource("snapshot.storage.k8s.io", "volumesnapshotclasses")
DEFAULT_SNAPSHOT_CLASS: Final = "snapshot.storage.kubernetes.io/is-default-class"
"""The annotation of the VolumeSnapshotClass for snapshots that name no class."""
VOLUMES_PER_NODE: Final = 127
"""The maximum number of volumes that the driver attaches to a node."""
MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation with which a kubelet delegates attaching to the attach-detach controller."""


def storage_class() -> dict[str, Any]:
    """Return the default storage class of a simulated cluster."""
    return {
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


def snapshot_class() -> dict[str, Any]:
    """Return the default snapshot class of a simulated cluster."""
    return {
        "kind": "VolumeSnapshotClass",
        "apiVersion": f"{SNAPSHOT_CLASSES.group}/v1",
        "metadata": {"name": CLASS, "annotations": {DEFAULT_SNAPSHOT_CLASS: "true"}},
        "driver": DRIVER,
        "deletionPolicy": "Delete",
    }


def csi_driver() -> dict[str, Any]:
    """Return the CSIDriver of the simulated driver."""
    spec = {"attachRequired": True, "podInfoOnMount": False, "fsGroupPolicy": "File"}
    return {"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": DRIVER}, "spec": spec}


def csi_node(name: str, uid: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the CSINode of a node with this name, uid and labels."""
    driver = {
        "name": DRIVER,
        "nodeID": name,
        "topologyKeys": [ZONE] if ZONE in labels else None,
        "allocatable": {"count": VOLUMES_PER_NODE},
    }
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    metadata = {"name": name, "ownerReferences": [owner]}
    return {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "metadata": metadata, "spec": {"drivers": [driver]}}
