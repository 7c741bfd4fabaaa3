"""The DaemonSet controller: keeps one pod of each DaemonSet on every node on which the pod may run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NODES, PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the DaemonSet controller."""

    concurrent_daemonset_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of DaemonSets that are reconciled concurrently.",
            flag="--concurrent-daemonset-syncs",
            metavar="COUNT",
        ),
    ] = 2


DESCRIPTOR = ControllerDescriptor(
    name="daemonset-controller",
    aliases=("daemonset",),
    does="creates a pod of each DaemonSet on every suitable node, and replaces pods in rollouts",
    account="daemon-set-controller",
    watches=(Resource("apps", "daemonsets"), PODS, NODES),
    owns=(PODS, Resource("apps", "controllerrevisions")),
    replays=True,
    shared_kinds=(Resource("apps", "daemonsets"), PODS, Resource("apps", "controllerrevisions")),
    builder="ctrlmgr.controllers.daemonset.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
