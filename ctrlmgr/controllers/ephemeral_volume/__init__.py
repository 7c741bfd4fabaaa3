"""The ephemeral volume controller: creates the claims of pods' ephemeral volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ephemeral volume controller."""

    concurrent_ephemeralvolume_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of pods with ephemeral volumes that are reconciled concurrently.",
            flag="--concurrent-ephemeralvolume-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="ephemeral-volume-controller",
    aliases=("ephemeral-volume",),
    component="ephemeral_volume",
    does="creates the PersistentVolumeClaims of pods' ephemeral volumes",
    watches=(PODS, Resource("", "persistentvolumeclaims")),
    owns=(Resource("", "persistentvolumeclaims"),),
    replays=True,
    shared_kinds=(Resource("", "persistentvolumeclaims"),),
    replay_needs=(
        Resource("", "persistentvolumeclaims"),
        PODS,
    ),
    builder="ctrlmgr.controllers.ephemeral_volume.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
