"""The taint eviction controller: deletes pods that do not tolerate a NoExecute taint of their node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the taint eviction controller."""

    concurrent_taint_evictions: Annotated[
        int, whole(1), Setting("The number of pods on tainted nodes that are deleted concurrently.")
    ] = 4


DESCRIPTOR = ControllerDescriptor(
    name="taint-eviction-controller",
    account="node-controller",
    aliases=("taint-eviction",),
    does="deletes pods that do not tolerate a NoExecute taint of their node, or no longer tolerate it",
    watches=(NODES, PODS),
    builder="ctrlmgr.controllers.taint_eviction.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
