"""The garbage collector: deletes objects whose owners are deleted, and completes foreground and orphaning deletions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the garbage collector."""

    concurrent_gc_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of objects that the garbage collector processes concurrently.",
            flag="--concurrent-gc-syncs",
            metavar="COUNT",
        ),
    ] = 5


DESCRIPTOR = ControllerDescriptor(
    name="garbage-collector-controller",
    aliases=("garbagecollector",),
    account="generic-garbage-collector",
    does="deletes objects whose owners were deleted; handles foreground and orphaning deletions",
    builder="ctrlmgr.controllers.garbage_collector.controller:build",
    options=Options,
    debug_pages=("graph",),
)
"""The declaration of the controller: its name and the function that builds it."""
