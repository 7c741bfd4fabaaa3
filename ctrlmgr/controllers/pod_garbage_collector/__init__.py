"""The pod garbage collector: deletes terminated pods, and pods whose node no longer exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the pod garbage collector."""

    terminated_pod_gc_threshold: Annotated[
        int,
        whole(0),
        Setting(
            "The number of terminated pods that are kept; if there are more, the oldest ones are deleted. 0: all "
            "are kept.",
            flag="--terminated-pod-gc-threshold",
            metavar="COUNT",
            formerly="pod_garbage_collector.terminated_pod_threshold",
        ),
    ] = 12500


DESCRIPTOR = ControllerDescriptor(
    name="pod-garbage-collector-controller",
    aliases=("podgc",),
    account="pod-garbage-collector",
    does=(
        "deletes pods that no other component deletes: pods of a node that has been missing for 40 s; terminating pods "
        "without a node; terminating pods on a node out of service; the oldest terminated pods beyond the threshold"
    ),
    watches=(PODS, NODES),
    builder="ctrlmgr.controllers.pod_garbage_collector.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
