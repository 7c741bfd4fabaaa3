"""The namespace controller: deletes a terminating namespace's content, and then removes the namespace's finalizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the namespace controller; `namespace_deletion_grace` is in seconds."""

    concurrent_namespace_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of namespaces whose content is deleted concurrently.",
            flag="--concurrent-namespace-syncs",
            metavar="COUNT",
        ),
    ] = 5
    namespace_deletion_grace: Annotated[
        float,
        DURATION,
        Setting(
            "The delay between the deletion of a namespace and the deletion of its content. Kubernetes' delay is five "
            "seconds.",
            flag="--namespace-deletion-grace",
            metavar="DURATION",
            formerly="namespace.deletion_grace",
        ),
    ] = 5.0


DESCRIPTOR = ControllerDescriptor(
    name="namespace-controller",
    aliases=("namespace",),
    does="deletes the objects in terminating namespaces",
    watches=(NAMESPACES,),
    replays=True,
    builder="ctrlmgr.controllers.namespace.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
