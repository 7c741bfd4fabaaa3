"""The endpoints controller: keeps the Endpoints of each Service that has a selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor, OwnedKind
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the endpoints controller; `endpoint_updates_batch_period` is in seconds."""

    concurrent_endpoint_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of Services that the endpoints controller reconciles concurrently.",
            flag="--concurrent-endpoint-syncs",
            metavar="COUNT",
            formerly="endpoints.workers",
        ),
    ] = 2
    endpoint_updates_batch_period: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between a pod's change and the reconcile of its Services, in which further changes are "
            "collected.",
            flag="--endpoint-updates-batch-period",
            metavar="DURATION",
            formerly="endpoints.batch_period",
        ),
    ] = 0.0


DESCRIPTOR = ControllerDescriptor(
    name="endpoints-controller",
    aliases=("endpoint",),
    former_names=("endpoint-controller",),
    component="endpoint-controller",
    account="endpoint-controller",
    does="writes the Endpoints of every Service with a selector",
    watches=(SERVICES, PODS, ENDPOINTS),
    owns=(ENDPOINTS,),
    replays=True,
    replayed_kinds=(OwnedKind(ENDPOINTS, "kube-controller-manager", parent=SERVICES, causes=(SERVICES, PODS)),),
    builder="ctrlmgr.controllers.endpoints.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
