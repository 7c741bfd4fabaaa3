"""Decides which volume is created for a claim, and when a volume is deleted, with pure functions.

Guarantees, those of `external-provisioner` (`sig-storage-lib-external-provisioner/controller`):
- A volume is created for a claim whose annotation names the driver. If the claim's storage class delays the creation
  until a pod needs the claim, the scheduler first selects a node. The volume is then created in the zone of that node.
- If the driver created a volume with the reclaim policy Delete, the volume has a finalizer while its simulated disk
  exists. The disk is deleted when the volume's phase is Released and the volume is attached to no node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import (
    FAILED,
    PROVISIONED_BY,
    PROVISIONERS,
    RELEASED,
    SELECTED_NODE,
    annotation,
    class_of,
)
from ctrlmgr.simulation.csi_objects import DRIVER, ZONE

Fields = Mapping[str, Any]
FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"
ATTACHED: Final = f"external-attacher/{DRIVER.replace('.', '-')}"
"""The finalizer of volumes that the driver's attacher has attached."""
_DELETION_SECRETS: Final = {
    "volume.kubernetes.io/provisioner-deletion-secret-name": "",
    "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
}


class Location(NamedTuple):
    """The alternative topologies from which a volume can be reached; empty if every node can reach the volume."""

    terms: Sequence[Mapping[str, Sequence[str]]] = ()


def volume_name(claim: Fields) -> str:
    """Return the name of the volume of a claim."""
    return f"pvc-{claim['metadata']['uid']}"


def needs_volume(claim: Fields, storage_class: Fields | None) -> bool:
    """Return whether the driver must create a volume for a claim now (`shouldProvision`)."""
    if claim["spec"].get("volumeName") or claim["metadata"].get("deletionTimestamp"):
        return False
    named = annotation(claim, PROVISIONERS[1]) or annotation(claim, PROVISIONERS[0])
    if named != DRIVER or storage_class is None or storage_class.get("provisioner") != DRIVER:
        return False
    is_delayed = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
    return not is_delayed or annotation(claim, SELECTED_NODE) is not None


def location(claim: Fields, storage_class: Fields, node: Mapping[str, str] | None, zones: Iterable[str]) -> Location:
    """Return the location in which a claim's volume is created.

    The argument `node` contains the labels of the selected node; it is None if no node was selected. Without a selected
    node, the volume is created in one of `zones`, the zones of the simulated nodes.
    """
    if node is not None:
        return Location([{ZONE: [node[ZONE]]}] if ZONE in node else ())
    if storage_class.get("allowedTopologies"):
        return Location([_term(each) for each in storage_class["allowedTopologies"]])
    ordered = sorted(set(zones))
    return Location([{ZONE: [ordered[crc32(volume_name(claim).encode()) % len(ordered)]]}] if ordered else ())


def _term(topology: Fields) -> dict[str, Sequence[str]]:
    return {each["key"]: each["values"] for each in topology.get("matchLabelExpressions") or ()}


def new_volume(claim: Fields, storage_class: Fields, where: Location) -> dict[str, Any]:
    """Return the PersistentVolume that the driver creates for a claim."""
    meta, claimed = claim["metadata"], claim["spec"]
    policy = storage_class.get("reclaimPolicy") or "Delete"
    spec: dict[str, Any] = {
        "accessModes": claimed.get("accessModes"),
        "capacity": {"storage": claimed["resources"]["requests"]["storage"]},
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "csi": _source(claim, storage_class),
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": class_of(claim),
        "volumeMode": claimed.get("volumeMode") or "Filesystem",
    }
    optional = {
        "mountOptions": storage_class.get("mountOptions"),
        "nodeAffinity": _affinity(where),
        "volumeAttributesClassName": claimed.get("volumeAttributesClassName"),
    }
    metadata = {
        "name": volume_name(claim),
        "annotations": {PROVISIONED_BY: DRIVER, **_DELETION_SECRETS},
        "finalizers": [FINALIZER] if policy == "Delete" else [],
    }
    spec |= {field: each for field, each in optional.items() if each}
    return {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def _source(claim: Fields, storage_class: Fields) -> dict[str, Any]:
    parameters = storage_class.get("parameters") or {}
    source: dict[str, Any] = {"driver": DRIVER, "volumeHandle": volume_name(claim)}
    if (claim["spec"].get("volumeMode") or "Filesystem") == "Filesystem":
        source["fsType"] = parameters.get("csi.storage.k8s.io/fstype") or "ext4"
    return source


def _affinity(where: Location) -> dict[str, Any] | None:
    if not where.terms:
        return None
    terms = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]} for key, values in each.items()]}
        for each in where.terms
    ]
    return {"required": {"nodeSelectorTerms": terms}}


class Reclaim(NamedTuple):
    """The next write that a volume of the driver needs."""

    deletes: bool = False
    finalizers: Sequence[str] | None = None
    """The finalizers to write; None if they are not changed."""


def reclaim(volume: Fields, *, is_attached: bool) -> Reclaim:
    """Return the next write for a volume; `is_attached` is True if the volume has a VolumeAttachment."""
    if annotation(volume, PROVISIONED_BY) != DRIVER:
        return Reclaim()
    spec, meta = volume["spec"], volume["metadata"]
    held = list(meta.get("finalizers") or ())
    is_released = (volume.get("status") or {}).get("phase") in (RELEASED, FAILED) and not is_attached
    deletes, is_terminating = spec.get("persistentVolumeReclaimPolicy") == "Delete", "deletionTimestamp" in meta
    if deletes and is_released and not is_terminating:
        return Reclaim(deletes=True)
    desired = [each for each in held if each != ATTACHED or is_attached or not is_terminating]
    if deletes and not is_terminating and FINALIZER not in desired:
        desired.append(FINALIZER)
    elif not deletes or (is_terminating and is_released):
        desired = [each for each in desired if each != FINALIZER]
    return Reclaim(finalizers=desired if desired != held else None)
