"""The endpoints controller: keeps the Endpoints of each Service that has a selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor, OwnedKind
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the endpoints controller; `endpoint_updates_batch_period` is in seconds."""

    concurrent_endpoint_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "How many services the endpoints controller reconciles at the same time.",
            flag="--concurrent-endpoint-syncs",
            metavar="COUNT",
            formerly="endpoints.workers",
        ),
    ] = 2
    endpoint_updates_batch_period: Annotated[
        float,
        DURATION,
        Setting(
            "How long a pod's change waits for more of them before its services are reconciled. Longer means fewer "
            "writes.",
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
    does="the Endpoints of every Service that has a selector",
    watches=(SERVICES, PODS, ENDPOINTS),
    owns=(ENDPOINTS,),
    replays=True,
    replayed_kinds=(OwnedKind(ENDPOINTS, "kube-controller-manager", parent=SERVICES, causes=(SERVICES, PODS)),),
    builder="ctrlmgr.controllers.endpoints.controller:build",
    options=Options,
)
"""The declaration of this controller."""
