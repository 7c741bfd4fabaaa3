"""The PersistentVolume binder: binds claims to volumes, and reclaims volumes whose claims were deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, SWITCH, TEXT, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the PersistentVolume binder."""

    pvclaimbinder_sync_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which claims and volumes that are neither bound nor available are checked again.",
            flag="--pvclaimbinder-sync-period",
            metavar="DURATION",
        ),
    ] = 15.0
    enable_dynamic_provisioning: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the controller asks the provisioner of a claim's StorageClass to create a volume.",
            flag="--enable-dynamic-provisioning",
            metavar="BOOL",
        ),
    ] = True
    enable_hostpath_provisioner: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the controller creates volumes of type `hostPath` for StorageClasses with the provisioner "
            "`kubernetes.io/host-path`. Each volume exists on one node only.",
            flag="--enable-hostpath-provisioner",
            metavar="BOOL",
        ),
    ] = False
    pv_recycler_pod_template_filepath_hostpath: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the Pod that deletes the content of a `hostPath` volume with the reclaim policy Recycle.",
            flag="--pv-recycler-pod-template-filepath-hostpath",
            metavar="FILE",
        ),
    ] = ""
    pv_recycler_minimum_timeout_hostpath: Annotated[
        int,
        whole(0),
        Setting(
            "The minimum `activeDeadlineSeconds` of a Pod that recycles a `hostPath` volume.",
            flag="--pv-recycler-minimum-timeout-hostpath",
            metavar="SECONDS",
        ),
    ] = 60
    pv_recycler_timeout_increment_hostpath: Annotated[
        int,
        whole(0),
        Setting(
            "The `activeDeadlineSeconds` for each Gi of a `hostPath` volume that a Pod recycles.",
            flag="--pv-recycler-timeout-increment-hostpath",
            metavar="SECONDS",
        ),
    ] = 30
    pv_recycler_pod_template_filepath_nfs: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the Pod that deletes the content of an NFS volume with the reclaim policy Recycle.",
            flag="--pv-recycler-pod-template-filepath-nfs",
            metavar="FILE",
        ),
    ] = ""
    pv_recycler_minimum_timeout_nfs: Annotated[
        int,
        whole(0),
        Setting(
            "The minimum `activeDeadlineSeconds` of a Pod that recycles an NFS volume.",
            flag="--pv-recycler-minimum-timeout-nfs",
            metavar="SECONDS",
        ),
    ] = 300
    pv_recycler_increment_timeout_nfs: Annotated[
        int,
        whole(0),
        Setting(
            "The `activeDeadlineSeconds` for each Gi of an NFS volume that a Pod recycles.",
            flag="--pv-recycler-increment-timeout-nfs",
            metavar="SECONDS",
        ),
    ] = 30


DESCRIPTOR = ControllerDescriptor(
    name="persistentvolume-binder-controller",
    aliases=("persistentvolume-binder",),
    component="persistentvolume-controller",
    account="persistent-volume-binder",
    does="binds PersistentVolumeClaims to volumes, and reclaims volumes whose claims were deleted",
    watches=(
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
        Resource("storage.k8s.io", "storageclasses"),
        PODS,
        NODES,
    ),
    replays=True,
    shared_kinds=(
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
    ),
    replay_needs=(
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
        Resource("storage.k8s.io", "storageclasses"),
    ),
    builder="ctrlmgr.controllers.persistentvolume_binder.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
