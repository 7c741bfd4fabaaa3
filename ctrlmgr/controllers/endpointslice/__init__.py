"""The EndpointSlice controller: keeps the EndpointSlices of each Service that has a selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, PODS, SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the EndpointSlice controller; `endpointslice_updates_batch_period` is in seconds."""

    concurrent_service_endpoint_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "How many services get their EndpointSlices at the same time.",
            flag="--concurrent-service-endpoint-syncs",
            metavar="COUNT",
        ),
    ] = 2
    endpointslice_updates_batch_period: Annotated[
        float,
        DURATION,
        Setting(
            "How long a pod's change waits for more of them before the slices of its services are reconciled.",
            flag="--endpointslice-updates-batch-period",
            metavar="DURATION",
        ),
    ] = 0.0


DESCRIPTOR = ControllerDescriptor(
    name="endpointslice-controller",
    aliases=("endpointslice",),
    component="endpoint-slice-controller",
    does="the EndpointSlices of every Service that has a selector",
    watches=(SERVICES, PODS, NODES, ENDPOINT_SLICES),
    owns=(ENDPOINT_SLICES,),
    replays=True,
    builder="ctrlmgr.controllers.endpointslice.controller:build",
    options=Options,
)
"""The declaration of this controller."""
