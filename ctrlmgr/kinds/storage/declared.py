"""What the project knows of each kind of `storage.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.kinds.classes import StorageClassStrategy
from ctrlmgr.kinds.declaration import Declaration
from ctrlmgr.kinds.plain import GuardedStrategy
from ctrlmgr.kinds.storage import printers


class VolumeStrategy(GuardedStrategy):
    """Those that are answered with when they are deleted (Kubernetes `pkg/registry/storage`)."""

    returns_deleted = True


class VolumeAttachmentStrategy(VolumeStrategy):
    """A volume that is attached to a node."""

    status_keeps = METADATA


_V1 = "storage.k8s.io/v1"
_UNUSED = "neither validated nor defaulted; no driver is called"

KINDS = (
    Declaration(_V1, "CSIDriver", strategy=VolumeStrategy(), printer=printers.CSI_DRIVER, unused=_UNUSED),
    Declaration(_V1, "CSINode", strategy=VolumeStrategy(), printer=printers.CSI_NODE, unused=_UNUSED),
    Declaration(
        _V1, "CSIStorageCapacity", strategy=GuardedStrategy(), printer=printers.CSI_STORAGE_CAPACITY, unused=_UNUSED
    ),
    Declaration(_V1, "StorageClass", strategy=StorageClassStrategy(), printer=printers.STORAGE_CLASS),
    Declaration(
        _V1,
        "VolumeAttachment",
        strategy=VolumeAttachmentStrategy(),
        printer=printers.VOLUME_ATTACHMENT,
        unused="neither validated nor defaulted; no volume is attached",
    ),
    Declaration(_V1, "VolumeAttributesClass", strategy=VolumeStrategy(), printer=printers.VOLUME_ATTRIBUTES_CLASS),
)
