"""The ReplicaSet controller: keeps the desired number of pods of each ReplicaSet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ReplicaSet controller."""

    concurrent_replicaset_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of ReplicaSets that are reconciled concurrently.",
            flag="--concurrent-replicaset-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="replicaset-controller",
    aliases=("replicaset",),
    does="creates and deletes pods of ReplicaSets until their number is correct",
    watches=(Resource("apps", "replicasets"), PODS),
    owns=(PODS,),
    replays=True,
    shared_kinds=(Resource("apps", "replicasets"), PODS),
    builder="ctrlmgr.controllers.replicaset.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
