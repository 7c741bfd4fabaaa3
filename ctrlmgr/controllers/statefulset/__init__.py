"""The StatefulSet controller: keeps pods that have stable names, an order, and separate storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the StatefulSet controller."""

    concurrent_statefulset_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of StatefulSets that are reconciled concurrently.",
            flag="--concurrent-statefulset-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="statefulset-controller",
    aliases=("statefulset",),
    does="creates, updates and deletes the pods and claims of StatefulSets in order",
    watches=(Resource("apps", "statefulsets"), PODS),
    owns=(PODS, Resource("", "persistentvolumeclaims"), Resource("apps", "controllerrevisions")),
    replays=True,
    shared_kinds=(
        Resource("apps", "statefulsets"),
        PODS,
        Resource("", "persistentvolumeclaims"),
        Resource("apps", "controllerrevisions"),
    ),
    builder="ctrlmgr.controllers.statefulset.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
