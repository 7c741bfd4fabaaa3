"""The annotations, phases and plugins of volume binding.

Source: `k8s.io/component-helpers/storage/volume`, `k8s.io/csi-translation-lib/plugins`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation that marks a claim that was bound to its volume before."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""The annotation that marks a claim or a volume whose reference to the other object was set by the controller. If the
user set the reference, the object lacks the annotation.
"""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
PROVISIONERS: Final = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)

AVAILABLE, BOUND, RELEASED, FAILED = "Available", "Bound", "Released", "Failed"
PENDING, LOST = "Pending", "Lost"

IN_TREE: Final = "kubernetes.io/"
HOST_PATH: Final = "kubernetes.io/host-path"
"""The in-tree plugin of volumes of type `hostPath`."""
MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI driver that replaced each in-tree plugin."""
SOURCES: Final[Mapping[str, str]] = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}
"""The in-tree plugin of each volume source."""
ELSEWHERE: Final = frozenset({"csi", *SOURCES})
"""The volume sources of which an external driver deletes the volumes."""


def class_of(obj: Mapping[str, Any]) -> str:
    """Return the storage class of a claim or a volume; empty if the object has no class."""
    annotations = obj["metadata"].get("annotations") or {}
    if BETA_CLASS in annotations:
        return str(annotations[BETA_CLASS])
    return obj["spec"].get("storageClassName") or ""


def names_class(claim: Mapping[str, Any]) -> bool:
    """Return whether a claim sets its storage class; an empty class name also counts as set."""
    annotations = claim["metadata"].get("annotations") or {}
    return BETA_CLASS in annotations or claim["spec"].get("storageClassName") is not None


def annotation(obj: Mapping[str, Any], name: str) -> str | None:
    """Return the value of an annotation; None if the annotation is missing."""
    found: str | None = (obj["metadata"].get("annotations") or {}).get(name)
    return found
