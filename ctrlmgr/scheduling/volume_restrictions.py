"""Handles volumes that pods cannot share, and volumes that exist only in some zones.

Source: kube-scheduler's plugins VolumeRestrictions and VolumeZone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ctrlmgr.scheduling.scheduling_view import VolumeView

IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NO_DISK: Final = "node(s) had no available disk"
NO_ZONE: Final = "node(s) had no available volume zone"

_GENERAL: Final[Mapping[str, str]] = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The current name of each former label."""
TOPOLOGY_LABELS: Final = (*_GENERAL, *_GENERAL.values())

Zones = tuple[tuple[str, frozenset[str]], ...]
"""The labels of PersistentVolumes that name a zone or a region. For each label, the value is the set of values that the
node's label of the same name may have.
"""


class Disk(NamedTuple):
    """A disk that a pod's volume names directly. Two pods on one node may use the disk only if both only read it."""

    kind: str
    name: tuple[str, ...]
    monitors: frozenset[str] = frozenset()
    """The monitors of a Ceph disk. Two Ceph disks can be the same disk only if they have a common monitor."""
    is_read_only: bool = False

    def clashes(self, other: Disk) -> bool:
        """Return whether two pods with these disks cannot run on the same node."""
        if (self.kind, self.name) != (other.kind, other.name) or (self.is_read_only and other.is_read_only):
            return False
        return not self.monitors or bool(self.monitors & other.monitors)


def disks_of(volume: VolumeView) -> Iterator[Disk]:
    """Yield the disk of a volume, if the volume is a disk."""
    for kind, name in (("gce_persistent_disk", "pdName"), ("iscsi", "iqn")):
        source: Mapping[str, Any] | None = getattr(volume, kind)
        if source is not None:
            yield Disk(kind, (source.get(name) or "",), is_read_only=bool(source.get("readOnly")))
    # Two pods cannot share this type of disk, even if both only read it.
    if volume.aws_elastic_block_store is not None:
        yield Disk("aws_elastic_block_store", (volume.aws_elastic_block_store.get("volumeID") or "",))
    if volume.rbd is not None:
        image = (volume.rbd.get("pool") or "", volume.rbd.get("image") or "")
        monitors = frozenset(volume.rbd.get("monitors") or ())
        yield Disk("rbd", image, monitors, is_read_only=bool(volume.rbd.get("readOnly")))


def zones_of(labels: Mapping[str, str]) -> Zones:
    """Return the zones and regions of a volume with these labels; the value `a__b` means two zones."""
    found = ((key, labels[key].split("__")) for key in TOPOLOGY_LABELS if key in labels)
    return tuple((key, frozenset(map(str.strip, values))) for key, values in found if all(map(str.strip, values)))


def is_in_zones(zones: Zones, labels: Mapping[str, str]) -> bool:
    """Return whether a node with these labels is in all zones of the volumes.

    A node without zone labels counts as being in all zones.
    """
    if not any(key in labels for key in TOPOLOGY_LABELS):
        return True
    return all(labels.get(key, labels.get(_GENERAL.get(key, key))) in values for key, values in zones)
