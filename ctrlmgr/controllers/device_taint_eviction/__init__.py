"""The device taint eviction controller: deletes pods whose devices have a NoExecute taint that is not tolerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the device taint eviction controller."""

    concurrent_device_taint_eviction_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of pods with tainted devices that are deleted concurrently.",
            flag="--concurrent-device-taint-eviction-syncs",
            metavar="COUNT",
        ),
    ] = 8


DESCRIPTOR = ControllerDescriptor(
    name="device-taint-eviction-controller",
    does="deletes pods whose devices have a NoExecute taint that their ResourceClaims do not tolerate",
    watches=(
        PODS,
        Resource("resource.k8s.io", "resourceclaims"),
        Resource("resource.k8s.io", "resourceslices"),
        Resource("resource.k8s.io", "devicetaintrules"),
    ),
    replays=True,
    shared_kinds=(PODS,),
    replay_needs=(
        PODS,
        Resource("resource.k8s.io", "resourceclaims"),
        Resource("resource.k8s.io", "resourceslices"),
    ),
    builder="ctrlmgr.controllers.device_taint_eviction.controller:build",
    options=Options,
    feature_gates=("DRADeviceTaints",),
)
"""The declaration of the controller: its name and the function that builds it."""
