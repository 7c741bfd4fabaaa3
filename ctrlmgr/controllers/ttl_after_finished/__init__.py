"""The TTL-after-finished controller: deletes finished Jobs after their time to live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the TTL-after-finished controller."""

    concurrent_ttl_after_finished_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of finished Jobs that are deleted concurrently.",
            flag="--concurrent-ttl-after-finished-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="ttl-after-finished-controller",
    aliases=("ttl-after-finished",),
    does="deletes finished Jobs after their `ttlSecondsAfterFinished`",
    watches=(Resource("batch", "jobs"),),
    builder="ctrlmgr.controllers.ttl_after_finished.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""
