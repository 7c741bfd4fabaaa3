"""The attach-detach controller: attaches the volumes of pods to their nodes, and detaches unused volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, SWITCH

_ATTACHMENTS = Resource("storage.k8s.io", "volumeattachments")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the attach-detach controller."""

    attach_detach_reconcile_sync_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which volumes that should be attached are compared with their VolumeAttachments, and "
            "attached again if necessary.",
            flag="--attach-detach-reconcile-sync-period",
            metavar="DURATION",
        ),
    ] = 60.0
    disable_attach_detach_reconcile_sync: Annotated[
        bool,
        SWITCH,
        Setting(
            "Do not attach volumes again whose VolumeAttachment was deleted or is no longer attached.",
            flag="--disable-attach-detach-reconcile-sync",
        ),
    ] = False
    disable_force_detach_on_timeout: Annotated[
        bool,
        SWITCH,
        Setting(
            "Do not force the detachment of volumes from an unready node; the default forces it 6 minutes after "
            "their pods were deleted.",
            flag="--disable-force-detach-on-timeout",
        ),
    ] = False


DESCRIPTOR = ControllerDescriptor(
    name="persistentvolume-attach-detach-controller",
    aliases=("attachdetach",),
    account="attachdetach-controller",
    component="attachdetach-controller",
    does="attaches the CSI volumes of pods to their nodes, and reports them in the statuses of nodes",
    watches=(
        PODS,
        NODES,
        Resource("", "persistentvolumeclaims"),
        Resource("", "persistentvolumes"),
        Resource("storage.k8s.io", "csidrivers"),
        _ATTACHMENTS,
    ),
    owns=(_ATTACHMENTS,),
    replays=True,
    shared_kinds=(
        _ATTACHMENTS,
        NODES,
    ),
    replay_needs=(
        _ATTACHMENTS,
        NODES,
        PODS,
        Resource("", "persistentvolumes"),
        Resource("", "persistentvolumeclaims"),
    ),
    builder="ctrlmgr.controllers.persistentvolume_attach_detach.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
