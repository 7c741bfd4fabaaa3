"""The declarations of the kinds of `storage.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.storage import printers
from ctrlmgr.kinds.storage.csi_driver import CSIDriverStrategy
from ctrlmgr.kinds.storage.csi_node import CSINodeStrategy
from ctrlmgr.kinds.storage.csi_storage_capacity import CSIStorageCapacityStrategy
from ctrlmgr.kinds.storage.storage_classes import StorageClassStrategy, VolumeAttributesClassStrategy
from ctrlmgr.kinds.storage.volume_attachment import VolumeAttachmentStrategy

_V1 = "storage.k8s.io/v1"
_UNUSED = "no driver is called"

KINDS = (
    Declaration(_V1, "CSIDriver", strategy=CSIDriverStrategy(), printer=printers.CSI_DRIVER),
    Declaration(_V1, "CSINode", strategy=CSINodeStrategy(), printer=printers.CSI_NODE),
    Declaration(
        _V1,
        "CSIStorageCapacity",
        strategy=CSIStorageCapacityStrategy(),
        printer=printers.CSI_STORAGE_CAPACITY,
        unused=_UNUSED,
    ),
    Declaration(_V1, "StorageClass", strategy=StorageClassStrategy(), printer=printers.STORAGE_CLASS),
    Declaration(
        _V1,
        "VolumeAttachment",
        strategy=VolumeAttachmentStrategy(),
        printer=printers.VOLUME_ATTACHMENT,
    ),
    Declaration(
        _V1, "VolumeAttributesClass", strategy=VolumeAttributesClassStrategy(), printer=printers.VOLUME_ATTRIBUTES_CLASS
    ),
)
