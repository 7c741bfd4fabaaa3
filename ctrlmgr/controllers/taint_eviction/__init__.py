"""The taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the taint eviction controller."""

    concurrent_taint_evictions: Annotated[
        int, whole(1), Setting("How many pods are driven off tainted nodes at the same time.")
    ] = 4


DESCRIPTOR = ControllerDescriptor(
    name="taint-eviction-controller",
    account="node-controller",
    aliases=("taint-eviction",),
    does="pods on nodes with NoExecute taints that they do not tolerate, or not for so long",
    watches=(NODES, PODS),
    builder="ctrlmgr.controllers.taint_eviction.controller:build",
    options=Options,
)
"""The declaration of this controller."""
