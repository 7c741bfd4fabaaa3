"""The namespace controller: deletes the content of a namespace that is being deleted, then its finalizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import NAMESPACES
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import DURATION, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the namespace controller; `namespace_deletion_grace` is in seconds."""

    concurrent_namespace_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "How many namespaces are emptied at the same time.", flag="--concurrent-namespace-syncs", metavar="COUNT"
        ),
    ] = 5
    namespace_deletion_grace: Annotated[
        float,
        DURATION,
        Setting(
            "How long a deleted namespace is left as it is before its content is deleted. Kubernetes leaves it for "
            "five seconds.",
            flag="--namespace-deletion-grace",
            metavar="DURATION",
            formerly="namespace.deletion_grace",
        ),
    ] = 5.0


DESCRIPTOR = ControllerDescriptor(
    name="namespace-controller",
    aliases=("namespace",),
    does="the content of a namespace that is being deleted",
    watches=(NAMESPACES,),
    replays=True,
    builder="ctrlmgr.controllers.namespace.controller:build",
    options=Options,
)
"""The declaration of this controller."""
