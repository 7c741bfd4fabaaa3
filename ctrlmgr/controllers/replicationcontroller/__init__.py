"""The ReplicationController controller, which shares its code with the ReplicaSet controller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ReplicationController controller."""

    concurrent_rc_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of ReplicationControllers that are reconciled concurrently.",
            flag="--concurrent-rc-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="replicationcontroller-controller",
    aliases=("replicationcontroller",),
    component="replication-controller",
    account="replication-controller",
    does="creates and deletes pods of ReplicationControllers until their number is correct",
    watches=(Resource("", "replicationcontrollers"), PODS),
    owns=(PODS,),
    replays=True,
    shared_kinds=(Resource("", "replicationcontrollers"), PODS),
    builder="ctrlmgr.controllers.replicaset.controller:build_for_replication_controllers",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
