"""The ReplicaSet controller: keeps the desired number of pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ReplicaSet controller."""

    concurrent_replicaset_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "How many ReplicaSets are reconciled at the same time.",
            flag="--concurrent-replicaset-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="replicaset-controller",
    aliases=("replicaset",),
    does="the pods of ReplicaSets: as many as wanted",
    watches=(Resource("apps", "replicasets"), PODS),
    owns=(PODS,),
    replays=True,
    shared_kinds=(Resource("apps", "replicasets"), PODS),
    builder="ctrlmgr.controllers.replicaset.controller:build",
    options=Options,
)
"""The declaration of this controller."""
