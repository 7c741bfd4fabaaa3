"""The resource claim controller: creates ResourceClaims from templates for pods, and releases unused claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole

_CLAIMS = Resource("resource.k8s.io", "resourceclaims")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the resource claim controller."""

    concurrent_resourceclaim_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of ResourceClaims, and of pods with ResourceClaims, that are reconciled concurrently.",
            flag="--concurrent-resourceclaim-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="resourceclaim-controller",
    aliases=("resource-claim-controller",),
    account="resource-claim-controller",
    component="resource_claim",
    does="creates the claims of pods' ResourceClaimTemplates, and deallocates claims that no pod uses any more",
    watches=(PODS, _CLAIMS, Resource("resource.k8s.io", "resourceclaimtemplates")),
    owns=(_CLAIMS,),
    replays=True,
    shared_kinds=(
        _CLAIMS,
        PODS,
    ),
    replay_needs=(
        _CLAIMS,
        PODS,
        Resource("resource.k8s.io", "resourceclaimtemplates"),
    ),
    builder="ctrlmgr.controllers.resourceclaim.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
