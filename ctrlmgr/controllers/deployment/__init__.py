"""The Deployment controller: replaces the pods of Deployments by creating and resizing ReplicaSets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the Deployment controller."""

    concurrent_deployment_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of Deployments that are reconciled concurrently.",
            flag="--concurrent-deployment-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="deployment-controller",
    aliases=("deployment",),
    does="creates, scales and deletes the ReplicaSets of Deployments: rollouts, scaling, history",
    watches=(Resource("apps", "deployments"), Resource("apps", "replicasets"), PODS),
    owns=(Resource("apps", "replicasets"),),
    replays=True,
    shared_kinds=(Resource("apps", "deployments"), Resource("apps", "replicasets")),
    builder="ctrlmgr.controllers.deployment.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
