"""The EndpointSlice controller: keeps the EndpointSlices of each Service that has a selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, PODS, SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the EndpointSlice controller; `endpointslice_updates_batch_period` is in seconds."""

    concurrent_service_endpoint_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of Services whose EndpointSlices are reconciled concurrently.",
            flag="--concurrent-service-endpoint-syncs",
            metavar="COUNT",
        ),
    ] = 2
    max_endpoints_per_slice: Annotated[
        int,
        whole(1, 1000),
        Setting(
            "The maximum number of endpoints that the controller adds to an EndpointSlice.",
            flag="--max-endpoints-per-slice",
            metavar="COUNT",
        ),
    ] = 100
    endpointslice_updates_batch_period: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between a pod's change and the reconcile of its EndpointSlices, in which "
            "further changes are collected.",
            flag="--endpointslice-updates-batch-period",
            metavar="DURATION",
        ),
    ] = 0.0


DESCRIPTOR = ControllerDescriptor(
    name="endpointslice-controller",
    aliases=("endpointslice",),
    component="endpoint-slice-controller",
    does="writes the EndpointSlices of every Service with a selector",
    watches=(SERVICES, PODS, NODES, ENDPOINT_SLICES),
    owns=(ENDPOINT_SLICES,),
    replays=True,
    builder="ctrlmgr.controllers.endpointslice.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
