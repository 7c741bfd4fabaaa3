"""The PersistentVolume binder: binds claims to volumes, and reclaims volumes whose claims were deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, SWITCH


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


DESCRIPTOR = ControllerDescriptor(
    name="persistentvolume-binder-controller",
    aliases=("persistentvolume-binder",),
    component="persistentvolume-controller",
    account="persistent-volume-binder",
    does="binds PersistentVolumeClaims to volumes, and updates volumes whose claims were deleted",
    watches=(
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
        Resource("storage.k8s.io", "storageclasses"),
        PODS,
    ),
    builder="ctrlmgr.controllers.persistentvolume_binder.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
