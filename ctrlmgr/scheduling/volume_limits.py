"""Limits the number of a CSI driver's volumes that are attached to a node, as kube-scheduler's NodeVolumeLimits does.

The guarantees are those of `pkg/scheduler/framework/plugins/nodevolumelimits` without the feature gate
VolumeLimitScaling. The node's CSINode contains the limits. A volume that several pods of a node use counts once. A
volume whose VolumeAttachment exists also counts once, even if no pod uses the volume any more. Disks of former volume
plugins count for the CSI drivers to which Kubernetes migrates them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.scheduling_view import VolumeView

PLUGIN: Final = "NodeVolumeLimits"
EXCEEDED: Final = "node(s) exceed max volume count"

Attached = Mapping[str, str]
"""The CSI driver of each volume, by the volume's unique name."""

MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
}
"""The CSI driver to which Kubernetes migrates the volumes of each former provisioner."""
NOT_COUNTED: Final = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")
"""The former provisioners that have a CSI driver, but whose volumes do not count."""

_ZONES: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_UNKNOWN: Final = "UNSPECIFIED"


class VolumeName(NamedTuple):
    """The name of a volume in its CSI driver."""

    driver: str
    handle: str

    @property
    def unique(self) -> str:
        """Return the unique name of the volume."""
        return f"{self.driver}/{self.handle}"


class CsiSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 CSIPersistentVolumeSource that this module uses."""

    driver: str = ""
    volume_handle: str = ""


class DiskSources(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PersistentVolumeSource that this module uses."""

    csi: CsiSource | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = msgspec.field(default=None, name="gcePersistentDisk")
    portworx_volume: dict[str, Any] | None = None


def volume_name(source: DiskSources | VolumeView, labels: Mapping[str, str] | None = None) -> VolumeName | None:
    """Return the name of a PersistentVolume or of a pod's volume; None if no CSI driver attaches the volume.

    `labels` are the labels of the PersistentVolume.
    """
    if isinstance(source, DiskSources) and source.csi is not None:
        return VolumeName(source.csi.driver, source.csi.volume_handle)
    if source.aws_elastic_block_store is not None:
        return VolumeName("ebs.csi.aws.com", _aws_handle(source.aws_elastic_block_store.get("volumeID") or ""))
    if source.azure_disk is not None:
        return VolumeName("disk.csi.azure.com", source.azure_disk.get("diskURI") or "")
    if source.cinder is not None:
        return VolumeName("cinder.csi.openstack.org", source.cinder.get("volumeID") or "")
    if source.gce_persistent_disk is not None:
        return VolumeName("pd.csi.storage.gke.io", _gce_handle(source.gce_persistent_disk, labels or {}))
    if source.portworx_volume is not None:
        return VolumeName("pxd.portworx.com", source.portworx_volume.get("volumeID") or "")
    return None


def _aws_handle(volume: str) -> str:
    """Return the id of a disk of AWS, which may be written as a URL with its zone."""
    return urlsplit(volume).path.strip("/") if volume.startswith("aws://") else volume


def _gce_handle(disk: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the name of a GCE disk with its zone or its region.

    The name of a region is the name of a zone without its end.
    """
    zones = next((labels[key] for key in _ZONES if labels.get(key)), "").split("__")
    place = f"zones/{zones[0] or _UNKNOWN}" if len(zones) == 1 else f"regions/{zones[0].rpartition('-')[0]}"
    return f"projects/{_UNKNOWN}/{place}/disks/{disk.get('pdName') or ''}"


@dataclass(frozen=True)
class VolumeLimits:
    """The limits of nodes for the volumes of one pod."""

    volumes: Attached
    """The volumes of the pod."""
    limits: Callable[[str], Mapping[str, int]]
    """Returns the limit of each CSI driver on a node; a driver without a limit is missing."""
    volumes_of: Callable[[PodInfo], Attached]
    """Returns the volumes of a pod that is bound to a node."""
    attachments: Callable[[str], Attached]
    """Returns the volumes of a node's VolumeAttachments."""

    def are_exceeded(self, node: NodeInfo) -> bool:
        """Return whether the node's limits do not allow the pod's volumes."""
        limits = self.limits(node.name)
        if limits.keys().isdisjoint(self.volumes.values()):
            return False
        used = {name: driver for pod in node.pods.values() for name, driver in self.volumes_of(pod).items()}
        new = [driver for name, driver in self.volumes.items() if name not in used]
        present = [*({**self.attachments(node.name), **used}).values()]
        return any(present.count(each) + new.count(each) > limits[each] for each in {*new} & limits.keys())
