"""Decides the writes for volumes of in-tree plugins: their CSI drivers, their finalizers, and `hostPath` volumes.

Guarantees, which are the same as in Kubernetes' `pv_controller.go`, `pv_controller_base.go` and `host_path.go`:
- The annotations of a claim or a volume name the CSI driver that replaced its in-tree plugin.
- If an in-tree plugin created a volume with the reclaim policy Delete, the volume has a finalizer until it is deleted.
- With `--enable-hostpath-provisioner`, claims whose class has the provisioner `kubernetes.io/host-path` get a volume of
  type `hostPath`. This controller does not create the directory on any node, because a kubelet creates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from ctrlmgr.controllers.persistentvolume_binder.binder_plans import (
    NORMAL,
    WARNING,
    BinderEvent,
    Fields,
    Plan,
    annotated,
)
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import (
    BOUND_BY_CONTROLLER,
    HOST_PATH,
    IN_TREE,
    MIGRATED,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONERS,
    SELECTED_NODE,
    annotation,
    class_of,
)

FINALIZER: Final = "kubernetes.io/pv-controller"
"""The finalizer of volumes that an in-tree plugin created, with the reclaim policy Delete."""
_EXTERNAL_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"
_CREATED_BY: Final = {"kubernetes.io/createdby": "hostpath-dynamic-provisioner"}


class HostPathLookups(Protocol):
    """The interface of the lookups that the creation of volumes needs."""

    def volume(self, name: str) -> Fields | None:
        """Return the volume with this name; None if the volume does not exist."""

    def node_exists(self, name: str) -> bool:
        """Return whether a node exists."""

    @property
    def provisions_host_path(self) -> bool:
        """Whether the controller creates volumes of type `hostPath`."""


def migrated(obj: Fields, plugin: str | None) -> Fields:
    """Return a copy of a claim or volume annotated with the CSI driver that replaced its in-tree plugin."""
    driver = MIGRATED.get(plugin or "")
    if driver is None or annotation(obj, MIGRATED_TO) == driver:
        return obj
    return annotated(obj, {MIGRATED_TO: driver})


def with_deletion_finalizers(volume: Fields) -> Fields:
    """Return a volume with the finalizers for its plugin and its reclaim policy (`modifyDeletionFinalizers`)."""
    provisioner = annotation(volume, PROVISIONED_BY) or ""
    if not provisioner.startswith(IN_TREE) or volume["metadata"].get("deletionTimestamp"):
        return volume
    held: Sequence[str] = volume["metadata"].get("finalizers") or ()
    if provisioner in MIGRATED:
        return with_finalizers(volume, [each for each in held if each != FINALIZER])
    desired = [each for each in held if each != _EXTERNAL_FINALIZER]
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    if policy == "Delete" and FINALIZER not in desired:
        desired.append(FINALIZER)
    elif policy in ("Retain", "Recycle"):
        desired = [each for each in desired if each != FINALIZER]
    return with_finalizers(volume, desired)


def with_finalizers(volume: Fields, finalizers: Sequence[str]) -> Fields:
    """Return a volume with exactly these finalizers."""
    if [*finalizers] == [*(volume["metadata"].get("finalizers") or ())]:
        return volume
    return {**volume, "metadata": {**volume["metadata"], "finalizers": [*finalizers]}}


def without_deletion_finalizer(volume: Fields) -> Fields:
    """Return a volume without the finalizer that in-tree plugins need."""
    held = volume["metadata"].get("finalizers") or ()
    return with_finalizers(volume, [each for each in held if each != FINALIZER])


# The following functions create volumes of type `hostPath`.


def not_provisioned(message: str, claim: Fields | None = None) -> Plan:
    """Return a plan that only reports why no volume is created; `claim` is the claim's changed state, if it changes."""
    return Plan(claim=claim, events=(BinderEvent(WARNING, "ProvisioningFailed", message),))


def provision_host_path(claim: Fields, storage_class: Fields, lookups: HostPathLookups) -> Plan:
    """Return the writes that create a volume of type `hostPath` for a claim (`provisionClaimOperation`)."""
    if claim["spec"].get("dataSource"):
        return not_provisioned(
            f'plugin "{HOST_PATH}" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource'
        )
    requested = annotated(claim, dict.fromkeys(PROVISIONERS, HOST_PATH))
    name, node = f"pvc-{claim['metadata']['uid']}", annotation(claim, SELECTED_NODE)
    if lookups.volume(name) is not None:
        return Plan(claim=requested)
    if storage_class.get("mountOptions"):
        options = " ".join(storage_class["mountOptions"])
        whose = f'StorageClass "{storage_class["metadata"]["name"]}" has mount options [{options}]'
        return not_provisioned(f"Mount options are not supported by the provisioner but {whose}", requested)
    if not lookups.provisions_host_path:
        problem = f'provisioning in volume plugin "{HOST_PATH}" is disabled'
        return not_provisioned(f"Failed to create provisioner: {problem}", requested)
    if node is not None and not lookups.node_exists(node):
        return not_provisioned(f'Failed to get target node: node "{node}" not found', requested)
    if claim["spec"].get("volumeMode") == "Block":
        problem = f"{HOST_PATH} does not support block volume provisioning"
        message = f'Failed to provision volume with StorageClass "{storage_class["metadata"]["name"]}": {problem}'
        return not_provisioned(message, _rescheduled(requested))
    message = f"Successfully provisioned volume {name} using {HOST_PATH}"
    created = (BinderEvent(NORMAL, "ProvisioningSucceeded", message),)
    return Plan(claim=requested, creates=_host_path_volume(name, claim, storage_class), created_events=created)


def _rescheduled(claim: Fields) -> Fields:
    """Return a claim without a selected node, so that the scheduler selects a node again."""
    annotations = {name: each for name, each in claim["metadata"]["annotations"].items() if name != SELECTED_NODE}
    return {**claim, "metadata": {**claim["metadata"], "annotations": annotations}}


def _host_path_volume(name: str, claim: Fields, storage_class: Fields) -> dict[str, Any]:
    meta, policy = claim["metadata"], storage_class.get("reclaimPolicy") or "Delete"
    return {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "annotations": {**_CREATED_BY, BOUND_BY_CONTROLLER: "yes", PROVISIONED_BY: HOST_PATH},
            "finalizers": [FINALIZER] if policy == "Delete" else [],
        },
        "spec": {
            "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                **{field: meta[field] for field in ("namespace", "name", "uid", "resourceVersion")},
            },
            "hostPath": {"path": f"/tmp/hostpath_pv/{meta['uid']}"},
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": class_of(claim),
        },
    }
