"""The `kubectl get` columns of storage.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api import quantity
from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.rows import aged, flag, length, text
from ctrlmgr.engine.tables.table_printer import UNSET, Fields, age, joined, printer


def _storage_class(fields: Fields, ages: Ages) -> list[Any]:
    return [
        fields.get("provisioner", ""),
        fields.get("reclaimPolicy") or "Delete",
        fields.get("volumeBindingMode") or UNSET,
        bool(fields.get("allowVolumeExpansion")),
        age(fields, ages),
    ]


def _tokens(fields: Fields) -> str:
    return joined((each.get("audience", "") for each in at(fields, "spec", "tokenRequests") or ()), UNSET)


STORAGE_CLASS = printer("Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", _storage_class)
VOLUME_ATTRIBUTES_CLASS = printer("DriverName|Age", aged(text("driverName")))
VOLUME_ATTACHMENT = printer(
    "Attacher|PV|Node|Attached:boolean|Age",
    aged(
        text("spec", "attacher"),
        text("spec", "source", "persistentVolumeName"),
        text("spec", "nodeName"),
        flag("status", "attached"),
    ),
)
CSI_NODE = printer("Drivers:integer|Age", aged(length("spec.drivers")))
CSI_DRIVER = printer(
    "AttachRequired:boolean|PodInfoOnMount:boolean|StorageCapacity:boolean|TokenRequests|RequiresRepublish:boolean"
    "|Modes|Age",
    aged(
        flag("spec", "attachRequired", default=True),
        flag("spec", "podInfoOnMount"),
        flag("spec", "storageCapacity"),
        _tokens,
        flag("spec", "requiresRepublish"),
        lambda fields: joined(at(fields, "spec", "volumeLifecycleModes")),
    ),
)
CSI_STORAGE_CAPACITY = printer(
    "StorageClassName|Capacity",
    lambda fields, ages: [
        fields.get("storageClassName", ""),
        quantity.canonical(fields["capacity"]) if fields.get("capacity") else UNSET,
    ],
)
