"""The simulated load balancer: assigns addresses of a pool to Services of type LoadBalancer.

No program listens at the addresses that the simulated load balancer assigns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import SERVICES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import RANGES


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the simulated load balancer."""

    simulated_load_balancer_range: Annotated[
        str,
        RANGES,
        Setting(
            "The CIDR of the addresses of Services of type LoadBalancer, with simulated nodes.",
            flag="--simulated-load-balancer-range",
            metavar="CIDR[,CIDR]",
        ),
    ] = "198.51.100.0/24"


DESCRIPTOR = ControllerDescriptor(
    name="simulated-load-balancer-controller",
    aliases=("simulated-load-balancer",),
    component="service-controller",
    account="service-controller",
    does="assigns addresses to Services of type LoadBalancer, with `--nodes`",
    watches=(SERVICES,),
    builder="ctrlmgr.controllers.simulated_load_balancer.controller:build",
    options=Options,
    enabled_by_default=False,
)
"""The declaration of the controller: its name and the function that builds it."""
