"""The EndpointSlice mirroring controller: keeps EndpointSlices for Endpoints that a client manages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the EndpointSlice mirroring controller.

    `mirroring_endpointslice_updates_batch_period` is in seconds.
    """

    mirroring_concurrent_service_endpoint_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of Endpoints that are mirrored concurrently.",
            flag="--mirroring-concurrent-service-endpoint-syncs",
            metavar="COUNT",
        ),
    ] = 2
    mirroring_max_endpoints_per_subset: Annotated[
        int,
        whole(1, 1000),
        Setting(
            "The maximum number of addresses that are mirrored of each subset of an Endpoints object.",
            flag="--mirroring-max-endpoints-per-subset",
            metavar="COUNT",
        ),
    ] = 1000
    mirroring_endpointslice_updates_batch_period: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between a change of a mirrored EndpointSlice by another client and its correction, in which "
            "further changes are collected.",
            flag="--mirroring-endpointslice-updates-batch-period",
            metavar="DURATION",
        ),
    ] = 0.0


DESCRIPTOR = ControllerDescriptor(
    name="endpointslice-mirroring-controller",
    aliases=("endpointslicemirroring",),
    component="endpoint-slice-mirroring-controller",
    account="endpointslicemirroring-controller",
    does="writes EndpointSlices for Endpoints that a client writes, of Services without a selector",
    watches=(ENDPOINTS, SERVICES, ENDPOINT_SLICES),
    owns=(ENDPOINT_SLICES,),
    replays=True,
    builder="ctrlmgr.controllers.endpointslice_mirroring.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
