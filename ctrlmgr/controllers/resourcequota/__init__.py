"""The ResourceQuota controller: counts the resources that are used in namespaces with ResourceQuotas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, SERVICES, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the ResourceQuota controller."""

    concurrent_resource_quota_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of ResourceQuotas that are recalculated concurrently.",
            flag="--concurrent-resource-quota-syncs",
            metavar="COUNT",
        ),
    ] = 5
    resource_quota_sync_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which each quota is recalculated, even without changes.",
            flag="--resource-quota-sync-period",
            metavar="DURATION",
        ),
    ] = 300.0


DESCRIPTOR = ControllerDescriptor(
    name="resourcequota-controller",
    aliases=("resourcequota",),
    does="recalculates the usage in the status of ResourceQuotas after deletions and updates",
    watches=(Resource("", "resourcequotas"), PODS, SERVICES),
    builder="ctrlmgr.controllers.resourcequota.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
